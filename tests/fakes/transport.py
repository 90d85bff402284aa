"""A `Transport` without a network: it writes down what is asked and answers from scripts.

    api.script("POST", "/api/v1/namespaces/a/pods/p/binding", status(503, "ServiceUnavailable"))
    api.script("GET", "/api/v1/pods*", NotSent("refused"), status(429, "TooManyRequests"))
    api.script("WATCH", "/api/v1/pods", [b"...", OutcomeUnknown("reset")])

Scripted answers are used up in order, one per request; the path may hold `*`. Where no script is
left, `answer` and `open` decide: here they say 404, `FakeApi` looks into its store. `WATCH` is
the method name of `stream()`.
"""

import asyncio
import fnmatch
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import JSON, Response

WATCH = "WATCH"
Json: TypeAlias = dict[str, Any]


class Request(msgspec.Struct, frozen=True):
    """One request as it came in."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    timeout_seconds: float = 30.0

    def json(self) -> Json:
        """Return the decoded body."""
        decoded: Json = msgspec.json.decode(self.body or b"{}")
        return decoded


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer comes: OutcomeUnknown `after_seconds` (at most the request's own deadline).

    With `executed` the server did what was asked before the answer was lost.
    """

    executed: bool = True
    after_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Late:
    """The server's own answer, `after_seconds`; past the deadline it was executed but unknown."""

    after_seconds: float


Answer: TypeAlias = Response | Exception | Lost | Late | Callable[[Request], Response]
# What a watch gives: an error answer, no answer, or chunks and how they end.
StreamItem: TypeAlias = bytes | Exception
StreamAnswer: TypeAlias = Response | Exception | Iterable[StreamItem]


def status(code: int, reason: str, message: str = "", **headers: str) -> Response:
    """Return an error (or success) answer as the API server words it: a `Status` object.

    Headers are keywords with `_` for `-`: `Retry_After="3"`.
    """
    return Response(
        status=code,
        body=encode(status_object(code, reason, message)),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def status_object(code: int, reason: str, message: str = "") -> Json:
    """Return the `Status` object itself, as it also stands in ERROR events."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success" if code < 400 else "Failure",
        "message": message or reason,
        "reason": reason,
        "code": code,
    }


def encode(value: Any) -> bytes:
    """Return compact JSON."""
    return msgspec.json.encode(value)


class FakeStream:
    """An open answer: bytes that were fed to it, in order, until it is ended or broken."""

    def __init__(self, answer_status: int = 200, *, body: bytes = b"") -> None:
        self.status = answer_status
        self.headers: Mapping[str, str] = {}
        self.closed = False
        self._body = body
        self._items: asyncio.Queue[StreamItem | None] = asyncio.Queue()

    def feed(self, *items: StreamItem) -> None:
        """Send bytes, or break the connection with an exception."""
        for item in items:
            self._items.put_nowait(item)

    def end(self) -> None:
        """End the answer as a server does that has said everything."""
        self._items.put_nowait(None)

    def close(self) -> None:
        """Take note that the client has let go."""
        self.closed = True

    async def chunks(self) -> AsyncIterator[bytes]:
        while (item := await self._items.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    async def read(self) -> bytes:
        return self._body


class FakeTransport:
    """Implements `k8s_scheduler.kube.http.protocol.Transport`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.streams: list[FakeStream] = []
        # While true nothing gets through, as with a server that is not there.
        self.refusing = False
        # How long it takes until a request has a connection.
        self.connecting_seconds = 0.0
        self._scripts: list[tuple[str, str, deque[Any]]] = []

    def script(self, method: str, path: str, *answers: Answer | StreamAnswer) -> None:
        """Queue answers for requests of this method whose path matches (`*` is a wildcard)."""
        self._scripts.append((method, path, deque(answers)))

    def asked(self, method: str, path: str = "*") -> list[Request]:
        """Return the requests so far of this method whose path matches."""
        return [
            request
            for request in self.requests
            if request.method == method and fnmatch.fnmatchcase(request.path, path)
        ]

    def answer(self, request: Request) -> Response:
        """Answer a request that no script covers."""
        return status(404, "NotFound", f"no answer for {request.method} {request.path}")

    def open(self, request: Request) -> FakeStream:
        """Open a stream that no script covers."""
        return FakeStream(404, body=self.answer(request).body)

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
        if self.connecting_seconds:
            await asyncio.sleep(self.connecting_seconds)
        if may_send is not None and not may_send():
            raise NotSent("it may not be sent any more")
        request = Request(method, path, dict(query or {}), body, content_type, timeout_seconds)
        scripted = await self._arrive(request)
        if scripted is None:
            return self.answer(request)
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted, Lost | Late):
            return await self._delayed(request, scripted)
        if callable(scripted):
            made: Response = scripted(request)
            return made
        assert isinstance(scripted, Response)
        return scripted

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[FakeStream]:
        request = Request(WATCH, path, dict(query or {}))
        scripted = await self._arrive(request)
        if isinstance(scripted, Exception):
            raise scripted
        if scripted is None:
            stream = self.open(request)
        elif isinstance(scripted, Response):
            stream = FakeStream(scripted.status, body=scripted.body)
            stream.headers = scripted.headers
            stream.end()
        else:
            stream = FakeStream()
            stream.feed(*scripted)
            stream.end()
        self.streams.append(stream)
        try:
            yield stream
        finally:
            stream.close()
            self.streams.remove(stream)

    async def _arrive(self, request: Request) -> Any:
        self.requests.append(request)
        await asyncio.sleep(0)  # as every real request does, so that races can show
        if self.refusing:
            raise NotSent("connection refused")
        for method, path, answers in self._scripts:
            if method == request.method and answers and fnmatch.fnmatchcase(request.path, path):
                return answers.popleft()
        return None

    async def _delayed(self, request: Request, scripted: Lost | Late) -> Response:
        answered = None
        if isinstance(scripted, Late) or scripted.executed:
            answered = self.answer(request)
        in_time = scripted.after_seconds <= request.timeout_seconds
        await asyncio.sleep(min(scripted.after_seconds, request.timeout_seconds))
        if isinstance(scripted, Late) and answered is not None and in_time:
            return answered
        raise OutcomeUnknown("no answer after the request was sent")
