"""Splits the bytes of a watch into lines, and names the ways in which a watch fails.

Chunks end anywhere. Each is split once; what is left of the last line waits as a list of pieces
and is joined when its end arrives, so a line of many chunks is copied once and not once per chunk.
"""

from typing import Final

from k8s_scheduler.kube.errors import TransportError

# etcd refuses objects far below this size: a longer line is no event, and must not fill memory.
MAX_LINE_BYTES: Final = 64 * 1024 * 1024

STALLED: Final = "stalled"
SHORT: Final = "short"
INCOMPLETE: Final = "incomplete"
MALFORMED: Final = "malformed"


class StreamError(TransportError):
    """A watch that answered and then was of no use; `reason` is one of the constants above."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LineSplitter:
    """Feed chunks, get the lines that they complete."""

    __slots__ = ("_length", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk and return the complete lines, without their ends and without empty ones."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._length = 0
        if rest:
            self._pieces.append(rest)
            self._length += len(rest)
            if self._length > MAX_LINE_BYTES:
                raise StreamError(MALFORMED, f"a line exceeds {MAX_LINE_BYTES} bytes")
        return [line for line in lines if line]
