"""Building helm, once for each version; the program lives in the cache.

    <cache>/helm/<version>-<digest>/helm

It takes a minute or two. go.mod is the only place that says which version.
"""

import re
import sys
import tempfile
from pathlib import Path

from testbed.cache import MODULE_FILES, build_key, cache_root, exclusive
from testbed.compiling import Progress, Screen, compile_packages, elapsed, list_packages
from testbed.errors import TestbedError
from testbed.golang import find_or_install
from testbed.versions import read_versions

MODULE_DIR = Path(__file__).parent
PROGRAM = "helm"

_MODULE = "helm.sh/helm/v3"
_PACKAGE = f"{_MODULE}/cmd/helm"
_REQUIRED = re.compile(rf"^\s+{re.escape(_MODULE)} (v\S+)", re.MULTILINE)
_FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags", "-s -w")


def helm_version(module_dir: Path = MODULE_DIR) -> str:
    """Return which helm is pinned."""
    found = _REQUIRED.search((module_dir / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise TestbedError(f"{module_dir / 'go.mod'} does not require {_MODULE}")
    return found.group(1)


def ensure_helm(
    *, cache: Path | None = None, module_dir: Path = MODULE_DIR, screen: Screen | None = None
) -> Path:
    """Return the program, building it if it is not there; raises TestbedError."""
    cache = cache or cache_root()
    version = helm_version(module_dir)
    home = cache / PROGRAM / build_key(module_dir, version, recipe=_FLAGS, files=MODULE_FILES)
    program = home / PROGRAM
    if program.exists():
        return program
    progress = Progress(screen or sys.stderr)
    waiting = "another build of helm is running; waiting for it"
    with exclusive(home / "lock", on_wait=lambda: progress.say(waiting)):
        if not program.exists():
            go = find_or_install(read_versions().go, cache=cache, say=progress.say)
            progress.say(
                f"building helm {version} with Go {go.version_text}; a minute or two, later runs "
                "use the result"
            )
            parts = list_packages(go, [_PACKAGE], module_dir=module_dir, progress=progress)
            with tempfile.TemporaryDirectory(prefix="scratch-", dir=home) as folder:
                compile_packages(
                    go,
                    [*_FLAGS, "-o", f"{folder}/{PROGRAM}", _PACKAGE],
                    module_dir=module_dir,
                    work_dir=Path(folder),
                    parts=parts,
                    progress=progress,
                )
                (Path(folder) / PROGRAM).replace(program)
            progress.say(f"built helm in {elapsed(progress.elapsed_seconds)}")
    return program
