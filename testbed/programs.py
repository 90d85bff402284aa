"""Programs of one Go package each, built once for each version; they live in the cache.

<cache>/<name>/<version>-<digest>/<name>
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed.cache import MAIN_FILES, build_key, cache_root, exclusive
from testbed.compiling import Progress, Screen, compile_packages, elapsed, list_packages
from testbed.golang import find_or_install
from testbed.versions import read_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is built, and from what."""

    # Of the file, and of its folder in the cache.
    name: str
    # In sentences; with `release` behind it, which one.
    title: str
    release: str
    version: str
    module_dir: Path
    flags: tuple[str, ...]
    # How long that is.
    takes: str
    package: str = "."
    # The files of the module that it is made of.
    files: tuple[str, ...] = MAIN_FILES


def ensure_program(
    wanted: Program, *, cache: Path | None = None, screen: Screen | None = None
) -> Path:
    """Return the program, building it if it is not there; raises TestbedError."""
    cache = cache or cache_root()
    key = build_key(wanted.module_dir, wanted.version, recipe=wanted.flags, files=wanted.files)
    home = cache / wanted.name / key
    program = home / wanted.name
    if program.exists():
        return program
    progress = Progress(screen or sys.stderr)
    waiting = f"another build of {wanted.title} is running; waiting for it"
    with exclusive(home / "lock", on_wait=lambda: progress.say(waiting)):
        if not program.exists():
            _build(wanted, program, cache=cache, progress=progress)
    return program


def _build(wanted: Program, program: Path, *, cache: Path, progress: Progress) -> None:
    go = find_or_install(read_versions().go, cache=cache, say=progress.say)
    progress.say(
        f"building {wanted.title} {wanted.release} with Go {go.version_text}; {wanted.takes}, "
        "later runs use the result"
    )
    parts = list_packages(go, [wanted.package], module_dir=wanted.module_dir, progress=progress)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=program.parent) as folder:
        made = Path(folder) / wanted.name
        compile_packages(
            go,
            [*wanted.flags, "-o", str(made), wanted.package],
            module_dir=wanted.module_dir,
            work_dir=Path(folder),
            parts=parts,
            progress=progress,
        )
        made.replace(program)
    progress.say(f"built {wanted.title} in {elapsed(progress.elapsed_seconds)}")
