"""The oracle's Go module: the one in the tree, or one made for another kube-scheduler.

`go.mod` here pins the release this project follows. For another release a module is made from
that release's own go.mod: it says which Go it needs and which of its parts are modules of their
own, published as v0.MINOR.PATCH beside v1.MINOR.PATCH.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import BuildError

MODULE_DIR = Path(__file__).parent
KUBERNETES = "k8s.io/kubernetes"

_VERSION = re.compile(r"v1\.(?P<minor>\d+)\.(?P<rest>\d+(?:-(?:alpha|beta|rc)\.\d+)?)")
_GO = re.compile(r"^go (\d+(?:\.\d+)+)$", re.MULTILINE)
_REQUIRED = re.compile(rf"^\s*(?:require )?{re.escape(KUBERNETES)} (v\S+)$", re.MULTILINE)
_KLOG = re.compile(r"^\s*(?:require )?(k8s\.io/klog/v2 v\S+)", re.MULTILINE)
_STAGED = re.compile(r"^\s*(?:replace )?(k8s\.io/[\w.-]+) => \./staging/src/\1$", re.MULTILINE)
# Up to this minor version the framework is the one of generation_136.go.
_OLD_GENERATION = (36, "kube136")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kubernetes."""

    version: str
    minor: int
    rest: str

    @property
    def staged(self) -> str:
        """The version of the modules that are published beside it."""
        return f"v0.{self.minor}.{self.rest}"

    @property
    def tags(self) -> str:
        """The build tags that choose the files for this release."""
        last, tag = _OLD_GENERATION
        return tag if self.minor <= last else ""


def release(version: str) -> Release:
    """Read a version such as v1.36.4; raises BuildError if it is none."""
    found = _VERSION.fullmatch(version if version.startswith("v") else f"v{version}")
    if found is None:
        raise BuildError(f"{version!r} is no version of Kubernetes; write it as v1.36.4")
    return Release(found.group(), int(found["minor"]), found["rest"])


def pinned() -> Release:
    """Return the release that the recorded decisions come from."""
    found = _REQUIRED.search((MODULE_DIR / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise BuildError(f"{MODULE_DIR / 'go.mod'} does not require {KUBERNETES}")
    return release(found.group(1))


def go_version(go_mod: Path) -> str:
    """Return the Go that a module needs."""
    found = _GO.search(go_mod.read_text(encoding="utf-8"))
    if found is None:
        raise BuildError(f"{go_mod} has no `go` line")
    return found.group(1)


def source_files() -> list[Path]:
    """Return the Go files of the oracle, sorted."""
    return sorted(MODULE_DIR.glob("*.go"))


def go_mod_for(wanted: Release, kubernetes_go_mod: str) -> str:
    """Return a go.mod for the oracle of a release, before `go mod tidy`."""
    staged = _STAGED.findall(kubernetes_go_mod)
    go, klog = _GO.search(kubernetes_go_mod), _KLOG.search(kubernetes_go_mod)
    if not staged or go is None or klog is None:
        raise BuildError(
            f"the go.mod of {KUBERNETES} {wanted.version} is not what it used to be: "
            "no staged modules, no klog or no Go version found in it"
        )
    replaced = "".join(f"\t{name} => {name} {wanted.staged}\n" for name in staged)
    return (
        f"module oracle\n\ngo {go.group(1)}\n\n"
        f"require (\n\t{klog.group(1)}\n\t{KUBERNETES} {wanted.version}\n)\n\n"
        f"replace (\n{replaced})\n"
    )


def write_module(folder: Path, wanted: Release, kubernetes_go_mod: str) -> None:
    """Put the oracle's sources and a go.mod for another release into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in source_files():
        shutil.copy(source, folder)
    (folder / "go.mod").write_text(go_mod_for(wanted, kubernetes_go_mod), encoding="utf-8")
