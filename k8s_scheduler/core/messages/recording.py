"""The format of recordings: every input of a core in order, and what it decided.

A segment is a line that names the format, a header, a checkpoint, and messages. Each part but
the line is a frame: four bytes of length, then msgpack. A checkpoint may be cut into several
frames, each a `Checkpoint` with some of the entries, so that writing a large one never holds the
event loop; the message `Restore` is put together again when reading.

    header  checkpoint...  ( [versions] message [answer] )...  end

Before a message stand the versions up to which the informers had come, where they moved; after it
what the core decided, where it decided anything. A segment whose end is missing (the process was
killed, or the file was cut) is read as far as it goes. An entry comes out only when everything
about it was read: the last message of such a segment has no answer, rather than a wrong one.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from k8s_scheduler.api.kinds import as_text, from_text
from k8s_scheduler.core.messages.answers import InstructionSummary
from k8s_scheduler.core.messages.checkpoint import Checkpoint
from k8s_scheduler.core.messages.incoming import Message, Restore

FORMAT: Final = 4
# Format 3 has kinds without their group.
_READ: Final = (3, FORMAT)
_NAME: Final = b"k8s-scheduler recording "
_MAGICS: Final = tuple(_NAME + b"%d\n" % number for number in _READ)
MAGIC: Final = _MAGICS[-1]
_LENGTH: Final = struct.Struct(">I")
_CHUNK: Final = 256
# What a decoder raises on damaged data: for text that is no UTF-8, and for nesting without end, it
# has no errors of its own.
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_LISTS: Final = (
    "nodes",
    "pods",
    "objects",
    "nominations",
    "queue",
    "in_flight",
    "evictions",
    "suspensions",
    "changes",
    "earlier",
    "unconfirmed",
    "over_limit",
)


class RecordingError(Exception):
    """The bytes are no recording of this version."""


class Header(msgspec.Struct, frozen=True):
    """What made the recording: enough to build the same core again.

    `rest` is whatever else a core was made from, under the names of `core.scheduler.Setup`.
    """

    version: str
    started: float
    profiles: list[dict[str, Any]]
    queue: dict[str, Any]
    rest: dict[str, Any] = {}
    extenders: tuple[str, ...] = ()


class CheckpointPart(msgspec.Struct, frozen=True, array_like=True, tag="checkpoint"):
    """Some of a checkpoint."""

    part: Checkpoint
    last: bool


class Versions(msgspec.Struct, frozen=True, array_like=True, tag="versions"):
    """By resource, the version up to which all was known when the next message came."""

    reached: dict[str, str]


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """What the message before it led to."""

    summaries: tuple[InstructionSummary, ...]


class End(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """Nothing is missing: the segment was full, or the process ended in order."""


Frame = Message | CheckpointPart | Versions | Answer | End
_encoder = msgspec.msgpack.Encoder(enc_hook=as_text)
_decoder = msgspec.msgpack.Decoder(Frame, dec_hook=from_text)
_header_decoder = msgspec.msgpack.Decoder(Header)


def frame(part: Frame | Header) -> bytes:
    body = _encoder.encode(part)
    return _LENGTH.pack(len(body)) + body


def checkpoint_frames(checkpoint: Checkpoint) -> Iterator[bytes]:
    """Yield a checkpoint as frames of bounded size."""
    empty = msgspec.structs.replace(checkpoint, **dict.fromkeys(_LISTS, ()))
    for name in _LISTS:
        entries = getattr(checkpoint, name)
        for start in range(0, len(entries), _CHUNK):
            part = msgspec.structs.replace(empty, **{name: entries[start : start + _CHUNK]})
            yield frame(CheckpointPart(part, last=False))
    yield frame(CheckpointPart(empty, last=True))


def is_recording(data: bytes) -> bool:
    """Return whether a file that begins like this is a recording, of whatever version."""
    return data.startswith(_NAME)


def _foreign(data: bytes) -> str:
    """Return why bytes are no recording of this version; empty if they start like one."""
    if data.startswith(_MAGICS):
        return ""
    if not data:
        return "it is empty"
    line, newline, _ = data[:64].partition(b"\n")
    number = line.removeprefix(_NAME)
    if line.startswith(_NAME) and newline and number.isdigit():
        return (
            f"it is a recording of format {number.decode()}, and this version reads formats "
            f"{' and '.join(map(str, _READ))}: use the version of k8s-scheduler that wrote it"
        )
    if MAGIC.startswith(data):
        return "it ends within its first line"
    return f"it is no recording: it starts with {data[: len(MAGIC)]!r}, not with {MAGIC!r}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A message; the versions that had moved before it; and what it led to, if that is known."""

    message: Message
    versions: dict[str, str]
    summaries: tuple[InstructionSummary, ...] | None


