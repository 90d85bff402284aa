"""Sends the writes that pods wait for, some at a time; every request gets exactly one outcome.

A call that was not executed, or of which nothing is known, is sent again a few times: all of them
may be repeated without harm, because they name a uid or a version. What the server refuses is
refused for good. Where nobody may write any more, nothing more is sent and nobody is told: the
process is on its way out.

At the end everything that was taken is brought to its end, and so is what follows from it: a
preemption that has begun is carried out to its last victim.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable

from k8s_scheduler.api.config import MOST_PARALLELISM
from k8s_scheduler.kube.answers import is_doubtful, is_gone, is_passing
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import KubeError, OutcomeUnknown
from k8s_scheduler.kube.http import Response, Transport
from k8s_scheduler.kube.throttle import Admit, unlimited
from k8s_scheduler.kube.waiting import Sleep, bounded_wait, wait_within
from k8s_scheduler.kube.write_requests import Call, WriteOutcome, WriteRequest
from k8s_scheduler.lib.backoff import Backoff
from k8s_scheduler.lib.crew import Crew

log = logging.getLogger(__name__)

TRIES = 5
_LONGEST_WAIT_SECONDS = 30.0


class WriteLane:
    """A lane of its own: what pods wait for never stands behind conditions and events."""

    def __init__(
        self,
        transport: Transport,
        *,
        on_outcome: Callable[[WriteOutcome], None],
        may_write: Callable[[], bool],
        admit: Admit = unlimited,
        workers: int,
        call_timeout_seconds: float,
        sleep: Sleep = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._on_outcome = on_outcome
        self._may_write = may_write
        self._admit = admit
        self._call_timeout_seconds = call_timeout_seconds
        self._sleep = sleep
        self._uniform = uniform
        self._queue: deque[WriteRequest] = deque()
        self._crew = Crew(min(workers, MOST_PARALLELISM), self._next, self._work_off)
        # Requests that have no outcome yet.
        self._pending = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = BoundedLog(log, clock)

    def submit(self, request: WriteRequest) -> None:
        """Take a request; it is never dropped."""
        self._pending += 1
        self._idle.clear()
        self._queue.append(request)
        self._crew.call()

    async def drain(self, timeout_seconds: float) -> int:
        """Wait until everything is written; return the number of requests without an end."""
        await wait_within(self._idle, timeout_seconds, sleep=self._sleep)
        return self._pending

    async def run(self) -> None:
        """Send requests until cancelled."""
        await self._crew.run()

    def resize(self, workers: int) -> None:
        """Send as many requests at a time from now on; what is under way is finished."""
        self._crew.resize(min(workers, MOST_PARALLELISM))

    def _next(self) -> WriteRequest | None:
        return self._queue.popleft() if self._queue else None

    async def _work_off(self, request: WriteRequest) -> None:
        outcome = await self._carry_out(request)
        if outcome is not None:
            # Whoever is told may have more to be written: it is not over before that.
            self._on_outcome(outcome)
        self._pending -= 1
        if not self._pending:
            self._idle.set()

    async def _carry_out(self, request: WriteRequest) -> WriteOutcome | None:
        key = (request.uid, request.attempt, request.request)
        for call in request.calls:
            answer, doubtful = await self._call(call)
            if answer is None:
                return None
            if isinstance(answer, str):
                return WriteOutcome(*key, done=False, message=answer)
            if answer.ok:
                continue
            if call.gone_is_fine and is_gone(answer):
                # An earlier try of which nothing is known may have been the one that deleted it.
                ours = doubtful and call.method == "DELETE"
                return WriteOutcome(*key, done=True, gone=not ours)
            error = answer.error()
            if answer.status == 403:
                verb = call.method.lower()
                self._log.forbidden(verb, call.resource, namespace=request.namespace, error=error)
            return WriteOutcome(*key, done=False, message=error.message)
        return WriteOutcome(*key, done=True)

    async def _call(self, call: Call) -> tuple[Response | str | None, bool]:
        """Return the answer, or why there is none, and whether an earlier try may have been done.

        None where nothing may be written any more.
        """
        backoff = Backoff(0.2, 5.0, uniform=self._uniform)
        problem, doubtful = "", False
        for left in reversed(range(TRIES)):
            await self._admit()
            if not self._may_write():
                return None, doubtful
            wait = backoff.next_seconds()
            try:
                answer = await self._transport.request(
                    call.method,
                    call.path,
                    body=call.body,
                    content_type=call.content_type,
                    timeout_seconds=self._call_timeout_seconds,
                    may_send=self._may_write,
                )
            except KubeError as error:
                problem = str(error)
                doubtful |= isinstance(error, OutcomeUnknown)
            else:
                if not _is_worth_another_try(call, answer):
                    return answer, doubtful
                doubtful |= is_doubtful(answer)
                refusal = answer.error()
                problem = refusal.message
                asked = bounded_wait(refusal.retry_after_seconds, _LONGEST_WAIT_SECONDS)
                wait = max(wait, asked)
            if left:
                await self._sleep(wait)
        return problem, doubtful


def _is_worth_another_try(call: Call, answer: Response) -> bool:
    """Return whether the same call may be answered otherwise."""
    if is_passing(answer):
        return True
    # Somebody wrote at the same time. A call that names a version is settled by that.
    return answer.status == 409 and call.gone_is_fine and not is_gone(answer)
