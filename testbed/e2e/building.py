"""Building the suite, once for each version and source; the program lives in the cache.

    <cache>/e2e/<version>-<digest>/e2e

It shares most packages with the control plane: where that was built here, this takes a minute,
otherwise about ten.
"""

import sys
import tempfile
from pathlib import Path

from testbed.build import link_flags
from testbed.cache import build_key, cache_root, exclusive
from testbed.compiling import Progress, Screen, compile_packages, elapsed, list_packages
from testbed.golang import find_or_install
from testbed.versions import read_versions

MODULE_DIR = Path(__file__).parent
PROGRAM = "e2e"


def ensure_suite(
    *, cache: Path | None = None, module_dir: Path = MODULE_DIR, screen: Screen | None = None
) -> Path:
    """Return the program, building it if it is not there; raises TestbedError."""
    cache = cache or cache_root()
    # The suite has to be of the bed's version; a test sees that both go.mod files agree.
    versions = read_versions()
    flags = ("-trimpath", "-buildvcs=false", "-ldflags", link_flags(versions))
    home = cache / "e2e" / build_key(module_dir, versions.kubernetes, recipe=flags)
    program = home / PROGRAM
    if program.exists():
        return program
    progress = Progress(screen or sys.stderr)
    waiting = "another build of the end-to-end suite is running; waiting for it"
    with exclusive(home / "lock", on_wait=lambda: progress.say(waiting)):
        if not program.exists():
            go = find_or_install(versions.go, cache=cache, say=progress.say)
            progress.say(
                f"building the end-to-end suite of Kubernetes {versions.kubernetes} with Go "
                f"{go.version_text}; a minute or up to ten, later runs use the result"
            )
            parts = list_packages(go, ["."], module_dir=module_dir, progress=progress)
            with tempfile.TemporaryDirectory(prefix="scratch-", dir=home) as folder:
                compile_packages(
                    go,
                    [*flags, "-o", f"{folder}/{PROGRAM}", "."],
                    module_dir=module_dir,
                    work_dir=Path(folder),
                    parts=parts,
                    progress=progress,
                )
                (Path(folder) / PROGRAM).replace(program)
            progress.say(f"built the end-to-end suite in {elapsed(progress.elapsed_seconds)}")
    return program
