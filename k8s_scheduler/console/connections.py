"""Takes connections, no more of them than a stated number in all and from one address.

Every connection costs memory and a file descriptor before a request is read, and any pod that can
reach the port can open one. Two limits: an address that has its share is refused; when all places
are taken, the address with the most connections loses its oldest one. So the kubelet's probe and a
scraper, which have one or two, always get a place, however many a client opens elsewhere.

    accept ──too many of the address──► closed
       └──► handshake ──failed, or too slow──► closed
               └──► served ──either side closes, or its place is needed──► closed

asyncio's own server does not show who connects before the handshake is done, so connections are
accepted here. The TLS context is read for each, so a renewed certificate needs nothing more.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.kube.bounded_log import BoundedLog

logger = logging.getLogger(__name__)

MOST: Final = 256
MOST_PER_ADDRESS: Final = 32
_HANDSHAKE_SECONDS: Final = 10.0
# After an error of accept(): no file descriptor left, as a rule.
_PAUSE_SECONDS: Final = 1.0

Factory = Callable[[], asyncio.Protocol]


@dataclass(eq=False, slots=True)
class _Connection:
    address: str
    task: asyncio.Task[None] | None = None
    lost: asyncio.Event = field(default_factory=asyncio.Event)


class _Counted(asyncio.Protocol):
    """Passes everything on to the HTTP protocol, and tells when the connection is over."""

    def __init__(self, inner: asyncio.Protocol, lost: asyncio.Event) -> None:
        self._inner = inner
        self._lost = lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._inner.connection_lost(exc)


class Connections:
    """Accepts on a socket for as long as `run` runs."""

    def __init__(
        self,
        listening: socket.socket,
        factory: Factory,
        *,
        context: Callable[[], ssl.SSLContext],
        most: int = MOST,
        most_per_address: int = MOST_PER_ADDRESS,
    ) -> None:
        listening.setblocking(False)  # noqa: FBT003 - the signature is the socket module's
        self._listening = listening
        self._factory = factory
        self._context = context
        self._most = most
        self._most_per_address = most_per_address
        # Oldest first; of each address, oldest first.
        self._by_address: dict[str, dict[_Connection, None]] = {}
        self._count = 0
        self._log = BoundedLog(logger, asyncio.get_running_loop().time)

    def __len__(self) -> int:
        return self._count

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(self._listening)
            except OSError as error:
                self._log.warning("accept", "no connection could be accepted: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            connection = self._admit(str(peer[0]))
            if connection is None:
                accepted.close()
            else:
                connection.task = loop.create_task(self._serve(connection, accepted))

    async def close(self) -> None:
        tasks = [
            connection.task
            for connections in self._by_address.values()
            for connection in connections
            if connection.task is not None
        ]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _admit(self, address: str) -> _Connection | None:
        """Give a new connection a place, if need be that of an older one; None refuses it."""
        own = self._by_address.get(address, {})
        if len(own) >= self._most_per_address:
            text = "connections are refused: an address has more than %d"
            self._log.warning("address", text, self._most_per_address)
            return None
        if self._count >= self._most:
            self._log.warning("all", "connections are closed: there are more than %d", self._most)
            crowd = max(self._by_address.values(), key=len)
            if len(own) >= len(crowd):
                return None
            oldest = next(iter(crowd))
            self._forget(oldest)
            if oldest.task is not None:
                oldest.task.cancel()
        connection = _Connection(address)
        self._by_address.setdefault(address, {})[connection] = None
        self._count += 1
        return connection

    def _forget(self, connection: _Connection) -> None:
        connections = self._by_address.get(connection.address)
        if connections is None or connection not in connections:
            return
        del connections[connection]
        if not connections:
            del self._by_address[connection.address]
        self._count -= 1

    async def _serve(self, connection: _Connection, accepted: socket.socket) -> None:
        transport: asyncio.BaseTransport | None = None
        try:
            # The loop owns the socket from here on, also if the handshake fails.
            with contextlib.suppress(OSError, TimeoutError):
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: _Counted(self._factory(), connection.lost),
                    accepted,
                    ssl=self._context(),
                    ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                )
                await connection.lost.wait()
        finally:
            self._forget(connection)
            if isinstance(transport, asyncio.WriteTransport) and not connection.lost.is_set():
                transport.abort()
