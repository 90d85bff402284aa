"""Writes one series to the API server: a POST while it does not exist there, a PATCH afterwards.

`may_tell` is asked before every try, and once more when its first byte is about to leave: a leader
that was replaced tells nothing more of pods, however long an event of it has waited.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from enum import Enum, auto

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.events.event import (
    encode_event,
    encode_series,
    event_namespace,
    events_path,
)
from k8s_scheduler.kube.events.series import Series
from k8s_scheduler.kube.http.protocol import MERGE_PATCH, Response, Transport
from k8s_scheduler.kube.http.throttle import Admit, unlimited
from k8s_scheduler.kube.waiting import Sleep, bounded_wait
from k8s_scheduler.lib.backoff import Backoff

TRIES = 5
CALL_TIMEOUT_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 30.0


class Written(Enum):
    """How a write ended."""

    DONE = auto()
    NO_ANSWER = auto()
    REFUSED = auto()
    FORBIDDEN = auto()
    NOT_LEADING = auto()


class EventWriter:
    """Knows the wire, the retries and the global rate; nothing of queues."""

    def __init__(
        self,
        transport: Transport,
        *,
        hostname: str,
        admit: Admit,
        log: BoundedLog,
        may_tell: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._hostname = hostname
        self._admit = admit
        self._log = log
        self._may_tell = may_tell
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform

    async def write(self, series: Series) -> Written:
        """Bring the server up to date about a series, in a few tries."""
        backoff: Backoff | None = None
        for left in reversed(range(TRIES)):
            if self._admit is not unlimited:
                await self._admit()
            if not (series.is_own or self._may_tell()):
                return Written.NOT_LEADING
            count, exists = series.count, series.written > 0
            try:
                response = await self._send(series)
            except KubeError as no_answer:
                self._log.warning("event", "an event could not be written: %s", no_answer)
                ended: Written | float = 0.0
            else:
                if response.ok:
                    series.acknowledge(count, self._clock())
                    return Written.DONE
                ended = self._judge(series, response, exists=exists)
            if isinstance(ended, Written):
                return ended
            if not (series.is_own or self._may_tell()):
                return Written.NOT_LEADING
            if left:
                backoff = backoff or Backoff(1.0, 10.0, uniform=self._uniform)
                await self._sleep(max(ended, backoff.next_seconds()))
        return Written.NO_ANSWER

    def _judge(self, series: Series, response: Response, *, exists: bool) -> Written | float:
        """Return how it ended, or the least number of seconds to wait before another try."""
        error = response.error()
        if response.status in (408, 429) or response.status >= 500:
            self._log.warning("event", "an event could not be written: %s", error)
            return bounded_wait(error.retry_after_seconds, _LONGEST_WAIT_SECONDS)
        if response.status == 404 and exists:
            series.written = 0  # expired or deleted on the server: it has to be made anew
            return 0.0
        if response.status == 409:
            if not exists:
                # An earlier try did arrive; it told of at least one occurrence.
                series.acknowledge(1, self._clock())
            return 0.0 if exists else Written.DONE
        return self._refused(series, response, verb="patch" if exists else "create")

    def _send(self, series: Series) -> Awaitable[Response]:
        note, namespace = series.note, event_namespace(series.note)
        may_send = None if series.is_own else self._may_tell
        if series.written:
            return self._transport.request(
                "PATCH",
                events_path(namespace, series.name),
                body=encode_series(series.observed),
                content_type=MERGE_PATCH,
                timeout_seconds=CALL_TIMEOUT_SECONDS,
                may_send=may_send,
            )
        body = encode_event(
            note,
            series.name,
            hostname=self._hostname,
            first_wall_ns=series.first_wall_ns,
            observed=series.observed,
        )
        return self._transport.request(
            "POST",
            events_path(namespace),
            body=body,
            timeout_seconds=CALL_TIMEOUT_SECONDS,
            may_send=may_send,
        )

    def _refused(self, series: Series, response: Response, *, verb: str) -> Written:
        error, namespace = response.error(), event_namespace(series.note)
        if response.status == 403:
            self._log.forbidden(verb, "events.events.k8s.io", namespace=namespace, error=error)
            return Written.FORBIDDEN
        self._log.warning("refused", "an event in namespace %s was refused: %s", namespace, error)
        return Written.REFUSED
