"""A real HTTPS server on loopback, and a transport to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from k8s_scheduler.kube.auth.credentials import RotatingCredentials
from k8s_scheduler.kube.auth.login import Login
from k8s_scheduler.kube.auth.tls import TlsMaterial
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.certificates import Authority
from tests.fakes.clock import FakeClock
from tests.fakes.https import Server, Source


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def server(tmp_path: Path, authority: Authority) -> AsyncIterator[Server]:
    made = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.serve)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    context = authority.server_context(tmp_path, hosts=("127.0.0.1", "kubernetes"))
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.address = f"127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
def source(server: Server, authority: Authority) -> Source:
    return Source(Login(f"https://{server.address}", TlsMaterial(ca=authority.pem), "Bearer one"))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def credentials(source: Source) -> RotatingCredentials:
    return await RotatingCredentials.open(source, clock=FakeClock())


@pytest.fixture
async def transport(
    credentials: RotatingCredentials, metrics: Metrics
) -> AsyncIterator[ApiTransport]:
    async with ApiTransport(credentials, metrics=metrics.kube) as made:
        yield made
