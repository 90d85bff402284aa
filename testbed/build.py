"""Building the control plane once, so that every later run starts in seconds.

Two products of one Go module: `controlplane` (etcd, kube-apiserver, kube-controller-manager and
kube-scheduler in one file, told apart by the link they are called through) and `kwok`; and a
third that needs no compiler, kwok's stages, taken from its module.

    missing ──► lock ──► scratch folder ──► go build ──► rename into place ──► ready
                             │ interrupted or failed: the scratch folder goes, no more

Each product appears by one rename, its links before it, so what exists is complete. Scratch
folders of a killed build are removed by the next one, which holds the lock and so knows that
nobody works in them.
"""

import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import golang
from testbed.cache import build_key, cache_root, exclusive
from testbed.compiling import (
    Progress,
    Screen,
    compile_packages,
    download_module,
    elapsed,
    list_packages,
)
from testbed.versions import MODULE_DIR, Versions, read_versions

CONTROL_PLANE = "controlplane"
KWOK = "kwok"
STAGES = "stages.yaml"
CONTROL_PLANE_LINKS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

_PACKAGES = {CONTROL_PLANE: ".", KWOK: "sigs.k8s.io/kwok/cmd/kwok"}
_KWOK_MODULE = "sigs.k8s.io/kwok"
_STAGE_FILES = (
    "stage/node/fast/node-initialize.yaml",
    "stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "stage/pod/fast/pod-ready.yaml",
    "stage/pod/fast/pod-complete.yaml",
    "stage/pod/fast/pod-delete.yaml",
)
_SCRATCH = "scratch-"


@dataclass(frozen=True, slots=True)
class BuildDir:
    """Where the products of one key are, built or not."""

    path: Path

    @property
    def bin(self) -> Path:
        """The folder of the binaries."""
        return self.path / "bin"

    def product(self, name: str) -> Path:
        """Return the path of a product; it exists only once it is complete."""
        return self.path / name if name == STAGES else self.bin / name

    def missing(self, products: Collection[str]) -> list[str]:
        """Return those of the products that are not built yet, in order."""
        return [name for name in sorted(products) if not self.product(name).exists()]


def link_flags(versions: Versions) -> str:
    """Return the linker flags: stripped, and stamped so that the server tells its version."""
    package = "k8s.io/component-base/version"
    major, minor = versions.kubernetes.removeprefix("v").split(".")[:2]
    stamps = {
        "gitVersion": versions.kubernetes,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return " ".join(["-s -w", *(f"-X {package}.{name}={text}" for name, text in stamps.items())])


def build_dir(*, cache: Path | None = None, module_dir: Path = MODULE_DIR) -> BuildDir:
    """Return where the products for this tree's go.mod belong."""
    versions = read_versions(module_dir)
    recipe = (link_flags(versions), *_PACKAGES.values(), *_STAGE_FILES)
    key = build_key(module_dir, versions.kubernetes, recipe=recipe)
    return BuildDir(path=(cache or cache_root()) / "testbed" / key)


def ensure_built(
    products: Collection[str],
    *,
    cache: Path | None = None,
    module_dir: Path = MODULE_DIR,
    screen: Screen | None = None,
) -> BuildDir:
    """Build those of the products (CONTROL_PLANE, KWOK, STAGES) that are missing."""
    cache = cache or cache_root()
    target = build_dir(cache=cache, module_dir=module_dir)
    if not target.missing(products):
        return target
    progress = Progress(screen or sys.stderr)
    lock = target.path.with_name(f"{target.path.name}.lock")
    waiting = "another build of the control plane is running; waiting for it"
    with exclusive(lock, on_wait=lambda: progress.say(waiting)):
        missing = target.missing(products)
        if missing:
            _build(missing, target, cache=cache, module_dir=module_dir, progress=progress)
    return target


def _build(
    products: Sequence[str], target: BuildDir, *, cache: Path, module_dir: Path, progress: Progress
) -> None:
    for leftover in target.path.glob(f"{_SCRATCH}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    target.bin.mkdir(parents=True, exist_ok=True)
    go = golang.find_or_install(read_versions(module_dir).go, cache=cache, say=progress.say)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=target.path) as folder:
        scratch = Path(folder)
        binaries = [name for name in products if name in _PACKAGES]
        if binaries:
            _compile(go, binaries, scratch, module_dir=module_dir, progress=progress)
        if STAGES in products:
            _collect_stages(go, scratch, module_dir=module_dir, progress=progress)
        for name in products:
            for link in CONTROL_PLANE_LINKS if name == CONTROL_PLANE else ():
                (scratch / link).symlink_to(CONTROL_PLANE)
                (scratch / link).replace(target.bin / link)
            (scratch / name).replace(target.product(name))
    progress.say(f"built {', '.join(products)} in {elapsed(progress.elapsed_seconds)}")


def _compile(
    go: golang.GoTool,
    products: Sequence[str],
    scratch: Path,
    *,
    module_dir: Path,
    progress: Progress,
) -> None:
    versions = read_versions(module_dir)
    names = {
        CONTROL_PLANE: f"etcd {versions.etcd} and Kubernetes {versions.kubernetes}",
        KWOK: f"kwok {versions.kwok}",
    }
    progress.say(
        f"building {' and '.join(names[name] for name in products)} with Go {go.version_text}; "
        "the first time takes about 8 to 10 minutes on two cores, later runs use the result"
    )
    packages = [_PACKAGES[name] for name in products]
    parts = list_packages(go, packages, module_dir=module_dir, progress=progress)
    arguments = ["-trimpath", "-buildvcs=false", "-ldflags", link_flags(versions)]
    arguments += ["-o", f"{scratch}/", *packages]
    compile_packages(
        go, arguments, module_dir=module_dir, work_dir=scratch, parts=parts, progress=progress
    )


def _collect_stages(
    go: golang.GoTool, scratch: Path, *, module_dir: Path, progress: Progress
) -> None:
    """Put kwok's stages into one file, so that a cached run needs neither Go nor its modules."""
    folder = download_module(go, _KWOK_MODULE, module_dir=module_dir, progress=progress)
    texts = [
        (folder / "kustomize" / name).read_text(encoding="utf-8").strip() for name in _STAGE_FILES
    ]
    (scratch / STAGES).write_text("\n---\n".join(texts) + "\n", encoding="utf-8")
