"""A daemon's connection to the model server, and everything that can happen on it.

What becomes of a request is drawn when it is sent and depends on nothing that comes later, so the
order in which a dying process lets go of its requests changes nothing.

    sent ──up──► executed ──down──► answered
      │ refused: NotSent   │ 429, 500, 503: answered, not executed
      │ lost before: never executed, 504 or a reset      lost after: executed, 504 or a reset
      └ late: executed long after its sender has given up
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import msgspec

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import JSON, Response
from tests.fakes.transport import WATCH, FakeStream, Request, status
from tests.simulation.history import NOT_SENT, UNKNOWN, Call
from tests.simulation.server import ModelServer
from tests.simulation.watch import ModelWatch


@dataclass(slots=True)
class Weather:
    """How the connection is at the moment. Rates are shares of requests."""

    fair_latency_seconds: float = 0.004
    latency_seconds: float = 0.0
    watch_delay_seconds: float = 0.01
    refusing: bool = False
    rates: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Let the sun shine."""
        self.refusing = False
        self.rates = {}
        self.watch_delay_seconds = 0.01
        self.latency_seconds = self.fair_latency_seconds


class Fate(msgspec.Struct, frozen=True, gc=False):
    """What becomes of one request."""

    kind: str
    up_seconds: float
    down_seconds: float
    # Whether it is carried out although its sender died before it arrived.
    outlives: bool
    retry_after: str = ""


NORMAL = "normal"
LOST_BEFORE = ("504 before", "reset before")
LOST_AFTER = ("504 after", "reset after")
# In the order in which their rates are added up.
RATED = ("429", "500", "503", *LOST_BEFORE, *LOST_AFTER, "late")


