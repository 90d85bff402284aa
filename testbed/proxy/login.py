"""A login whose token and authority are files beside the kubeconfig, renewed as a mount would."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.layout import write_private

_NAME = "proxy"


@dataclass(frozen=True, slots=True)
class Login:
    """The files of one login, all in one folder."""

    folder: Path

    @property
    def token(self) -> str:
        """The token in use."""
        return (self.folder / "token").read_text(encoding="ascii")

    def renew(self, *, token: str, ca_pem: str) -> None:
        """Write token and authority anew; each file is replaced as a whole."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in (("token", token), ("ca.crt", ca_pem)):
            fresh = self.folder / f"{name}.new"
            write_private(fresh, text.encode())
            fresh.replace(self.folder / name)

    def write_kubeconfig(self, server: str) -> Path:
        """Write the kubeconfig that names them; return its path."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": _NAME, "cluster": {"server": server, "certificate-authority": "ca.crt"}}
            ],
            "users": [{"name": _NAME, "user": {"tokenFile": "token"}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
            "current-context": _NAME,
        }
        path = self.folder / "kubeconfig"
        write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
        return path
