"""HTTP to one API server; implements `http.Transport`.

Requests go over connections of our own (`connections`), watches and requests through a proxy over
aiohttp.

What a missing answer means is decided here, and bindings rest on it:

    before the first byte left (refused, unresolved, TLS, no connection in time) → NotSent
    anything later (reset, closed, deadline)                                    → OutcomeUnknown

A kept-alive connection that the server closed before it read the request looks just like one
closed after: OutcomeUnknown is the safe answer. Only a GET is sent a second time by itself.
After a 401 the credentials are read again and, if they have changed, the request is sent once more,
which is safe: it was not executed. A 403 is an answer. After an untrusted certificate of the server
they are read again too, if their files have changed: the authority may be a new one. Neither makes
a call exceed its time limit, however long a login plugin takes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from k8s_scheduler.kube.auth.loading import CHECK_SECONDS, Credentials
from k8s_scheduler.kube.errors import OutcomeUnknown
from k8s_scheduler.kube.http.connections import WirePool
from k8s_scheduler.kube.http.protocol import JSON, Response
from k8s_scheduler.kube.http.request_attempts import (
    FAILURES,
    Again,
    Attempt,
    BarredError,
    Call,
    LateWrites,
    distrust,
    is_outcome_unknown,
    lost,
    refresh_in_time,
    words,
)
from k8s_scheduler.kube.http.request_headers import RequestHeaders
from k8s_scheduler.kube.http.sessions import Sessions
from k8s_scheduler.obs.counters import Count
from k8s_scheduler.obs.histograms import Observations
from k8s_scheduler.obs.metrics import KubeMetrics

# A watch has no deadline, but its first byte has: the server may queue it, not forget it.
OPEN_SECONDS: Final = 60.0


class ApiTransport:
    """Requests and watches with one set of credentials. Use it as an async context manager."""

    def __init__(self, credentials: Credentials, *, metrics: KubeMetrics) -> None:
        self._credentials = credentials
        base = URL(credentials.server, encoded=True)
        self._origin = str(base.origin())
        self._host = base.authority
        self._prefix = base.raw_path.rstrip("/")
        self._sessions = Sessions(credentials)
        self._headers = RequestHeaders()
        self._metrics = metrics
        self._late = LateWrites(metrics.late_writes)
        # By method and status.
        self._measures: dict[tuple[str, int], _Measures] = {}
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._keeper = asyncio.create_task(self._keep_credentials())
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; requests under way end as OutcomeUnknown."""
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        await self._sessions.close()

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
        clock = asyncio.get_running_loop().time
        started = clock()
        target = self._target(path, query) if query else self._prefix + path
        call = Call(method, target, body, content_type, started + timeout_seconds, may_send)
        # Most calls take one attempt: what more of them need is made when they come.
        again: Again | None = None
        while True:
            login = self._credentials.headers()
            pair = self._sessions.take()
            attempt = Attempt(may_send)
            try:
                if isinstance(pair.requests, WirePool):
                    request = self._encoded(call, login)
                    answer = await pair.requests.exchange(
                        request, attempt.begin, deadline=call.deadline
                    )
                else:
                    answer = await self._ask(pair.requests, call, attempt)
            except FAILURES as error:
                await self._failed(call, error)
                again = again or Again(self._credentials, call)
                if not (is_outcome_unknown(error, attempt) and again.may_resend()):
                    raise lost(error, attempt) from error
                started = clock()
                continue
            else:
                if may_send is not None and not may_send():
                    self._late.note(call, answer.status)
                self._measure(call, answer, clock() - started)
            finally:
                self._sessions.give_back(pair)
            if answer.status != 401:
                return answer
            again = again or Again(self._credentials, call)
            if not await again.may_log_in(login, pair.generation):
                return answer
            started = clock()

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator["AnswerStream"]:
        deadline = asyncio.get_running_loop().time() + OPEN_SECONDS
        call = Call("GET", self._target(path, query), None, JSON, deadline)
        again = Again(self._credentials, call)
        while True:
            login = self._credentials.headers()
            pair = self._sessions.take()
            try:
                try:
                    answer = await self._open(pair.watches, call)
                except OutcomeUnknown:
                    if not again.may_resend():
                        raise
                    continue
                try:
                    if answer.status == 401 and await again.may_log_in(login, pair.generation):
                        continue
                    yield AnswerStream(answer)
                finally:
                    # Not `release`: what was not read would have to be read first.
                    answer.close()
                return
            finally:
                self._sessions.give_back(pair)

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        # Paths are made of names that the API server allows, and those need no escaping.
        target = self._prefix + path
        return f"{target}?{urlencode(query)}" if query else target

    async def _ask(self, session: aiohttp.ClientSession, call: Call, attempt: Attempt) -> Response:
        attempt.mark()
        async with asyncio.timeout_at(call.deadline):
            opened = await self._send(session, call)
            return Response(opened.status, await opened.read(), opened.headers)

    def _encoded(self, call: Call, login: Mapping[str, str]) -> bytes:
        body = call.body or b""
        content_type = "" if call.body is None else call.content_type
        headers = self._headers.encode(login, content_type=content_type)
        first = f"{call.method} {call.target} HTTP/1.1\r\nHost: {self._host}\r\n"
        return b"%s%sContent-Length: %d\r\n\r\n%s" % (first.encode(), headers, len(body), body)

    async def _open(self, session: aiohttp.ClientSession, call: Call) -> aiohttp.ClientResponse:
        attempt = Attempt()
        attempt.mark()
        try:
            async with asyncio.timeout_at(call.deadline):
                answer = await self._send(session, call)
        except FAILURES as error:
            await self._failed(call, error)
            raise lost(error, attempt) from error
        self._counter(call.method, str(answer.status)).inc()
        return answer

    async def _failed(self, call: Call, error: Exception) -> None:
        """Count a call without an answer; a server we don't trust may have a new authority."""
        if call.may_send is not None and not call.may_send():
            self._late.note(call, "withheld" if isinstance(error, BarredError) else "unknown")
        self._counter(call.method, "<error>").inc()
        if distrust(error) is not None:
            await refresh_in_time(self._credentials, call)

    async def _send(self, session: aiohttp.ClientSession, call: Call) -> aiohttp.ClientResponse:
        content_type = "" if call.body is None else call.content_type
        return await session.request(
            call.method,
            URL(f"{self._origin}{call.target}", encoded=True),
            data=call.body,
            headers=self._headers.make(self._credentials.headers(), content_type=content_type),
            allow_redirects=False,
            server_hostname=self._credentials.tls_server_name or None,
        )

    def _measure(self, call: Call, answer: Response, seconds: float) -> None:
        key = (call.method, answer.status)
        measures = self._measures.get(key)
        if measures is None:
            method, host = call.method, self._host
            measures = self._measures[key] = _Measures(
                self._counter(method, str(answer.status)),
                self._metrics.request_duration_seconds.labels(method, host),
                self._metrics.request_size_bytes.labels(method, host),
                self._metrics.response_size_bytes.labels(method, host),
            )
        measures.requests.inc()
        measures.seconds.observe(seconds)
        measures.sent_bytes.observe(len(call.body or b""))
        measures.received_bytes.observe(len(answer.body))

    def _counter(self, method: str, code: str) -> Count:
        return self._metrics.requests.labels(code, method, self._host)

    async def _keep_credentials(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self._credentials.refresh()


class _Measures(msgspec.Struct, frozen=True):
    """What answers of one status to one method are counted in."""

    requests: Count
    seconds: Observations
    sent_bytes: Observations
    received_bytes: Observations


class AnswerStream:
    """An answer that is read while it arrives."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except FAILURES as error:
            raise OutcomeUnknown(words(error)) from error

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await self._answer.read()
        except FAILURES as error:
            raise OutcomeUnknown(words(error)) from error
