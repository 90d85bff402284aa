"""Where built things live between runs: outside the tree, found again by a key of their inputs.

    <cache>/testbed/<key>/bin/{controlplane,etcd,kube-apiserver,...,kwok}
    <cache>/testbed/<key>/stages.yaml
    <cache>/{oracle,e2e,helm}/<key>/      what else is built, by those who build it
    <cache>/go/<requirement>/             the Go toolchain, only where the machine has none

<cache> is $K8S_SCHEDULER_CACHE, or k8s-scheduler under $XDG_CACHE_HOME or ~/.cache. The key is
made of inputs only, never of the Go that happens to be there: a cached run must need no Go.
"""

import fcntl
import hashlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MODULE_FILES = ("go.mod", "go.sum")
# Of a module with a program of its own.
MAIN_FILES = (*MODULE_FILES, "main.go")


def cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder for everything this project caches."""
    env = os.environ if environ is None else environ
    if chosen := env.get("K8S_SCHEDULER_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = Path(env.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "k8s-scheduler"


def build_key(
    module_dir: Path,
    version: str,
    *,
    recipe: Iterable[str],
    files: Iterable[str] = MAIN_FILES,
) -> str:
    """Return the cache key of a build: readable version, then a digest of every input.

    `recipe` is how it is built (flags, extracted files): a changed recipe is another build.
    """
    digest = hashlib.sha256()
    for name in files:
        content = (module_dir / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    for part in (platform.system(), platform.machine(), *recipe):
        digest.update(f"{len(part)} {part}\n".encode())
    return f"{version}-{digest.hexdigest()[:12]}"


@contextmanager
def exclusive(lock_file: Path, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file for the length of the block; the kernel frees it if the holder dies."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
