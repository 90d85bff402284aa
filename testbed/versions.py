"""Which versions the bed is made of. `controlplane/go.mod` is the only place that says so.

Nothing else may name a version of Kubernetes, etcd, kwok or Go: an update is an edit of go.mod,
and build key, version stamps and the check of ready-made binaries follow.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError

MODULE_DIR = Path(__file__).parent / "controlplane"

_GO = re.compile(r"^go (\d+(?:\.\d+)+)$", re.MULTILINE)
_KUBERNETES = "k8s.io/kubernetes"
_ETCD = "go.etcd.io/etcd/server/v3"
_KWOK = "sigs.k8s.io/kwok"


@dataclass(frozen=True, slots=True)
class Versions:
    """Pinned versions, each with a leading `v` except Go's."""

    go: str
    kubernetes: str
    etcd: str
    kwok: str

    def of(self, component: str) -> str:
        """Return the version a component must have."""
        return {"etcd": self.etcd, "kwok": self.kwok}.get(component, self.kubernetes)


def read_versions(module_dir: Path = MODULE_DIR) -> Versions:
    """Read the pinned versions from the module's go.mod."""
    text = (module_dir / "go.mod").read_text(encoding="utf-8")
    go = _GO.search(text)
    if go is None:
        raise TestbedError(f"{module_dir / 'go.mod'} has no `go` line")
    return Versions(
        go=go.group(1),
        kubernetes=_required(text, _KUBERNETES),
        etcd=_required(text, _ETCD),
        kwok=_required(text, _KWOK),
    )


def _required(go_mod: str, module: str) -> str:
    found = re.search(rf"^(?:require)?\s+{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise TestbedError(f"go.mod of the control plane does not require {module}")
    return found.group(1)
