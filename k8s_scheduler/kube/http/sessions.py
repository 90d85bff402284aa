"""Connections to the API server, and how they change hands when credentials rotate.

    new ──► current ──generation moved on──► retired ──last user gone──► closed

Requests and watches have connections of their own, so that long-lived watches never take the
place of a binding. A retired pair takes no new work; what is under way on it comes to its end.

Requests have connections of our own (`connections`), unless there is a proxy; watches use aiohttp.
Its settings follow from measurements: no cookies, no decompression (we ask for none), no timeouts
of its own (one deadline around each call), and no retries of its own, because it would silently
repeat a PUT when the answer was lost.
"""

import asyncio
import socket
import ssl
from typing import Final

import aiohttp
from aiohttp.abc import AbstractCookieJar
from aiohttp.connector import AddrInfoType
from yarl import URL

from k8s_scheduler.kube.auth.loading import Credentials
from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.http.connections import Peer, WirePool, probe
from k8s_scheduler.kube.http.request_attempts import MarkingRequest
from k8s_scheduler.kube.workers import REQUEST_CONNECTIONS

# Below the 90 s after which the API server closes an idle connection, so that we close first.
KEEP_ALIVE_SECONDS: Final = 60.0


class Pair:
    """The connections of one generation of credentials."""

    def __init__(self, credentials: Credentials) -> None:
        self.generation = credentials.generation
        # Only aiohttp knows how to talk to a proxy.
        self.requests: WirePool | aiohttp.ClientSession = (
            _session(credentials, limit=REQUEST_CONNECTIONS)
            if credentials.proxy_url
            else WirePool(
                _peer(credentials), limit=REQUEST_CONNECTIONS, idle_seconds=KEEP_ALIVE_SECONDS
            )
        )
        self.watches = _session(credentials, limit=0)
        self.users = 0
        self.retired = False

    async def close(self) -> None:
        await self.requests.close()
        await self.watches.close()


class Sessions:
    """The current pair, and the retired ones that are still in use."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._current: Pair | None = None
        self._pairs: set[Pair] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def take(self) -> Pair:
        pair = self._current
        if pair is None or pair.generation != self._credentials.generation:
            pair = self._renew()
        pair.users += 1
        return pair

    def give_back(self, pair: Pair) -> None:
        pair.users -= 1
        if pair.retired:
            self._close_if_done(pair)

    async def close(self) -> None:
        """Close everything, even what is in use; nothing can be sent any more."""
        self._closed = True
        pairs, self._pairs, self._current = self._pairs, set(), None
        for pair in pairs:
            await pair.close()
        if self._closing:
            await asyncio.gather(*self._closing)

    def _renew(self) -> Pair:
        if self._closed:
            raise NotSent("the transport is closed")
        former, self._current = self._current, Pair(self._credentials)
        self._pairs.add(self._current)
        if former is not None:
            former.retired = True
            self._close_if_done(former)
        return self._current

    def _close_if_done(self, pair: Pair) -> None:
        if pair.retired and pair.users == 0 and pair in self._pairs:
            self._pairs.discard(pair)
            task = asyncio.get_running_loop().create_task(pair.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _peer(credentials: Credentials) -> Peer:
    server = URL(credentials.server, encoded=True)
    context = credentials.ssl_context() if server.scheme == "https" else None
    if context is None and server.scheme == "https":
        context = ssl.create_default_context()
    return Peer(server.host or "", server.port or 0, context, credentials.tls_server_name)


def _session(credentials: Credentials, *, limit: int) -> aiohttp.ClientSession:
    context = credentials.ssl_context()
    connector = aiohttp.TCPConnector(
        ssl=True if context is None else context,
        limit=limit,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        socket_factory=_probed_socket,
    )
    jar: AbstractCookieJar = aiohttp.DummyCookieJar()
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=jar,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        request_class=MarkingRequest,
        proxy=credentials.proxy_url or None,
    )
    # There is no public switch for this; aiohttp's own test client sets it the same way.
    session._retry_connection = False  # noqa: SLF001
    return session


def _probed_socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    probe(made)
    return made
