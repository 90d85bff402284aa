"""HTTP/1.1 as the API server and its clients speak it: heads, and bodies as pieces.

Bodies come as pieces that carry their framing, so that passing one on is writing it. A piece of a
chunked body is one chunk, which for a watch is one event, or some.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

HEAD_LIMIT = 1 << 20
_PIECE_BYTES = 1 << 16
_HEAD_END = b"\r\n\r\n"


class ProtocolError(Exception):
    """Something that this proxy does not speak."""


@dataclass(frozen=True, slots=True)
class Head:
    """First line and headers, as they came and by lower-case name."""

    raw: bytes
    first: tuple[str, str, str]
    headers: dict[str, str]

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    @property
    def length(self) -> int:
        """How long the body is, where that is said."""
        return int(self.headers.get("content-length", "0"))

    @property
    def closes(self) -> bool:
        """Whether the connection ends with this message."""
        return self.headers.get("connection", "").lower() == "close"

    def with_headers(self, *, drop: str = "", **added: str) -> bytes:
        """Return the head without headers that start with `drop`, and with others."""
        lines = self.raw[: -len(_HEAD_END)].split(b"\r\n")
        if drop:
            lines = [line for line in lines if not line.lower().startswith(drop.encode())]
        lines += [f"{name.replace('_', '-')}: {text}".encode() for name, text in added.items()]
        return b"\r\n".join(lines) + _HEAD_END


async def read_head(reader: asyncio.StreamReader, *, early: bytes = b"") -> Head | None:
    """Read the head of a message; None if the connection ended before it began.

    `early` is what was read of it already, and less than all of it.
    """
    try:
        raw = early + await reader.readuntil(_HEAD_END)
    except asyncio.IncompleteReadError as error:
        if early or error.partial:
            raise ProtocolError("the connection ended within a head") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise ProtocolError("a head is too long") from error
    lines = raw.decode("latin-1").split("\r\n")
    first = lines[0].split(" ", 2)
    if len(first) != 3:
        raise ProtocolError(f"no HTTP: {lines[0]!r}")
    headers = {}
    for line in lines[1:]:
        name, colon, text = line.partition(":")
        if colon:
            headers[name.strip().lower()] = text.strip()
    return Head(raw, (first[0], first[1], first[2]), headers)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a body: what it says, and the bytes that carry it."""

    content: bytes
    framed: bytes


async def pieces(head: Head, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
    """Yield a body to its end; IncompleteReadError if it is cut."""
    if not head.is_chunked:
        left = head.length
        while left:
            content = await reader.read(min(left, _PIECE_BYTES))
            if not content:
                raise asyncio.IncompleteReadError(content, left)
            left -= len(content)
            yield Piece(content, content)
        return
    while True:
        size = await reader.readuntil(b"\r\n")
        length = int(size.split(b";")[0], 16)
        content = await reader.readexactly(length + 2)
        yield Piece(content[:-2], size + content)
        if length == 0:
            return


async def read_body(head: Head, reader: asyncio.StreamReader) -> bytes:
    """Read a whole body."""
    return b"".join([piece.content async for piece in pieces(head, reader)])


def chunk(content: bytes) -> bytes:
    """Return some content as a chunk."""
    return b"%x\r\n%s\r\n" % (len(content), content)
