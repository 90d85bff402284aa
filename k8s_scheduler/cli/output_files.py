"""What a command writes: files, and standard output, which may be one.

A full disk, or a file that may not be written, is no defect of the program: it ends the command
with one line and code 2. Disks are often found full only when a file is closed, so that is watched
too.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, Self, TypeVar

import click

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.lib.standard_output import abandon_standard_output

_Result = TypeVar("_Result")


class OutputFile:
    """A file that is being written; what was in it before is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._try(lambda: path.open("wb"))

    def write(self, data: bytes) -> None:
        self._try(lambda: self._file.write(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._try(self._file.close)
            return
        # Something else went wrong, and was told: what is buffered may be refused once more.
        with suppress(OSError):
            self._file.close()

    def _try(self, act: Callable[[], _Result]) -> _Result:
        try:
            return act()
        except OSError as error:
            _refuse(str(self._path), error)


@contextmanager
def printing() -> Iterator[None]:
    """Watch what is written to standard output; that its reader has gone is click's business."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_standard_output()
        _refuse("standard output", error)


def check_apart(outputs: Iterable[tuple[str, Path]]) -> None:
    """Refuse two outputs to one file, each given as (option, file): only the last would remain."""
    taken: dict[object, str] = {}
    for option, path in outputs:
        if path.exists() and not path.is_file():
            # A terminal or a pipe takes everything.
            continue
        other = taken.setdefault(_identity(path), option)
        # What is asked for twice is the same both times.
        if other != option:
            raise click.UsageError(
                f"{option} {path}: {other} is written there too; name another file"
            )


def _refuse(name: str, error: OSError) -> NoReturn:
    click.echo(f"{name}: cannot be written: {error.strerror or error}", err=True)
    sys.exit(ExitCode.USAGE)


def _identity(path: Path) -> object:
    """Return what two names of one file have in common, also if it is not there yet."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino
