"""Small requests and their answers over connections of our own.

Two requests are most of what placing a pod costs, and a general HTTP client spends most of that on
what an API server never does: cookies, redirects, compression, upgrades. Here a request is a few
bytes put together, and what reads the answer is llhttp, by way of httptools. One request at a time
on a connection, nothing is sent twice, and an answer that does not end as HTTP requires is lost.

    new ──► connecting ──► idle ⇄ busy ──answered "close", lost, too long idle──► closed
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

import httptools

from k8s_scheduler.kube.http.protocol import Response

# A peer that vanished silently is noticed after about a minute.
_PROBE_AFTER_SECONDS: Final = 30
_PROBE_EVERY_SECONDS: Final = 10
_PROBES: Final = 3
# Answers below this status are interim ones.
_FINAL: Final = 200
# A caller may read Retry-After of a greater one.
_GREATEST_PLAIN: Final = 201
_NEVER: Final = float("inf")
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_NO_HTTP: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)


class LostError(ConnectionError):
    """The connection ended before the answer did."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The address of the server, and what its certificate is checked against."""

    host: str
    port: int
    context: ssl.SSLContext | None
    # The name in its certificate, if it is another than the host.
    name: str = ""


class HttpConnection(asyncio.Protocol):
    """One connection. Only its pool uses it, and accesses its fields directly, for speed."""

    # There when the pool gets it.
    transport: asyncio.Transport

    def __init__(self, gone: Callable[["HttpConnection"], None]) -> None:
        """Tell `gone` when the connection has ended, for whatever reason."""
        self._gone = gone
        self._parser = httptools.HttpResponseParser(self)
        # The wait for the answer to what was sent.
        self.answer: asyncio.Future[Response] | None = None
        # What came up to the first piece of the body, and all of the body.
        self._head = b""
        self._body: list[bytes] = []
        # Whether another request can be sent, unless the transport is closing.
        self.is_reusable = True
        self.idle_since = 0.0
        # When the wait is given up.
        self.deadline = 0.0

    def abort(self) -> None:
        self.is_reusable = False
        self.transport.abort()

    # For the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not derived from asyncio's, and have all that those have.
        self.transport = cast("asyncio.Transport", transport)
        probe(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self.answer is None:
            # Bytes without a request: the next answer on this connection could not be trusted.
            self.abort()
            return
        if not self._body:
            self._head += data
        try:
            self._parser.feed_data(data)
        except _NO_HTTP as error:
            self._fail(LostError(f"the answer is no HTTP: {error}"))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_reusable = False
        reason = " ".join(str(exc).split()) if exc else "the server closed the connection"
        self._fail(LostError(reason or type(exc).__name__))
        # It and its parser hold each other. The collector does not look at what was there when it
        # was last told to keep everything (`app/process/gc_pauses.py`), and below are
        # buffers of 256 KiB.
        del self._parser
        self._gone(self)

    def _fail(self, error: Exception) -> None:
        answer, self.answer = self.answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)

    # For the parser

    # Not of headers: a call for each of them would cost more than the rest of the answer.

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        body, self._body = b"".join(self._body), []
        if status < _FINAL:
            return
        head, self._head = self._head, b""
        answer, self.answer = self.answer, None
        if answer is None or not self._parser.should_keep_alive():
            # The former: an answer too many.
            self.is_reusable = False
        if answer is not None and not answer.done():
            plain = status <= _GREATEST_PLAIN
            answer.set_result(Response(status, body, _NO_HEADERS if plain else _headers(head)))


class _HeadReader:
    """Reads the head of an answer once more, for the few answers with a header that is read."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._is_read = False
        self.found: dict[str, str] = {}

    def read(self, head: bytes) -> None:
        """Take the bytes, as far as they are HTTP."""
        with suppress(*_NO_HTTP):
            self._parser.feed_data(head)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_read and name.lower() == b"retry-after":
            self.found["Retry-After"] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Stop at the end of the head, unless the answer is an interim one."""
        if self._is_read:
            return
        if self._parser.get_status_code() < _FINAL:
            self.found.clear()
        else:
            self._is_read = True


def _headers(head: bytes) -> Mapping[str, str]:
    """Return the headers that callers read, of the first answer in these bytes."""
    reader = _HeadReader()
    reader.read(head)
    return reader.found


class WirePool:
    """Connections to one server, as many as are needed up to a limit."""

    def __init__(self, peer: Peer, *, limit: int, idle_seconds: float) -> None:
        self._peer = peer
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._wires: set[HttpConnection] = set()
        # The one used last is used next: the others grow old and are closed.
        self._idle: list[HttpConnection] = []
        self._connecting = 0
        # Requests that wait for a connection; each looks again when it is woken.
        self._waiting: deque[asyncio.Future[None]] = deque()
        # One timer for the next deadline of all: one for each request costs more than its answer,
        # and nearly every answer comes in time.
        self._watcher: asyncio.TimerHandle | None = None
        self._next_deadline = _NEVER
        self._is_closed = False

    async def exchange(
        self, request: bytes, sending: Callable[[], None], *, deadline: float
    ) -> Response:
        """Send a request and return its answer; `sending` is told before the first byte leaves.

        Raises OSError: a LostError if there was a connection, a TimeoutError when the deadline
        (of the loop's clock) has passed, and what `sending` raises to hold the request back.
        """
        loop = asyncio.get_running_loop()
        wire = self._take_idle(loop.time()) if self._idle else None
        if wire is None:
            async with asyncio.timeout_at(deadline):
                wire = await self._get()
        try:
            sending()
        except OSError:
            self._give_back(wire, loop.time())
            raise
        answer: asyncio.Future[Response] = loop.create_future()
        wire.answer, wire.deadline = answer, deadline
        if deadline < self._next_deadline:
            self._watch(deadline)
        try:
            wire.transport.write(request)
            return await answer
        except BaseException:
            # Bytes that arrive on it later must not be taken for the answer to another request.
            wire.abort()
            raise
        finally:
            self._give_back(wire, loop.time())
            # The exception refers to this frame: without this the two would form a cycle.
            del answer

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    async def close(self) -> None:
        self._is_closed = True
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher, self._next_deadline = None, _NEVER
        for wire in list(self._wires):
            wire.abort()
        self._tell_all()

    async def _get(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        while True:
            if self._is_closed:
                raise ConnectionError("the transport is closed")
            wire = self._take_idle(loop.time())
            if wire is not None:
                return wire
            if len(self._wires) + self._connecting < self._limit:
                return await self._connect()
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    # This request was woken and is given up: wake the next one.
                    self._tell_one()
                raise

    def _take_idle(self, now: float) -> HttpConnection | None:
        while self._idle:
            wire = self._idle.pop()
            is_young = now - wire.idle_since < self._idle_seconds
            if is_young and wire.is_reusable and not wire.transport.is_closing():
                return wire
            wire.abort()
        return None

    async def _connect(self) -> HttpConnection:
        peer = self._peer
        self._connecting += 1
        try:
            _, wire = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(self._is_gone),
                peer.host,
                peer.port,
                ssl=peer.context,
                server_hostname=(peer.name or peer.host) if peer.context is not None else None,
            )
        except ssl.SSLCertVerificationError:
            # Its own request reports what is wrong.
            raise
        except OSError as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise ConnectionError(
                f"Cannot connect to host {peer.host}:{peer.port} [{why}]"
            ) from error
        finally:
            self._connecting -= 1
            self._tell_one()
        self._wires.add(wire)
        if self._is_closed:
            wire.abort()
        return wire

    def _watch(self, deadline: float) -> None:
        """Give up at this time, which is before all others, what has no answer by then."""
        if self._watcher is not None:
            self._watcher.cancel()
        self._next_deadline = deadline
        self._watcher = asyncio.get_running_loop().call_at(deadline, self._give_up)

    def _give_up(self) -> None:
        # Timers may come a little before their time, but not before that of their own request.
        due = max(self._next_deadline, asyncio.get_running_loop().time())
        self._watcher, self._next_deadline = None, _NEVER
        later = _NEVER
        for wire in self._wires:
            answer = wire.answer
            if answer is None or answer.done():
                continue
            if wire.deadline <= due:
                answer.set_exception(TimeoutError())
            else:
                later = min(later, wire.deadline)
        if later < _NEVER:
            self._watch(later)

    def _give_back(self, wire: HttpConnection, now: float) -> None:
        if wire.is_reusable and not self._is_closed and not wire.transport.is_closing():
            wire.idle_since = now
            self._idle.append(wire)
            if self._waiting:
                self._tell_one()
        else:
            wire.abort()

    def _is_gone(self, wire: HttpConnection) -> None:
        self._wires.discard(wire)
        if wire in self._idle:
            self._idle.remove(wire)
        self._tell_one()

    def _tell_one(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _tell_all(self) -> None:
        while self._waiting:
            self._tell_one()


def probe(connection: socket.socket | None) -> None:
    """Let the kernel notice a peer that has vanished."""
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_AFTER_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
