"""Sends the writes that pods wait for, some at a time; every request gets exactly one outcome.

A call that was not executed, or of which nothing is known, is sent again a few times: all of them
may be repeated without harm, because they name a uid or a version. What the server refuses is
refused for good. How one request goes its way is drawn in `write_machine`; here is only who sends
it. No worker is held while a request waits: one that has to be settled waits for minutes.

Where nobody may write any more, nothing more is sent and nobody is told: the process is on its way
out.

At the end everything that was taken is brought to its end, and so is what follows from it: a
preemption that has begun is carried out to its last victim.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable

from k8s_scheduler.api.config.types import MOST_PARALLELISM
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.http.protocol import Response, Transport
from k8s_scheduler.kube.http.throttle import Admit, unlimited
from k8s_scheduler.kube.waiting import Sleep, wait_within
from k8s_scheduler.kube.write.write_machine import WriteMachine
from k8s_scheduler.kube.write.write_requests import WriteOutcome, WriteRequest
from k8s_scheduler.lib.crew import Crew

log = logging.getLogger(__name__)


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
        self._clock = clock
        self._queue: deque[WriteMachine] = deque()
        self._crew = Crew(min(workers, MOST_PARALLELISM), self._next, self._go_on)
        # Those that wait for their time.
        self._waits: asyncio.TaskGroup | None = None
        # Requests that have no outcome yet.
        self._pending = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = BoundedLog(log, clock)

    def submit(self, request: WriteRequest) -> None:
        """Take a request; it is never dropped."""
        self._pending += 1
        self._idle.clear()
        self._put(WriteMachine(request, uniform=self._uniform))

    async def drain(self, timeout_seconds: float) -> int:
        """Wait until everything is written; return the number of requests without an end."""
        await wait_within(self._idle, timeout_seconds, sleep=self._sleep)
        return self._pending

    async def run(self) -> None:
        """Send requests until cancelled."""
        async with asyncio.TaskGroup() as self._waits:
            self._waits.create_task(self._crew.run())

    def resize(self, workers: int) -> None:
        """Send as many requests at a time from now on; what is under way is finished."""
        self._crew.resize(min(workers, MOST_PARALLELISM))

    def _put(self, write: WriteMachine) -> None:
        self._queue.append(write)
        self._crew.call()

    def _next(self) -> WriteMachine | None:
        return self._queue.popleft() if self._queue else None

    async def _go_on(self, write: WriteMachine) -> None:
        """Make calls until the request ends or has to wait."""
        while write.outcome is None:
            await self._admit()
            if not self._may_write():
                self._ended()
                return
            wait_seconds = await (self._look(write) if write.is_looking else self._call(write))
            if wait_seconds > 0.0:
                self._begin_waiting(write, wait_seconds)
                return
        # Whoever is told may have more to be written: it is not over before that.
        self._on_outcome(write.outcome)
        self._ended()

    def _ended(self) -> None:
        self._pending -= 1
        if not self._pending:
            self._idle.set()

    def _begin_waiting(self, write: WriteMachine, wait_seconds: float) -> None:
        waiting = self._wait(write, wait_seconds)
        try:
            if self._waits is not None:
                self._waits.create_task(waiting)
                return
        except RuntimeError:
            # Nobody joins a group that is being broken up.
            pass
        waiting.close()

    async def _wait(self, write: WriteMachine, wait_seconds: float) -> None:
        await self._sleep(wait_seconds)
        self._put(write)

    async def _call(self, write: WriteMachine) -> float:
        """Make a call; return the seconds to wait before the next."""
        call = write.call
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
            wait_seconds = write.unanswered(error, self._clock())
        else:
            if answer.status == 403:
                self._forbidden(call.method.lower(), call.resource, write, answer)
            wait_seconds = write.answered(answer, self._clock())
        if write.is_looking:
            self._log.warning(
                "lost delete",
                "%s was not answered, reading it until it is known whether it leaves",
                call.path,
            )
        return wait_seconds

    async def _look(self, write: WriteMachine) -> float:
        """Read what a call is about; return the seconds to wait before the next time."""
        started_at = self._clock()
        try:
            answer = await self._transport.request(
                "GET", write.call.path, timeout_seconds=self._call_timeout_seconds
            )
        except KubeError:
            return write.seen(None, started_at)
        if answer.status == 403:
            self._forbidden("get", write.call.resource, write, answer)
        return write.seen(answer, started_at)

    def _forbidden(self, verb: str, resource: str, write: WriteMachine, answer: Response) -> None:
        namespace = write.request.namespace
        self._log.forbidden(verb, resource, namespace=namespace, error=answer.error())
