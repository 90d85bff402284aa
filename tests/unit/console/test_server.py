"""Health and metrics over real TLS sockets on loopback."""

import asyncio
import contextlib
import socket
import ssl
import threading

import aiohttp
import pytest
import uvloop
from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily

from k8s_scheduler.console.certificates import CertificateFiles, SelfSigned
from k8s_scheduler.console.gate import HealthOnly
from k8s_scheduler.console.health import Check
from k8s_scheduler.console.open_paths import OpenPaths
from k8s_scheduler.console.server import Endpoints, serve
from tests.builders import make_pod
from tests.fakes.certificates import Issued
from tests.unit.console.test_certificates import make_pair

CERTIFICATE = SelfSigned()
# Who may see what is a matter of its own: test_gate.py.
EVERYBODY = HealthOnly(OpenPaths(["*"]))


@contextlib.asynccontextmanager
async def serving(**endpoints):
    """Serve on a free port; yield a function that gets a path."""
    endpoints.setdefault("registry", CollectorRegistry())
    server = await serve(
        Endpoints(**endpoints), CERTIFICATE, bind_address="127.0.0.1", port=None, gate=EVERYBODY
    )
    trusting = ssl.create_default_context(cadata=CERTIFICATE.certificate_pem.decode())
    try:
        async with aiohttp.ClientSession(
            f"https://127.0.0.1:{server.port}",
            connector=aiohttp.TCPConnector(ssl=trusting),
            timeout=aiohttp.ClientTimeout(total=20),
        ) as session:

            async def get(path, method="GET"):
                async with session.request(method, path) as response:
                    return response.status, await response.text(), response.headers

            yield get
    finally:
        await server.close()


@contextlib.asynccontextmanager
async def connected():
    """Serve on a free port; yield a connection to it that nothing was said on."""
    endpoints = Endpoints(registry=CollectorRegistry())
    server = await serve(endpoints, CERTIFICATE, bind_address="127.0.0.1", port=None)
    trusting = ssl.create_default_context(cadata=CERTIFICATE.certificate_pem.decode())
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
        yield reader, writer
        writer.transport.abort()
    finally:
        await server.close()


async def ask_for_ever(writer):
    """Send one request after the other."""
    while True:
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        await writer.drain()


class TestHealth:
    """Probes get 200 or 503 and a page that says why."""

    @pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz"])
    async def test_without_checks_all_is_well(self, path):
        async with serving() as get:
            status, text, headers = await get(path)
        assert (status, text) == (200, "ok")
        assert headers["Content-Type"] == "text/plain; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"

    async def test_each_page_has_its_own_checks(self):
        checks = {
            name: [Check(f"{name}-check", lambda name=name: f"{name} is bad")]
            for name in ("livez", "healthz", "readyz")
        }
        async with serving(**checks) as get:
            for name in checks:
                status, text, _ = await get(f"/{name}")
                assert status == 503
                assert text == f"[-]{name}-check failed: {name} is bad\n{name} check failed\n"

    async def test_checks_are_asked_with_every_probe(self):
        problems = ["handlers are not fully synchronized", None]
        check = Check("sched-handler-sync", lambda: problems.pop(0))
        async with serving(readyz=[check]) as get:
            assert (await get("/readyz"))[0] == 503
            assert (await get("/readyz"))[:2] == (200, "ok")

    async def test_verbose_lists_the_checks(self):
        async with serving(livez=[Check("ping", lambda: None)]) as get:
            assert (await get("/livez?verbose"))[1] == "[+]ping ok\nlivez check passed\n"

    async def test_only_readyz_says_the_role(self):
        async with serving(role=lambda: "standby") as get:
            assert (await get("/readyz"))[:2] == (200, "ok\nrole: standby\n")
            assert (await get("/livez"))[1] == "ok"


