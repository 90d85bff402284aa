"""The format of recordings: every input of a core, in order.

A segment is a line that names the format, a header, a checkpoint, and messages. Each part but
the line is a frame: four bytes of length, then msgpack. A checkpoint may be cut into several
frames, each a `Checkpoint` with some of the entries, so that writing a large one never holds the
event loop; the message `Restore` is put together again when reading. A segment whose end is
missing (the process was killed) is read as far as it goes.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from k8s_scheduler.core.messages.checkpoint import Checkpoint
from k8s_scheduler.core.messages.incoming import Message, Restore

MAGIC = b"k8s-scheduler recording 2\n"
_LENGTH = struct.Struct(">I")
_CHUNK = 256
_LISTS = (
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
)


class RecordingError(Exception):
    """The bytes are no recording of this version."""


class Header(msgspec.Struct, frozen=True):
    """What made the recording: enough to build the same core again."""

    version: str
    started: float
    profiles: list[dict[str, Any]]
    queue: dict[str, Any]


class _CheckpointPart(msgspec.Struct, frozen=True, array_like=True, tag="checkpoint"):
    part: Checkpoint
    last: bool


_Frame = Message | _CheckpointPart
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Frame)
_header_decoder = msgspec.msgpack.Decoder(Header)


def frame(part: Message | Header | _CheckpointPart) -> bytes:
    """Return one frame."""
    body = _encoder.encode(part)
    return _LENGTH.pack(len(body)) + body


def checkpoint_frames(checkpoint: Checkpoint) -> Iterator[bytes]:
    """Yield a checkpoint as frames of bounded size."""
    empty = msgspec.structs.replace(checkpoint, **dict.fromkeys(_LISTS, ()))
    for name in _LISTS:
        entries = getattr(checkpoint, name)
        for start in range(0, len(entries), _CHUNK):
            part = msgspec.structs.replace(empty, **{name: entries[start : start + _CHUNK]})
            yield frame(_CheckpointPart(part, last=False))
    yield frame(_CheckpointPart(empty, last=True))


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that was read: its header, and the messages, the first of them a `Restore`."""

    header: Header
    messages: Iterable[Message]


def read_segment(data: bytes) -> Segment:
    """Take a segment apart."""
    if not data.startswith(MAGIC):
        raise RecordingError(
            f"this is no recording of this version: it starts with {data[: len(MAGIC)]!r}, "
            f"not with {MAGIC!r}"
        )
    frames = _frames(data)
    try:
        header = _header_decoder.decode(next(frames))
    except StopIteration:
        raise RecordingError("the recording ends before its header") from None
    except msgspec.MsgspecError as error:
        raise RecordingError(f"the header can't be read: {error}") from error
    return Segment(header, _messages(frames, started=header.started))


def _frames(data: bytes) -> Iterator[bytes]:
    position = len(MAGIC)
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if position + length > len(data):
            return
        yield data[position : position + length]
        position += length


def _messages(frames: Iterator[bytes], *, started: float) -> Iterator[Message]:
    parts: list[Checkpoint] = []
    for body in frames:
        try:
            decoded = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise RecordingError(f"a frame can't be read: {error}") from error
        if not isinstance(decoded, _CheckpointPart):
            yield decoded
            continue
        parts.append(decoded.part)
        if decoded.last:
            yield Restore(started, _joined(parts))
            parts = []


def _joined(parts: list[Checkpoint]) -> Checkpoint:
    lists = {name: tuple(e for part in parts for e in getattr(part, name)) for name in _LISTS}
    return msgspec.structs.replace(parts[-1], **lists)
