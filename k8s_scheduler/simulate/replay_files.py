"""The files of a recording: FILE and the older segments beside it, oldest first.

Every segment begins with a checkpoint and stands alone, so one that is missing takes nothing from
the others but the time it was about.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from k8s_scheduler.core.messages.recording import (
    RecordingError,
    Segment,
    is_recording,
    read_segment,
)
from k8s_scheduler.core.setup import setup_of
from k8s_scheduler.simulate.files import InputFileError

# More than a header ever takes.
_HEAD_BYTES: Final = 1 << 22
# More than tells a recording from other files.
_BEGINNING_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file with one segment."""

    path: Path

    def check(self) -> None:
        """Raise InputFileError unless this begins like a recording that can be replayed."""
        try:
            with self.path.open("rb") as file:
                setup_of(read_segment(file.read(_HEAD_BYTES)).header)
        except (OSError, RecordingError) as error:
            raise self.trouble(error) from error

    def read(self) -> Segment:
        try:
            return read_segment(self.path.read_bytes())
        except (OSError, RecordingError) as error:
            raise self.trouble(error) from error

    def trouble(self, error: OSError | RecordingError) -> InputFileError:
        if isinstance(error, OSError):
            return InputFileError(f"{self.path}: cannot be read: {error.strerror or error}")
        return InputFileError(f"{self.path}: {error}")


def segments_of(path: Path, *, alone: bool, complain: Callable[[str], object]) -> list[SegmentFile]:
    """Return the segments of a recording, oldest first; raises InputFileError.

    A segment that is missing between others is complained about.
    """
    found = {} if alone else _older(path)
    if found and not path.exists():
        newest = found[min(found)]
        raise InputFileError(
            f"{path}: not there, but an older segment is: to replay that one, name {newest}"
        )
    for missing in range(1, max(found, default=0)):
        if missing not in found:
            complain(
                f"{path}.{missing}: missing in the middle of the recording; what happened in its "
                "time is not replayed"
            )
    files = [SegmentFile(found[number]) for number in sorted(found, reverse=True)]
    files.append(SegmentFile(path))
    for file in files:
        file.check()
    return files


def is_taken(path: Path, recording: Path) -> bool:
    """Return whether there is a recording in a file, or it has the name of a segment of this one.

    Any recording, for a segment has many names: links, and FILE.1 where only FILE is replayed.
    """
    is_named_so = path.name == recording.name or _numbered(recording).fullmatch(path.name)
    if is_named_so and os.path.realpath(path.parent) == os.path.realpath(recording.parent):
        return True
    try:
        if not path.is_file():
            # What is read from a pipe would be missing elsewhere.
            return False
        with path.open("rb") as file:
            return is_recording(file.read(_BEGINNING_BYTES))
    except OSError:
        return False


def _numbered(path: Path) -> re.Pattern[str]:
    return re.compile(re.escape(path.name) + r"\.([1-9][0-9]?)")


def _older(path: Path) -> dict[int, Path]:
    """Return by number what was moved out of the way of newer segments."""
    numbered = _numbered(path)
    try:
        beside = sorted(path.parent.iterdir())
    except OSError:
        return {}
    return {int(m[1]): p for p in beside if (m := numbered.fullmatch(p.name)) and p.is_file()}