class TestMetrics:
    """Prometheus text of the whole registry, off the loop."""

    async def test_metrics_are_prometheus_text(self):
        registry = CollectorRegistry()
        Counter("things", "Things seen.", registry=registry).inc(3)
        async with serving(registry=registry) as get:
            status, text, headers = await get("/metrics")
        assert status == 200
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "things_total 3.0\n" in text

    async def test_a_slow_scrape_does_not_hold_the_loop(self):
        collecting, go_on = threading.Event(), threading.Event()

        class Slow:
            def collect(self):
                collecting.set()
                assert go_on.wait(timeout=20)
                yield GaugeMetricFamily("slow", "Took its time.", value=1)

            def describe(self):
                return []

        registry = CollectorRegistry()
        registry.register(Slow())
        async with serving(registry=registry) as get:
            scrape = asyncio.create_task(get("/metrics"))
            await asyncio.to_thread(collecting.wait)
            assert (await get("/livez"))[1] == "ok"
            go_on.set()
            assert "slow 1.0" in (await scrape)[1]


class TestPodResources:
    """The page of all pods is sent in pieces, to one reader after the other."""

    async def test_the_pods_of_the_moment_are_shown(self):
        pods = [make_pod("a").request(cpu="1").obj()]
        async with serving(pods=lambda: tuple(pods)) as get:
            status, text, headers = await get("/metrics/resources")
            pods.append(make_pod("b").request(cpu="1").obj())
            later = (await get("/metrics/resources"))[1]
        assert status == 200
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert [text.count(f'pod="{name}"') for name in "ab"] == [1, 0]
        assert [later.count(f'pod="{name}"') for name in "ab"] == [1, 1]

    async def test_without_pods_the_page_is_empty(self):
        async with serving() as get:
            assert (await get("/metrics/resources"))[:2] == (200, "")

    @pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "stops reading"])
    async def test_a_reader_who_does_not_read_to_the_end_stops_nobody(
        self, leaves, monkeypatch, caplog
    ):
        if not leaves:
            monkeypatch.setattr("k8s_scheduler.console.server._SEND_SECONDS", 0.5)
        # More than all buffers on the way hold.
        pods = [make_pod("p").request(cpu="1").scheduler("long" * 25_000).obj()] * 400

        async def read_a_little(port):
            trusting = ssl.create_default_context(cadata=CERTIFICATE.certificate_pem.decode())
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            writer.write(b"GET /metrics/resources HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            return writer

        endpoints = Endpoints(registry=CollectorRegistry(), pods=lambda: pods)
        server = await serve(
            endpoints, CERTIFICATE, bind_address="127.0.0.1", port=None, gate=EVERYBODY
        )
        try:
            writer = await read_a_little(server.port)
            if leaves:
                writer.transport.abort()
            async with asyncio.timeout(20):
                second = await read_a_little(server.port)
            writer.transport.abort()
            second.transport.abort()
        finally:
            await server.close()
        assert [r for r in caplog.records if r.levelname in {"ERROR", "WARNING"}] == []


class TestRest:
    """Everything else is refused, and errors name the address."""

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/", 404),
            ("GET", "/debug/pprof/", 404),
            ("POST", "/livez", 405),
            ("HEAD", "/livez", 200),
            ("HEAD", "/metrics/resources", 405),
        ],
    )
    async def test_what_is_not_served(self, method, path, status):
        async with serving() as get:
            assert (await get(path, method))[0] == status

    async def test_plain_http_gets_no_page(self):
        registry = CollectorRegistry()
        server = await serve(
            Endpoints(registry=registry), CERTIFICATE, bind_address="127.0.0.1", port=None
        )
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" not in await reader.read()
            writer.close()
            await writer.wait_closed()
        finally:
            await server.close()

    @pytest.mark.parametrize("sent", [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nHost: x\r\n"])
    async def test_whoever_asks_for_nothing_is_not_waited_for(self, sent, monkeypatch):
        """Each of them holds a file descriptor, which requests to the API server need too."""
        monkeypatch.setattr("k8s_scheduler.console.server._IDLE_SECONDS", 0.3)
        async with connected() as (reader, writer):
            writer.write(sent)
            async with asyncio.timeout(10):
                assert await reader.read() == b""

    @pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux alone knows how")
    async def test_whoever_reads_no_answer_is_not_waited_for(self, monkeypatch):
        monkeypatch.setattr("k8s_scheduler.console.listening._UNREAD_SECONDS", 0.5)
        async with connected() as (_, writer):
            writer.transport.pause_reading()
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(ask_for_ever(writer), 20)

    def test_a_renewed_certificate_is_shown_to_whoever_comes_then(self, tmp_path, monkeypatch):
        monkeypatch.setattr("k8s_scheduler.console.certificates._LOOK_SECONDS", 0.05)
        old, new = make_pair(), make_pair(rsa.generate_private_key(65537, 2048))
        files = Issued(*old).write(tmp_path, "tls")

        async def ask(reader, writer):
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

        async def come(port, pem):
            trusting = ssl.create_default_context(cadata=pem.decode())
            return await asyncio.open_connection("127.0.0.1", port, ssl=trusting)

        async def renew():
            endpoints = Endpoints(registry=CollectorRegistry())
            certificate = CertificateFiles(*files)
            server = await serve(endpoints, certificate, bind_address="127.0.0.1", port=None)
            try:
                before = await come(server.port, old[0])
                await ask(*before)
                for path, content in zip(files, new, strict=True):
                    path.with_suffix(".new").write_bytes(content)
                    path.with_suffix(".new").rename(path)
                async with asyncio.timeout(20):
                    while True:
                        with contextlib.suppress(ssl.SSLError):
                            after = await come(server.port, new[0])
                            break
                with pytest.raises(ssl.SSLError):
                    await come(server.port, old[0])
                await ask(*after)
                await ask(*before)
                for _, writer in (before, after):
                    writer.transport.abort()
            finally:
                await server.close()
            with pytest.raises(ConnectionRefusedError):
                await come(server.port, new[0])

        # The daemon's loop.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(renew())

    async def test_an_address_whose_zone_is_unknown_is_named(self):
        endpoints = Endpoints(registry=CollectorRegistry())
        with pytest.raises(OSError, match="cannot serve health and metrics on") as caught:
            await serve(endpoints, CERTIFICATE, bind_address="fe80::1%no-zone", port=1)
        assert "https://[fe80::1%no-zone]:1: " in str(caught.value)
        assert "Unknown error" not in str(caught.value)

    async def test_a_port_in_use_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            endpoints = Endpoints(registry=CollectorRegistry())
            with pytest.raises(OSError, match="Address already in use") as caught:
                await serve(endpoints, CERTIFICATE, bind_address="127.0.0.1", port=port)
        assert f"cannot serve health and metrics on https://127.0.0.1:{port}: " in str(caught.value)
        assert "--secure-port" in str(caught.value)

    @pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
    @pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
    async def test_the_default_address_answers_probes_of_both_kinds(self, host):
        server = await serve(
            Endpoints(registry=CollectorRegistry()), CERTIFICATE, bind_address="0.0.0.0", port=None
        )
        trusting = ssl.create_default_context(cadata=CERTIFICATE.certificate_pem.decode())
        try:
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session,
                session.get(f"https://{host}:{server.port}/livez") as response,
            ):
                assert await response.text() == "ok"
        finally:
            await server.close()

    async def test_port_0_is_refused_because_it_means_off(self):
        endpoints = Endpoints(registry=CollectorRegistry())
        with pytest.raises(ValueError, match="use None for any free port"):
            await serve(endpoints, CERTIFICATE, bind_address="127.0.0.1", port=0)

    async def test_closed_means_closed_and_may_be_said_twice(self):
        endpoints = Endpoints(registry=CollectorRegistry())
        server = await serve(endpoints, CERTIFICATE, bind_address="127.0.0.1", port=None)
        await server.close()
        await server.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)

    def test_it_runs_on_uvloop_too(self):
        async def probe():
            async with serving(role=lambda: "leader") as get:
                return (await get("/readyz"))[:2]

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            assert runner.run(probe()) == (200, "ok\nrole: leader\n")
