"""Answers of the proxy's own making, and what it makes of the API server's."""

import json
import random
from collections.abc import Iterator

from testbed.proxy.faults import REFUSALS, Fault
from testbed.proxy.wire import Head, Piece, chunk

_SLOW_PARTS = 8


def refusal(fault: Fault, *, retry_after_seconds: float = 0.0) -> bytes:
    """Return the whole answer of a server that has not executed the request."""
    code, reason, message = REFUSALS[fault]
    headers = ""
    if fault is Fault.THROTTLED:
        headers = f"Retry-After: {max(1, round(retry_after_seconds))}\r\n"
    return _status(code, reason, message, headers=headers)


def timeout() -> bytes:
    """Return what a gateway says that has waited long enough."""
    return _status(504, "Timeout", "the request timed out (made up by the proxy)")


def _status(code: int, reason: str, message: str, *, headers: str = "") -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    body = json.dumps(status).encode()
    head = (
        f"HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\n{headers}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def spoil(fault: Fault, content: bytes, draw: random.Random) -> bytes:
    """Return JSON that stops half-way, or never was any."""
    if fault is Fault.TRUNCATED:
        return content[: draw.randint(1, max(1, len(content) - 2))].rstrip(b"\n")
    return bytes(draw.choice(b'{}[]":,x\xff\x00 ') for _ in range(min(len(content), 200) or 1))


def spoilt_answer(head: Head, content: bytes) -> bytes:
    """Return an answer of its own right, whatever it says."""
    raw = head.with_headers(drop="content-length", Content_Length=str(len(content)))
    return raw + content


def spoilt_piece(fault: Fault, piece: Piece, draw: random.Random) -> bytes:
    """Return a chunk of a stream with one line that is no proper JSON."""
    return chunk(spoil(fault, piece.content, draw) + b"\n")


def cut_off(piece: Piece, draw: random.Random) -> bytes:
    """Return the beginning of a piece: less than all of what it says."""
    most = max(1, len(piece.framed) - 4)
    return piece.framed[: draw.randint(1, most)]


def in_small_parts(data: bytes) -> Iterator[bytes]:
    """Yield data in a few parts, none of them empty."""
    size = max(1, -(-len(data) // _SLOW_PARTS))
    for start in range(0, len(data), size):
        yield data[start : start + size]
