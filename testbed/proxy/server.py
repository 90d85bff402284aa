"""The proxy as a thread with a loop of its own, steered from any other thread.

    with FaultProxy(bed, seed=1) as proxy:
        proxy.log_in(folder)                  a kubeconfig that leads through it
        proxy.set_rules([Rule(...)])          from now on
        proxy.rotate(new_identity(folder))    another certificate; connections are made anew

A connection is first accepted and then made secure by hand, because one of the faults lies in
between: accepted, and then nothing.
"""

import asyncio
import functools
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit

from testbed.bed import Bed
from testbed.installation import NAMESPACE, SERVICE_ACCOUNT
from testbed.layout import Layout
from testbed.options import API_SERVER
from testbed.ports import choose_ports
from testbed.proxy.certificates import (
    Identity,
    bed_identity,
    server_context,
    subject_of,
    upstream_context,
)
from testbed.proxy.choosing import Chooser
from testbed.proxy.faults import Fault, RequestClass, Rule
from testbed.proxy.journal import Journal
from testbed.proxy.login import Login
from testbed.proxy.relay import Pair, Relay, Upstream, open_upstream
from testbed.proxy.wire import HEAD_LIMIT

T = TypeVar("T")

_BACKLOG = 128
_HANDSHAKE_SECONDS = 10.0
_TOKEN_SECONDS = 86400
_CLOSING_SECONDS = 0.01  # what was aborted is closed in a later turn of the loop


class FaultProxy:
    """Stands before the API server of a bed."""

    def __init__(
        self, bed: Bed, *, seed: int | str, name: str = "proxy", journal: Journal | None = None
    ) -> None:
        self.name = name
        self.journal = journal or Journal()
        self._bed = bed
        self._layout = Layout(bed.state_dir)
        address = urlsplit(bed.url(API_SERVER))
        self._target = (str(address.hostname), int(address.port or 0))
        self._chooser = Chooser(f"{seed}/{name}")
        (self.port,) = choose_ports(1, taken=set())
        self._plain = upstream_context(self._layout, speaks_for_others=False)
        self._speaking = upstream_context(self._layout, speaks_for_others=True)
        self._show(bed_identity(self._layout))
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        # Accepted; their tasks have not begun, and never begin if they are cancelled first.
        self._accepted: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._accepting: asyncio.Task[None] | None = None

    # Life

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"https://127.0.0.1:{self.port}"

    # Steering

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """Put these rules in force in place of those before."""
        self._chooser.set_rules(rules)

    def expire(self, folder: Path) -> None:
        """Answer 401 from now on to requests with the token of this login."""
        self._chooser.expire(Login(folder).token)

    def drop_connections(self) -> None:
        """Reset every connection there is; watches are made anew and meet the rules then."""
        self._do(self._drop)

    def rotate(self, identity: Identity) -> None:
        """Show another certificate, and end all connections made under the old one."""
        self.journal.injected(self.name, Fault.ROTATED)
        self._do(functools.partial(self._rotate, identity))

    def log_in(self, folder: Path) -> Path:
        """Log the scheduler's account in through here; return the kubeconfig.

        It names files for token and authority, which are the part of a login that may change: done
        again, both are renewed.
        """
        token = self._bed.token_for_service_account(
            NAMESPACE, SERVICE_ACCOUNT, lifetime_seconds=_TOKEN_SECONDS
        )
        login = Login(folder)
        login.renew(token=token, ca_pem=self._identity.ca_pem)
        return login.write_kubeconfig(self.url)

    # In the loop

    def _do(self, act: Callable[[], T]) -> T:
        async def call() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _show(self, identity: Identity) -> None:
        self._identity = identity
        self._context = server_context(identity, client_ca=self._layout.ca)

    def _rotate(self, identity: Identity) -> None:
        self._show(identity)
        self._drop()

    def _drop(self) -> None:
        for connection in self._connections:
            connection.cancel()

    def _open(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(_BACKLOG)
        listener.settimeout(0)
        self._accepting = self._loop.create_task(self._accept(listener))

    async def _close(self) -> None:
        tasks = [*self._connections, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(_CLOSING_SECONDS)

    async def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                endpoint, _ = await self._loop.sock_accept(listener)
                self._take(endpoint)

    def _take(self, endpoint: socket.socket) -> None:
        self._accepted.add(endpoint)
        connection = self._loop.create_task(self._meet(endpoint))
        self._connections.add(connection)
        connection.add_done_callback(functools.partial(self._leave, endpoint))

    def _leave(self, endpoint: socket.socket, connection: asyncio.Task[None]) -> None:
        self._connections.discard(connection)
        if endpoint in self._accepted:
            self._accepted.discard(endpoint)
            endpoint.close()

    async def _meet(self, endpoint: socket.socket) -> None:
        self._accepted.discard(endpoint)
        rule, _ = self._chooser.choose(RequestClass.CONNECTION)
        if rule.fault is Fault.HALF_OPEN:
            self.journal.injected(self.name, rule.fault)
            with endpoint:
                await asyncio.sleep(rule.seconds)
            return
        try:
            client = await self._secure(endpoint)
        except (OSError, EOFError, ssl.SSLError):
            endpoint.close()  # the client refused our certificate, or went away
            return
        relay = Relay(
            client,
            self._upstream_for(client),
            through=self.name,
            chooser=self._chooser,
            journal=self.journal,
        )
        await relay.run()

    async def _secure(self, endpoint: socket.socket) -> Pair:
        reader = asyncio.StreamReader(limit=HEAD_LIMIT)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol,
            endpoint,
            ssl=self._context,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    def _upstream_for(self, client: Pair) -> Upstream:
        user, groups = subject_of(client[1].get_extra_info("peercert"))
        context = self._speaking if user else self._plain
        return Upstream(
            connect=functools.partial(open_upstream, *self._target, context),
            user=user,
            groups=groups,
        )
