"""Where everything of one bed is: the only module that knows file names inside the state folder."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """The state folder of a bed."""

    root: Path

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def ca(self) -> Path:
        """The certificate that every server of the bed is signed by."""
        return self.pki / "ca.crt"

    @property
    def etcd_data(self) -> Path:
        """All that the cluster knows."""
        return self.root / "etcd"

    @property
    def etcd_snapshot(self) -> Path:
        """A copy of `etcd_data`, where one was made."""
        return self.root / "etcd-snapshot"

    @property
    def tokens(self) -> Path:
        """The static tokens of the API server."""
        return self.root / "tokens.csv"

    @property
    def admin_kubeconfig(self) -> Path:
        """Everything is allowed to this one."""
        return self.root / "kubeconfig"

    @property
    def audit_policy(self) -> Path:
        """What is audited."""
        return self.root / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        """What was audited."""
        return self.root / "audit.log"

    @property
    def kwok_config(self) -> Path:
        """Options and stages of kwok."""
        return self.root / "kwok.yaml"

    @property
    def scratch(self) -> Path:
        """TMPDIR of the components, so that their temporary files go with the bed."""
        return self.root / "tmp"

    def kubeconfig(self, component: str) -> Path:
        """Return the kubeconfig a component runs with."""
        return self.root / f"{component}.kubeconfig"

    def log(self, component: str) -> Path:
        """Return the file a component writes its output to."""
        return self.root / "log" / f"{component}.log"

    def make_folders(self) -> None:
        """Make the folders other modules write into."""
        for folder in (self.pki, self.scratch, self.root / "log"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read: it holds a key or a token."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