class Client:
    """Implements `k8s_scheduler.kube.http.protocol.Transport`."""

    def __init__(
        self, server: ModelServer, name: str, *, weather: Weather, rng: random.Random
    ) -> None:
        self.name = name
        self.weather = weather
        self.is_dead = False
        self._server = server
        self._loop = server.loop
        self._history = server.history
        self._rng = rng

    def watch_delay(self) -> float:
        """Return how late the next event is."""
        return self.weather.watch_delay_seconds

    def splits_chunk(self) -> bool:
        """Return whether the next chunk ends in the middle of a line."""
        return self._rng.random() < 0.1

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
        may_send: Callable[[], bool] | None = None,
    ) -> Response:
        if self.is_dead:
            await self._loop.create_future()
        if may_send is not None and not may_send():
            raise NotSent("it may not be sent any more")
        request = Request(method, path, query or {}, body, content_type, timeout_seconds)
        call = self._history.sent(self._loop.now, self.name, request)
        fate = self._draw()
        if fate.kind != NORMAL:
            self._history.fault(fate.kind)
        answer: asyncio.Future[Response] = self._loop.create_future()
        if fate.kind == "refused":
            self._loop.at(self._loop.now + fate.up_seconds, self._refuse, call, answer)
        else:
            self._loop.at(self._loop.now + fate.up_seconds, self._arrive, call, fate, answer)
        timer = self._loop.call_later(timeout_seconds, self._give_up, call, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> "_Opening":
        return _Opening(self, Request(WATCH, path, query or {}))

    def break_watches(self, *, stall: bool, share: float) -> None:
        """Break open watches, or let them go silent."""
        for watch, client in tuple(self._server.open_watches.items()):
            if client == self.name and self._rng.random() < share:
                self._history.fault("stalled watch" if stall else "cut watch")
                if stall:
                    self._history.happened(self._loop.now, self.name, "stalled")
                    watch.stall()
                else:
                    watch.cut()

    def die(self) -> None:
        """Let nothing come from here any more."""
        self.is_dead = True
        for watch, client in tuple(self._server.open_watches.items()):
            if client == self.name:
                self._server.let_go(watch)

    async def open(self, request: Request) -> ModelWatch | FakeStream:
        """Open a watch."""
        if self.is_dead:
            await self._loop.create_future()
        fate = self._draw()
        await asyncio.sleep(fate.up_seconds if fate.kind != "late" else 2.0)
        if fate.kind != NORMAL:
            self._history.fault(f"{fate.kind} on watch")
        if fate.kind == "refused":
            raise NotSent("connection refused")
        if fate.kind in ("429", "500", "503"):
            refused = _refusal(fate)
            stream = FakeStream(refused.status, body=refused.body)
            stream.headers = refused.headers
            return stream
        if fate.kind != NORMAL:
            raise OutcomeUnknown("connection reset by peer")
        return self._server.open_watch(request, self)

    def let_go(self, stream: ModelWatch | FakeStream) -> None:
        if isinstance(stream, ModelWatch):
            self._server.let_go(stream)

    def _draw(self) -> Fate:
        rng, weather = self._rng, self.weather
        latency = weather.latency_seconds
        up, down = latency * (0.5 + rng.random()), latency * (0.5 + rng.random())
        point, outlives = rng.random(), rng.random() < 0.5
        if weather.refusing or self._server.is_down:
            return Fate("refused", up, down, outlives)
        for kind in RATED if weather.rates else ():
            rate = weather.rates.get(kind, 0.0)
            if point < rate:
                if kind == "late":
                    up = rng.uniform(2.0, 50.0)
                return Fate(kind, up, down, outlives, rng.choice(("", "1", "2")))
            point -= rate
        return Fate(NORMAL, up, down, outlives)

    def _arrive(self, call: Call, fate: Fate, answer: "asyncio.Future[Response]") -> None:
        if self.is_dead and not fate.outlives:
            return
        if fate.kind in ("429", "500", "503"):
            response = _refusal(fate)
        elif fate.kind in LOST_BEFORE or self._server.is_down:
            response = status(504, "Timeout", "request did not complete within requested timeout")
        else:
            response = self._server.serve(call)
            if fate.kind in LOST_AFTER:
                response = status(504, "Timeout", "request did not complete in time")
        self._loop.at(
            self._loop.now + fate.down_seconds, self._deliver, call, fate, (answer, response)
        )

    def _deliver(self, call: Call, fate: Fate, result: Any) -> None:
        answer, response = result
        if answer.done() or self.is_dead:
            return
        if fate.kind in ("reset before", "reset after"):
            answer.set_exception(OutcomeUnknown("connection reset by peer"))
            self._history.answered(self._loop.now, call, UNKNOWN)
        else:
            answer.set_result(response)
            self._history.answered(self._loop.now, call, response.status)

    def _refuse(self, call: Call, answer: "asyncio.Future[Response]") -> None:
        if not answer.done() and not self.is_dead:
            answer.set_exception(NotSent("connection refused"))
            self._history.answered(self._loop.now, call, NOT_SENT)

    def _give_up(self, call: Call, answer: "asyncio.Future[Response]") -> None:
        if not answer.done():
            answer.set_exception(OutcomeUnknown("no answer in time"))
            self._history.answered(self._loop.now, call, UNKNOWN)


class _Opening:
    """An open watch for the length of a block."""

    def __init__(self, client: Client, request: Request) -> None:
        self._client = client
        self._request = request
        self._stream: ModelWatch | FakeStream | None = None

    async def __aenter__(self) -> ModelWatch | FakeStream:
        self._stream = await self._client.open(self._request)
        return self._stream

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._client.let_go(self._stream)


def _refusal(fate: Fate) -> Response:
    headers = {"Retry_After": fate.retry_after} if fate.retry_after else {}
    if fate.kind == "429":
        return status(
            429, "TooManyRequests", "too many requests, please try again later", **headers
        )
    if fate.kind == "500":
        return status(500, "InternalError", "etcdserver: leader changed")
    return status(503, "ServiceUnavailable", "apiserver not ready", **headers)
