"""Attempts to get an answer: when one is lost, what that means, and whether to try again.

Each attempt learns when sending begins (`MarkingRequest`). That is the border between NotSent and
OutcomeUnknown: whatever fails before it was certainly not executed. It is also the last moment at
which a write can be held back, so `may_send` is called there.

What was sent before that moment can't be called back: a process that is stopped for longer than its
lease lasts has such requests under way when it goes on. The server refuses most of them (409:
another scheduler has bound the pod); each is counted and named in the log (`LateWrites`).
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Final

import aiohttp
import msgspec
from aiohttp.connector import Connection

from k8s_scheduler.kube.auth.loading import Credentials
from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown, TransportError
from k8s_scheduler.obs.counters import Counter

FAILURES: Final = (TimeoutError, aiohttp.ClientError, OSError)


class BarredError(OSError):
    """The request may not be sent any more: `may_send` returned False."""


class Call(msgspec.Struct, frozen=True):
    """One request, which may take several attempts."""

    method: str
    # The path, and the query if there is one.
    target: str
    body: bytes | None
    content_type: str
    deadline: float
    # Asked before the first byte leaves.
    may_send: Callable[[], bool] | None = None


class Attempt(msgspec.Struct):
    """One attempt; `sent` from the moment its first byte may have left."""

    may_send: Callable[[], bool] | None = None
    sent: bool = False

    def mark(self) -> None:
        """Let the requests that this task sends with aiohttp say when they begin."""
        _current.set(self)

    def begin(self) -> None:
        """Take note that the first byte is about to leave; BarredError if it must not."""
        if self.may_send is not None and not self.may_send():
            raise BarredError("it may not be sent any more")
        self.sent = True


class MarkingRequest(aiohttp.ClientRequest):
    """Tells the attempt of the task it runs in when a connection is there and sending begins.

    aiohttp's tracing could tell the same, but costs every request more.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        _current.get().begin()
        return await super().send(conn)


_current: ContextVar[Attempt] = ContextVar("attempt")


class Again:
    """Decides whether a call is worth another attempt: once each for a loss and for a 401.

    It is the same one for all attempts of a call, and there is none before the first has failed.
    """

    __slots__ = ("_call", "_credentials", "_logged_in", "_resent")

    def __init__(self, credentials: Credentials, call: Call) -> None:
        self._credentials = credentials
        self._call = call
        self._resent = call.method != "GET"
        self._logged_in = False

    def may_resend(self) -> bool:
        """Return whether to send it again although its outcome is unknown: a GET, once."""
        first, self._resent = not self._resent, True
        return first and self._is_in_time()

    async def may_log_in(self, headers: object, generation: int) -> bool:
        """After a 401 read the credentials again; return whether they are others than these.

        No longer than the call may take: its answer is the 401 then.
        """
        if self._logged_in:
            return False
        self._logged_in = True
        if self._is_in_use(headers, generation):
            await refresh_in_time(self._credentials, self._call, rejected=True)
        return self._is_in_time() and not self._is_in_use(headers, generation)

    def _is_in_time(self) -> bool:
        return asyncio.get_running_loop().time() < self._call.deadline

    def _is_in_use(self, headers: object, generation: int) -> bool:
        credentials = self._credentials
        return credentials.headers() is headers and credentials.generation == generation


async def refresh_in_time(credentials: Credentials, call: Call, *, rejected: bool = False) -> None:
    """Have credentials read again, and wait for it as long as the call may take."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(call.deadline):
            await credentials.refresh(rejected=rejected)


def lost(error: Exception, attempt: Attempt) -> TransportError:
    """Return what an attempt without an answer means."""
    if is_outcome_unknown(error, attempt):
        return OutcomeUnknown(words(error))
    return NotSent(words(error))


def is_outcome_unknown(error: Exception, attempt: Attempt) -> bool:
    """Return whether the server may have done what an attempt without an answer asked for."""
    return attempt.sent and not isinstance(error, aiohttp.ClientConnectorError)


def distrust(error: Exception) -> ssl.SSLCertVerificationError | None:
    """Return what was wrong with the server's certificate, if that is why there is no answer."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    return error if isinstance(error, ssl.SSLCertVerificationError) else None


def words(error: Exception) -> str:
    """Say in one line why there is no answer."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection was closed before the answer was complete"
    if (untrusted := distrust(error)) is not None:
        return f"the server's certificate is not trusted: {untrusted.verify_message}"
    return " ".join(str(error).split()) or type(error).__name__


log = logging.getLogger(__name__)

_CONFLICT: Final = 409


class LateWrites:
    """Takes note of each write that was too late when it ended."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def note(self, call: Call, ended: int | str) -> None:
        """Count a write that was too late when it ended, with a status or in a word."""
        result = ended if isinstance(ended, str) else _result(ended)
        self._counter.labels(result=result).inc()
        if result != "withheld":
            log.warning(
                "a write was under way when writing had to end",
                extra={"fields": {"method": call.method, "path": call.target, "answer": ended}},
            )


def _result(status: int) -> str:
    if 200 <= status < 300:
        return "success"
    return "conflict" if status == _CONFLICT else "failure"