class Segment:
    """A segment that is being read; the first message is a `Restore`.

    Once every entry was taken, `is_whole` says whether its end was there, `read_bytes` how far
    it could be read.
    """

    def __init__(self, data: bytes) -> None:
        """Read the header; raises RecordingError if this is no recording."""
        if problem := _foreign(data):
            raise RecordingError(problem)
        self._data = data
        self.read_bytes = data.index(b"\n") + 1
        self.is_whole = False
        body = self._next_frame()
        if body is None:
            raise RecordingError("it ends before its header")
        try:
            self.header = _header_decoder.decode(body)
        except _UNREADABLE as error:
            raise RecordingError(f"its header can't be read: {error}") from error

    @property
    def total_bytes(self) -> int:
        return len(self._data)

    @property
    def messages(self) -> Iterator[Message]:
        """Yield what the core was told; once."""
        return (entry.message for entry in self.entries())

    def entries(self) -> Iterator[Entry]:
        """Yield every message with what belongs to it; once. Raises RecordingError."""
        versions: dict[str, str] = {}
        waiting: Message | None = None
        parts: list[Checkpoint] = []
        for found in self._frames():
            if isinstance(found, Answer) and waiting is not None:
                yield Entry(waiting, versions, found.summaries)
                waiting, versions = None, {}
                continue
            if waiting is not None:
                yield Entry(waiting, versions, ())
                waiting, versions = None, {}
            if isinstance(found, CheckpointPart):
                parts.append(found.part)
                if found.last:
                    waiting, parts = Restore(self.header.started, _joined(parts)), []
            elif isinstance(found, Versions):
                versions = found.reached
            elif isinstance(found, End):
                self.is_whole = self.read_bytes == self.total_bytes
                return
            elif isinstance(found, Answer):
                raise RecordingError(f"an answer to nothing ends at byte {self.read_bytes}")
            else:
                waiting = found
        if waiting is not None:
            yield Entry(waiting, versions, None)

    def _frames(self) -> Iterator[Frame]:
        while (body := self._next_frame()) is not None:
            try:
                yield _decoder.decode(body)
            except _UNREADABLE as error:
                raise RecordingError(
                    f"the part that ends at byte {self.read_bytes} can't be read: {error}"
                ) from error

    def _next_frame(self) -> memoryview | None:
        """Return the next frame's body; None where the rest is not a whole frame."""
        start = self.read_bytes + _LENGTH.size
        if start > len(self._data):
            return None
        (length,) = _LENGTH.unpack_from(self._data, self.read_bytes)
        if start + length > len(self._data):
            return None
        self.read_bytes = start + length
        return memoryview(self._data)[start : start + length]


def read_segment(data: bytes) -> Segment:
    """Take a segment apart; raises RecordingError."""
    return Segment(data)


def _joined(parts: list[Checkpoint]) -> Checkpoint:
    lists = {name: tuple(e for part in parts for e in getattr(part, name)) for name in _LISTS}
    return msgspec.structs.replace(parts[-1], **lists)
