"""How many connections there may be, over real sockets on loopback and both event loops."""

import asyncio
import errno
import socket
import ssl
from pathlib import Path

import pytest
import uvloop

from k8s_scheduler.console import connections as module
from k8s_scheduler.console.certificates import SelfSigned
from k8s_scheduler.console.connections import Connections

CERTIFICATE = SelfSigned()
TRUSTING = ssl.create_default_context(cadata=CERTIFICATE.certificate_pem.decode())
CROWD, KUBELET, SCRAPER = "127.0.0.1", "127.0.0.2", "127.0.0.3"


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


class Server:
    """Connections on a port of their own."""

    def __init__(self, *, most=6, most_per_address=4):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.connections = Connections(
            self.listening,
            Echo,
            context=lambda: CERTIFICATE.context,
            most=most,
            most_per_address=most_per_address,
        )
        self.opened = []

    async def __aenter__(self):
        self.task = asyncio.create_task(self.connections.run())
        return self

    async def __aexit__(self, *_):
        for writer in self.opened:
            writer.transport.abort()
        self.task.cancel()
        await asyncio.wait([self.task])
        self.listening.close()
        await self.connections.close()
        assert len(self.connections) == 0

    async def connect(self, address, tls=None):
        """Open a connection from an address; without TLS nothing is said on it."""
        reader, writer = await asyncio.open_connection(
            *self.listening.getsockname(), local_addr=(address, 0), ssl=tls
        )
        self.opened.append(writer)
        return reader, writer

    async def hold(self, count):
        """Wait until there are so many connections."""
        async with asyncio.timeout(20):
            while len(self.connections) != count:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


async def echoes(reader, writer):
    writer.write(b"hello")
    async with asyncio.timeout(20):
        return await reader.read(5) == b"hello"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


def test_an_address_that_has_its_share_is_refused_and_others_are_served(run):
    async def story():
        async with Server() as server:
            held = [await server.connect(CROWD) for _ in range(4)]
            await server.hold(4)
            refused, _ = await server.connect(CROWD)
            assert await refused.read() == b""
            assert await echoes(*await server.connect(KUBELET, TRUSTING))
            assert len(held) == 4 < len(server.connections)

    run(story())


def test_when_all_places_are_taken_the_largest_crowd_loses_its_oldest(run):
    async def story():
        async with Server() as server:
            oldest, _ = await server.connect(CROWD)
            await server.hold(1)
            for count in range(2, 5):
                await server.connect(CROWD)
                await server.hold(count)
            kubelet = await server.connect(KUBELET, TRUSTING)
            await server.connect(KUBELET)
            await server.hold(6)
            assert await echoes(*await server.connect(SCRAPER, TRUSTING))
            assert await oldest.read() == b""
            assert await echoes(*kubelet)
            assert len(server.connections) == 6

    run(story())


def test_whoever_has_the_most_gets_no_place_of_others(run):
    async def story():
        async with Server(most=2, most_per_address=2) as server:
            first = await server.connect(CROWD, TRUSTING)
            second = await server.connect(KUBELET, TRUSTING)
            refused, _ = await server.connect(CROWD)
            assert await refused.read() == b""
            assert await echoes(*first)
            assert await echoes(*second)

    run(story())


def test_a_failed_handshake_gives_back_place_and_file_descriptor(run):
    async def story():
        async with Server() as server:
            before = open_files()
            for _ in range(10):
                reader, writer = await server.connect(CROWD)
                writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                await reader.read()
                writer.transport.abort()
                await server.hold(0)
            await asyncio.sleep(0)
            assert open_files() <= before + 1

    run(story())


def test_a_client_that_never_begins_the_handshake_is_not_waited_for(run, monkeypatch):
    monkeypatch.setattr(module, "_HANDSHAKE_SECONDS", 0.2)

    async def story():
        async with Server() as server, asyncio.timeout(20):
            reader, _ = await server.connect(CROWD)
            assert await reader.read() == b""
            await server.hold(0)

    run(story())


async def test_without_a_file_descriptor_it_waits_and_goes_on(monkeypatch, caplog):
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.01)
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, [OSError(errno.EMFILE, "Too many open files")]

    async def failing(listening):
        if failures:
            raise failures.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", failing)
    async with Server() as server:
        assert await echoes(*await server.connect(CROWD, TRUSTING))
    assert "Too many open files" in caplog.text
    assert not failures
