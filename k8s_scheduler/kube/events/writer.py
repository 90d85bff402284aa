"""Writes one series to the API server: a POST while it does not exist there, a PATCH afterwards.

A leader that was replaced writes no more events about pods, however long one has waited.
"""

from collections.abc import Awaitable
from dataclasses import replace
from enum import Enum, auto
from typing import Final

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.events.event import (
    encode_event,
    encode_series,
    event_namespace,
    events_path,
)
from k8s_scheduler.kube.events.series import Series
from k8s_scheduler.kube.http.caller import Caller, RetryPolicy, Tries, always
from k8s_scheduler.kube.http.protocol import MERGE_PATCH, Response
from k8s_scheduler.kube.http.response_meaning import is_overload

TRIES: Final = 5
# Any 404 to a POST is definite here: a series is dropped then, and its next occurrence made anew.
_POLICY: Final = RetryPolicy(
    tries=TRIES, is_retried=is_overload, first_wait_seconds=1.0, longest_wait_seconds=10.0
)


class Written(Enum):
    """How a write ended."""

    DONE = auto()
    NO_ANSWER = auto()
    REFUSED = auto()
    FORBIDDEN = auto()
    NOT_LEADING = auto()


class EventWriter:
    """Knows the wire, the retries and the global rate; nothing of queues."""

    def __init__(self, caller: Caller, *, hostname: str, log: BoundedLog) -> None:
        """Write while `caller.may_write`; events of the process about itself need no lease."""
        self._caller = caller
        self._own_caller = replace(caller, may_write=always)
        self._hostname = hostname
        self._log = log

    async def write(self, series: Series) -> Written:
        """Bring the server up to date about a series, in a few tries."""
        caller = self._own_caller if series.is_own else self._caller
        tries = caller.tries(_POLICY, may_repeat=caller.may_write)
        async for _ in tries:
            count, exists = series.count, series.written > 0
            response = await self._send(tries, series)
            if response is None:
                self._log.warning("event", "an event could not be written: %s", tries.problem)
            elif response.ok:
                series.acknowledge(count, caller.timing.clock())
                return Written.DONE
            elif (ended := self._judge(series, response, exists=exists)) is not None:
                return ended
        return Written.NOT_LEADING if tries.was_stopped else Written.NO_ANSWER

    def _judge(self, series: Series, response: Response, *, exists: bool) -> Written | None:
        """Return how the write ended; None: it takes another try."""
        if response.status == 404 and exists:
            series.written = 0  # expired or deleted on the server: it has to be made anew
            return None
        if response.status == 409:
            if exists:
                return None
            # An earlier try did arrive; it told of at least one occurrence.
            series.acknowledge(1, self._caller.timing.clock())
            return Written.DONE
        return self._refused(series, response, verb="patch" if exists else "create")

    def _send(self, tries: Tries, series: Series) -> Awaitable[Response | None]:
        note, namespace = series.note, event_namespace(series.note)
        if series.written:
            return tries.send(
                "PATCH",
                events_path(namespace, series.name),
                body=encode_series(series.observed),
                content_type=MERGE_PATCH,
            )
        body = encode_event(
            note,
            series.name,
            hostname=self._hostname,
            first_wall_ns=series.first_wall_ns,
            observed=series.observed,
        )
        return tries.send("POST", events_path(namespace), body=body)

    def _refused(self, series: Series, response: Response, *, verb: str) -> Written:
        error, namespace = response.error(), event_namespace(series.note)
        if response.status == 403:
            self._log.forbidden(verb, "events.events.k8s.io", namespace=namespace, error=error)
            return Written.FORBIDDEN
        self._log.warning("refused", "an event in namespace %s was refused: %s", namespace, error)
        return Written.REFUSED
