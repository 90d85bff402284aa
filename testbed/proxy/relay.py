"""One connection of a client, request by request, to one connection of its own upstream.

    read a request ─▶ choose ─▶ refuse, reset, keep silent ─────────────▶ next, or the end
         ▲               └────▶ pass on ─▶ answer, perhaps spoilt, slow, cut or withheld
         └────────────────────────────────────────────┘

The upstream connection is made when it is first needed and again when the API server has closed
it. If the API server can't be reached, the client's connection is reset, as by a load balancer
whose only backend is down.
"""

import asyncio
import contextlib
import random
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from testbed.proxy import answers
from testbed.proxy.choosing import NOTHING, Chooser
from testbed.proxy.faults import REFUSALS, Fault, RequestClass, Rule, classify
from testbed.proxy.journal import Journal
from testbed.proxy.wire import (
    HEAD_LIMIT,
    Head,
    Piece,
    ProtocolError,
    pieces,
    read_body,
    read_head,
)

_SPOILING = frozenset({Fault.TRUNCATED, Fault.GARBAGE})
_HARMS = _SPOILING | {Fault.CUT, Fault.SLOW}
_AFTER = frozenset({Fault.TIMEOUT_AFTER, Fault.RESET_AFTER, Fault.SILENCE_AFTER})
_LATEST_CUT = 3  # a stream is cut at one of its first pieces
_ARRIVAL_SECONDS = 0.02
_GOODBYE_SECONDS = 1.0
_LOST = (OSError, EOFError, ProtocolError, ssl.SSLError)

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Ended(Exception):  # noqa: N818  it is no error: the connection is over
    """The client's connection is over; it was reset if it had to be."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """The API server: how to reach it, and what is said of a client that showed a certificate."""

    connect: Callable[[], Awaitable[Pair]]
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Request:
    kind: RequestClass
    head: Head
    raw: bytes
    began: float


class Relay:
    """Carries one client's requests to the API server and what it says back, or spoils it."""

    def __init__(
        self, client: Pair, upstream: Upstream, *, through: str, chooser: Chooser, journal: Journal
    ) -> None:
        self._reader, self._writer = client
        self._upstream = upstream
        self._through = through
        self._chooser = chooser
        self._journal = journal
        self._server: Pair | None = None
        # The first byte of the next request, if it came before its turn.
        self._early = b""

    async def run(self) -> None:
        """Serve the client until either side is done."""
        try:
            while (head := await read_head(self._reader, early=self._early)) is not None:
                self._early = b""
                body = await read_body(head, self._reader)
                await self._serve(head, body)
        except (*_LOST, asyncio.CancelledError) as error:
            reset(self._writer)
            if isinstance(error, asyncio.CancelledError):
                raise
        except _Ended:
            pass
        finally:
            self._hang_up()
            await self._say_goodbye()

    async def _say_goodbye(self) -> None:
        """Close politely what was not reset; a client that does not answer is left alone."""
        self._writer.close()
        with contextlib.suppress(TimeoutError, *_LOST):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._writer.wait_closed()
        _abort(self._writer)

    async def _serve(self, head: Head, body: bytes) -> None:
        method, target, _ = head.first
        request = _Request(classify(method, target), head, body, self._journal.now())
        rule, draw = self._chooser.choose(
            request.kind, target=target, authorization=head.headers.get("authorization", "")
        )
        fault = rule.fault
        if fault in REFUSALS:
            self._note(request, rule)
            await self._say(answers.refusal(fault, retry_after_seconds=rule.seconds))
        elif fault in {Fault.RESET, Fault.SILENCE}:
            self._note(request, rule)
            await self._withhold(rule)
        else:
            if fault is Fault.LATENCY and rule is not NOTHING:
                self._note(request, rule)
                await asyncio.sleep(rule.seconds)
            await self._pass_on(request, rule, draw)

    # The way there

    async def _pass_on(self, request: _Request, rule: Rule, draw: random.Random) -> None:
        reader, writer = await self._connected()
        status = 0
        try:
            writer.write(self._introduced(request.head) + request.raw)
            await writer.drain()
            head = await read_head(reader)
            if head is None:
                raise ProtocolError("the API server closed the connection instead of answering")
            status = int(head.first[1])
        finally:
            if request.kind is RequestClass.BINDING:
                target = request.head.first[1]
                self._journal.binding(self._through, target, began=request.began, status=status)
        await self._answer(request, head, rule, draw)
        if head.closes or request.head.closes:
            raise _Ended

    def _introduced(self, head: Head) -> bytes:
        """Return the head with what is known of the client; it may not speak for itself."""
        if not self._upstream.user:
            return head.raw
        raw = head.with_headers(drop="x-remote-", X_Remote_User=self._upstream.user)
        groups = "".join(f"X-Remote-Group: {group}\r\n" for group in self._upstream.groups)
        return raw[:-2] + groups.encode() + b"\r\n"

    async def _connected(self) -> Pair:
        if self._server is not None and self._server[0].at_eof():
            self._hang_up()
        if self._server is None:
            self._server = await self._upstream.connect()
        return self._server

    def _hang_up(self) -> None:
        if self._server is not None:
            _abort(self._server[1])
            self._server = None

    # The way back

    async def _answer(self, request: _Request, head: Head, rule: Rule, draw: random.Random) -> None:
        status = int(head.first[1])
        streams = head.is_chunked and request.kind is RequestClass.WATCH
        if rule.fault in _AFTER:
            if streams:  # nothing was written: the stream is lost before it begins
                self._hang_up()
            else:
                await read_body(head, self._connected_reader())
            self._note(request, rule, status=status)
            if rule.fault is Fault.TIMEOUT_AFTER:
                await self._say(answers.timeout())
            else:
                await self._withhold(rule)
        elif rule.fault in _SPOILING and not streams:
            body = await read_body(head, self._connected_reader())
            self._note(request, rule, status=status)
            spoilt = answers.spoil(rule.fault, body, draw)
            plain = Head(head.with_headers(drop="transfer-encoding"), head.first, head.headers)
            await self._say(answers.spoilt_answer(plain, spoilt))
        else:
            await self._stream(request, head, rule, draw)

    def _connected_reader(self) -> asyncio.StreamReader:
        if self._server is None:  # pragma: no cover - an answer has come from it
            raise ProtocolError("no connection to the API server")
        return self._server[0]

    async def _stream(self, request: _Request, head: Head, rule: Rule, draw: random.Random) -> None:
        """Pass the answer on while it comes; one of its pieces may come to harm."""
        await self._say(head.raw)
        # Only a stream has pieces enough to choose from; another answer may be one chunk long.
        streams = head.is_chunked and request.kind is RequestClass.WATCH
        turn = draw.randint(0, _LATEST_CUT) if streams else 0
        harms = rule.fault in _HARMS
        number = 0
        async for piece in self._until_gone(pieces(head, self._connected_reader())):
            # A stream may have nothing to say until long after the rule is taken back.
            harms = harms and self._chooser.is_in_force(rule)
            if harms and piece.content and number >= turn:
                harms = False
                self._note(request, rule, status=int(head.first[1]))
                await self._harm(piece, rule, draw)
            else:
                await self._say(piece.framed)
            number += 1

    async def _harm(self, piece: Piece, rule: Rule, draw: random.Random) -> None:
        if rule.fault is Fault.CUT:
            await self._say(answers.cut_off(piece, draw))
            # What was written is to arrive before the reset does.
            await asyncio.sleep(_ARRIVAL_SECONDS)
            reset(self._writer)
            raise _Ended
        if rule.fault is Fault.SLOW:
            await self._drip(piece.framed, rule.seconds)
        else:
            await self._say(answers.spoilt_piece(rule.fault, piece, draw))

    async def _until_gone(self, coming: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        """Yield pieces to the end; a client that goes away meanwhile ends the connection."""
        sign = asyncio.ensure_future(self._reader.read(1))
        piece = asyncio.ensure_future(_next(coming))
        try:
            while True:
                await asyncio.wait({piece, sign}, return_when=asyncio.FIRST_COMPLETED)
                if sign.done() and not sign.result():
                    raise _Ended
                if (found := await piece) is None:
                    return
                yield found
                piece = asyncio.ensure_future(_next(coming))
        finally:
            await _cancelled(piece)
            await _cancelled(sign)
            if not sign.cancelled() and sign.exception() is None:
                self._early = sign.result()

    async def _drip(self, data: bytes, seconds: float) -> None:
        parts = list(answers.in_small_parts(data))
        for part in parts:
            await self._say(part)
            await asyncio.sleep(seconds / len(parts))

    async def _say(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def _withhold(self, rule: Rule) -> None:
        """Say nothing until the client gives up or the time is over, then reset."""
        if rule.fault in {Fault.SILENCE, Fault.SILENCE_AFTER}:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reader.read(1), rule.seconds)
        reset(self._writer)
        raise _Ended

    def _note(self, request: _Request, rule: Rule, *, status: int = 0) -> None:
        method, target, _ = request.head.first
        self._journal.injected(
            self._through,
            rule.fault,
            kind=request.kind,
            method=method,
            target=target,
            upstream_status=status,
        )


async def _next(coming: AsyncIterator[Piece]) -> Piece | None:
    return await anext(coming, None)


async def _cancelled(task: asyncio.Future[Any]) -> None:
    """Make sure that a task is over, and that nobody complains of how it ended."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with a reset, not with a polite goodbye."""
    endpoint = writer.get_extra_info("socket")
    if endpoint is not None:
        with contextlib.suppress(OSError):
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    _abort(writer)


async def open_upstream(host: str, port: int, context: ssl.SSLContext) -> Pair:
    """Connect to the API server."""
    return await asyncio.open_connection(host, port, ssl=context, limit=HEAD_LIMIT)


def _abort(writer: asyncio.StreamWriter) -> None:
    """End a connection at once; Pythons before 3.11.3 raise if TLS has let go of it already."""
    with contextlib.suppress(AttributeError):
        writer.transport.abort()
