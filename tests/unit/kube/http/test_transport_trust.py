"""A server whose authority changes while the transport is in use."""

from pathlib import Path

import pytest
from aiohttp import web

from k8s_scheduler.kube.auth.credentials import RotatingCredentials
from k8s_scheduler.kube.auth.login import Login
from k8s_scheduler.kube.auth.tls import TlsMaterial
from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.certificates import Authority
from tests.fakes.clock import FakeClock


class Files:
    """A source of logins that names a file."""

    def __init__(self, login: Login, file: Path) -> None:
        self.login = login
        self._file = file

    def describe(self) -> str:
        return "a test"

    def files(self) -> tuple[Path, ...]:
        return (self._file,)

    def read(self, *, renew: bool) -> Login:
        return self.login


async def answer(_request: web.Request) -> web.Response:
    return web.Response()


@pytest.mark.parametrize("streams", [False, True], ids=["a request", "a watch"])
async def test_a_server_that_is_not_trusted_makes_changed_files_be_read(
    tmp_path: Path, *, streams: bool
) -> None:
    """An authority that changed is known by the next attempt, not by the next check."""
    authority = Authority()
    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    context = authority.server_context(tmp_path, hosts=("127.0.0.1",))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    address = f"https://127.0.0.1:{runner.addresses[0][1]}"

    async def ask(transport: ApiTransport) -> int:
        if not streams:
            return (await transport.request("GET", "/")).status
        async with transport.stream("/") as stream:
            return stream.status

    file = tmp_path / "ca"
    file.write_text("old")
    source = Files(Login(address, TlsMaterial(ca=Authority("old").pem)), file)
    credentials = await RotatingCredentials.open(source, clock=FakeClock())
    async with ApiTransport(credentials, metrics=Metrics().kube) as transport:
        source.login = Login(address, TlsMaterial(ca=authority.pem))
        file.write_text("the new one")
        with pytest.raises(NotSent, match="certificate is not trusted"):
            await ask(transport)
        assert await ask(transport) == 200
    await runner.cleanup()
