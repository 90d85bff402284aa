"""Tries a mutant with the tests: those named after its module first, then wider and wider.

The working tree is never changed: mutants live in a copy of it, which is removed at the end. A run
of tests is bounded in time and memory, since a mutant may well loop for ever.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.mutants.mutations import Mutation

_NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "dist", "*.egg-info")
_MAX_BYTES = 8 * 1024**3
_PASSED = 0

# Paths of tests, relative to the root, that are run together.
Stage = tuple[str, ...]
# Runs the tests of a stage in a copy, for so many seconds at most.
Run = Callable[[Path, Stage, float], int | None]


def stages_for(path: Path, root: Path) -> list[Stage]:
    """Return which tests to try for a module, narrowest first."""
    folder = Path("tests/unit", *path.parts[1:-1])
    named = sorted((root / folder).glob(f"test_{path.stem}*.py"))
    stages = [tuple(str(found.relative_to(root)) for found in named)]
    stages += [(str(place),) for place in (folder, *folder.parents) if len(place.parts) > 2]
    return [stage for stage in stages if stage and all((root / name).exists() for name in stage)]


class Outcome(str):
    """What became of a mutant, as it is printed."""

    __slots__ = ()

    @property
    def is_found(self) -> bool:
        return self.startswith("found")


class Tree:
    """A copy of the working tree that may be changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.copy = Path(tempfile.mkdtemp(prefix="mutants-"))

    def __enter__(self) -> Self:
        shutil.copytree(self._root, self.copy, ignore=_NOT_COPIED, dirs_exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.copy)

    def put(self, path: Path, source: str) -> None:
        """Write a source, and forget what was compiled of it."""
        (self.copy / path).write_text(source, encoding="utf-8")
        # A change within a second that keeps the length would not be seen by the import.
        for compiled in (self.copy / path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


def run_tests(copy: Path, stage: Stage, seconds: float) -> int | None:
    """Return the exit code of the tests in a copy; None if they didn't end in time."""
    # The copy's own sources come before the installed ones: -m puts its folder first.
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *stage]
    running = subprocess.Popen(
        command,
        cwd=copy,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_bound,  # noqa: PLW1509 - there are no threads here
    )
    try:
        return running.wait(max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))


class Trial:
    """Runs tests on mutants."""

    def __init__(self, tree: Tree, *, seconds: float, run: Run = run_tests) -> None:
        self._tree = tree
        self._seconds = seconds
        self._run = run
        # Whether tests pass without a mutation, asked when they first fail.
        self._sound: dict[Stage, bool] = {}

    def judge(self, mutation: Mutation, stages: list[Stage]) -> Outcome:
        """Return whether a test fails because of the mutation, and where."""
        ends_at = time.monotonic() + self._seconds
        tried = "nothing"
        for stage in stages:
            seconds = ends_at - time.monotonic()
            self._tree.put(mutation.path, mutation.applied())
            try:
                found = self._run(self._tree.copy, stage, seconds)
            finally:
                self._tree.put(mutation.path, mutation.source)
            if found != _PASSED:
                if not self._is_sound(stage):
                    return Outcome(f"{stage[0]} fails without it")
                how = "hung" if found is None else "by"
                return Outcome(f"found, {how} {_short(stage)}")
            tried = _short(stage)
        return Outcome(f"SURVIVED {tried}")

    def _is_sound(self, stage: Stage) -> bool:
        if stage not in self._sound:
            self._sound[stage] = self._run(self._tree.copy, stage, 2 * self._seconds) == _PASSED
        return self._sound[stage]


def _short(stage: Stage) -> str:
    return stage[0].removeprefix("tests/unit/")
