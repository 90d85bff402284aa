"""A login that takes long: no call lasts longer for it, and nothing is sent too late."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.http.connections import Peer, WirePool
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.clock import VirtualTimeLoop, virtual_time

BINDING = "/api/v1/namespaces/a/pods/p/binding"


class Wires(WirePool):
    """Answers 401 to the first login, or is another server than the one it should be."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(Peer("x", 443, None), limit=1, idle_seconds=1.0)
        self._error = error
        self.sent: list[bytes] = []

    async def exchange(
        self, request: bytes, sending: Callable[[], None], *, deadline: float
    ) -> Response:
        if self._error is not None:
            raise self._error
        sending()
        self.sent.append(request)
        await asyncio.sleep(1.0)
        return Response(401 if b"Bearer one" in request else 200)


class Sessions:
    """All of a transport's connections."""

    generation = 0

    def __init__(self, requests: WirePool) -> None:
        self.requests = requests

    def take(self) -> "Sessions":
        return self

    def give_back(self, pair: "Sessions") -> None:
        pass


class Slow:
    """Credentials that take a while to be read again."""

    server = "https://x"
    tls_server_name = proxy_url = ""
    generation = 0

    def __init__(self, takes_seconds: float) -> None:
        self._takes_seconds = takes_seconds
        self._headers = {"Authorization": "Bearer one"}

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def ssl_context(self) -> ssl.SSLContext | None:
        return None

    async def refresh(self, *, rejected: bool = False) -> None:
        await asyncio.sleep(self._takes_seconds)
        self._headers = {"Authorization": "Bearer two"}


class HeldUp(Slow):
    """Credentials that are read while nothing else runs, not even a timer."""

    async def refresh(self, *, rejected: bool = False) -> None:
        loop: Any = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.virtual_seconds += self._takes_seconds
        self._headers = {"Authorization": "Bearer two"}


class Desk:
    """A transport on such credentials."""

    def __init__(self, credentials: Slow, error: Exception | None = None) -> None:
        self.wires = Wires(error)
        self.transport = ApiTransport(credentials, metrics=Metrics().kube)
        self.transport._sessions = Sessions(self.wires)  # type: ignore[assignment]

    async def ask(self) -> int:
        answer = await self.transport.request("POST", BINDING, body=b"{}", timeout_seconds=5.0)
        return answer.status


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual_time
async def test_a_login_in_time_is_used() -> None:
    desk = Desk(Slow(2.0))
    assert await desk.ask() == 200
    assert now() == 4.0


@virtual_time
async def test_a_login_that_hangs_leaves_the_answer_there_is_and_in_time() -> None:
    desk = Desk(Slow(3600.0))
    assert await desk.ask() == 401
    assert now() == 5.0
    assert len(desk.wires.sent) == 1


@virtual_time
async def test_nothing_is_sent_again_when_the_time_is_over() -> None:
    """Whoever asked has given the call up by then."""
    desk = Desk(HeldUp(4.0))
    assert await desk.ask() == 401
    assert len(desk.wires.sent) == 1


@virtual_time
async def test_a_server_that_is_not_trusted_is_told_of_in_time() -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_message = "self-signed"
    desk = Desk(Slow(3600.0), error)
    with pytest.raises(NotSent, match="certificate is not trusted"):
        await desk.ask()
    assert now() == 5.0
