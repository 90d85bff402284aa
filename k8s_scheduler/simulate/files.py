"""Scenario and sequence files: JSON lines, plain or gzip, from disk or standard input.

Each line is a whole scenario or sequence. A line that is none ends the reading with an
`InputFileError` that names file and line: what follows a broken line cannot be trusted to be what
its author meant. What is wrong *inside* a scenario (an object, the configuration) is no business
of this module; one scenario's trouble is not the next one's.
"""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar, cast

import msgspec

STANDARD_INPUT: Final = "-"
_GZIP_MAGIC: Final = b"\x1f\x8b"

_SCENARIO_FORM: Final = (
    'a scenario is {"id": "...", "config": {...} (optional), "objects": [{...}, ...], '
    '"pending": ["NAMESPACE/NAME", ...]}'
)
_SEQUENCE_FORM: Final = (
    'a sequence is {"id": "...", "config": {...} (optional), "objects": [{...}, ...], '
    '"steps": [{"apply": [{...}, ...], "delete": [{"kind": "...", "namespace": "...", '
    '"name": "..."}, ...], "pending": ["NAMESPACE/NAME", ...]}, ...]}'
)


class InputFileError(Exception):
    """A file that cannot be read as what it should be; the text says where and what is right."""


class Scenario(msgspec.Struct, frozen=True):
    """A state of the cluster, and the pods to judge in it."""

    id: str
    objects: list[dict[str, Any]]
    pending: list[str]
    config: dict[str, Any] | None = None


class Removal(msgspec.Struct, frozen=True):
    """An object that goes."""

    kind: str
    name: str
    namespace: str = ""


class SequenceStep(msgspec.Struct, frozen=True):
    """What changes in the cluster, and the pods to judge afterwards."""

    pending: list[str]
    apply: list[dict[str, Any]] = []
    delete: list[Removal] = []


class Sequence(msgspec.Struct, frozen=True):
    """A state of the cluster and its further life."""

    id: str
    objects: list[dict[str, Any]]
    steps: list[SequenceStep]
    config: dict[str, Any] | None = None


_Line = TypeVar("_Line", Scenario, Sequence)


def read_scenarios(path: str) -> Iterator[tuple[int, Scenario]]:
    """Yield (line number, scenario) of a file; raises InputFileError."""
    return _read(path, Scenario, _SCENARIO_FORM)


def read_sequences(path: str) -> Iterator[tuple[int, Sequence]]:
    """Yield (line number, sequence) of a file; raises InputFileError."""
    return _read(path, Sequence, _SEQUENCE_FORM)


def display_name(path: str) -> str:
    """Return what messages call the file."""
    return "standard input" if path == STANDARD_INPUT else path


def _read(path: str, kind: type[_Line], form: str) -> Iterator[tuple[int, _Line]]:
    decode = msgspec.json.Decoder(kind).decode
    for number, line in _lines(path):
        try:
            decoded = decode(line)
        except msgspec.ValidationError as error:
            where = f"{display_name(path)}:{number}"
            raise InputFileError(f"{where}: {error}{_other_kind(line, kind)}; {form}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            where = f"{display_name(path)}:{number}"
            raise InputFileError(
                f"{where}: not JSON: {error}; every line must be one whole JSON object"
            ) from error
        except RecursionError as error:
            where = f"{display_name(path)}:{number}"
            raise InputFileError(f"{where}: nested too deeply to be read; {form}") from error
        yield number, decoded


def _other_kind(line: bytes, kind: type[Scenario | Sequence]) -> str:
    """Return a hint if the line is of the kind that was not asked for."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        # A number too long, or nesting too deep: that is wrong for either kind, and told already.
        return ""
    if isinstance(value, dict):
        if kind is Scenario and "steps" in value:
            return " (this looks like a sequence: use --sequence)"
        if kind is Sequence and "pending" in value:
            return " (this looks like a scenario: leave --sequence out)"
    return ""


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    name = display_name(path)
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputFileError(
            f"{name}: damaged gzip data after line {number}: {error}; compress the file anew"
        ) from error
    except OSError as error:
        raise InputFileError(f"{name}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading its plain content; gzip is known by its first bytes."""
    if path == STANDARD_INPUT:
        yield _plain(sys.stdin.buffer)
        return
    with Path(path).open("rb") as file:
        if path.endswith(".gz") and file.peek(2)[:2] != _GZIP_MAGIC:
            raise InputFileError(f"{path}: not gzip data; compress it, or take .gz out of its name")
        yield _plain(file)


def _plain(file: Any) -> IO[bytes]:
    if file.peek(2)[:2] == _GZIP_MAGIC:
        return cast("IO[bytes]", gzip.open(file, "rb"))
    return cast("IO[bytes]", file)
