"""Sends the writes that pods wait for, some at a time; every request gets exactly one outcome.

A call that was not executed, or whose outcome is unknown, is sent again a few times. Repeating is
harmless because every call names a uid or a version. A refusal by the server is final.
`write_machine` draws the states of one request; this module sends its calls. No worker is held
while a request waits: settling a lost DELETE takes minutes.

When the process may no longer write, nothing is sent and no outcome is reported: the process ends.

`drain` waits for every request that was taken, and for what follows from it: a preemption that has
begun is carried out to its last victim.
"""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable

from k8s_scheduler.api.config.types import MOST_PARALLELISM
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.waiting import wait_within
from k8s_scheduler.kube.write.write_machine import WriteMachine
from k8s_scheduler.kube.write.write_requests import WriteOutcome, WriteRequest
from k8s_scheduler.lib.worker_pool import WorkerPool

log = logging.getLogger(__name__)


class WriteLane:
    """A lane of its own: what pods wait for never stands behind conditions and events."""

    def __init__(
        self, caller: Caller, *, on_outcome: Callable[[WriteOutcome], None], workers: int
    ) -> None:
        self._caller = caller
        self._on_outcome = on_outcome
        self._clock = caller.timing.clock
        self._queue: deque[WriteMachine] = deque()
        self._pool = WorkerPool(min(workers, MOST_PARALLELISM), self._next, self._go_on)
        # Requests that have no outcome yet.
        self._pending = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = BoundedLog(log, self._clock)

    def submit(self, request: WriteRequest) -> None:
        """Take a request; it is never dropped."""
        self._pending += 1
        self._idle.clear()
        self._put(WriteMachine(request, uniform=self._caller.timing.uniform))

    async def drain(self, timeout_seconds: float) -> int:
        """Wait until everything is written; return the number of requests without an end."""
        await wait_within(self._idle, timeout_seconds, sleep=self._caller.timing.sleep)
        return self._pending

    async def run(self) -> None:
        await self._pool.run()

    def resize(self, workers: int) -> None:
        """Send as many requests at a time from now on; what is under way is finished."""
        self._pool.resize(min(workers, MOST_PARALLELISM))

    def _put(self, write: WriteMachine) -> None:
        self._queue.append(write)
        self._pool.notify()

    def _next(self) -> WriteMachine | None:
        return self._queue.popleft() if self._queue else None

    async def _go_on(self, write: WriteMachine) -> None:
        while write.outcome is None:
            await self._caller.admit()
            if not self._caller.may_write():
                self._ended()
                return
            wait_seconds = await (self._look(write) if write.is_looking else self._call(write))
            if wait_seconds > 0.0:
                self._pool.start(functools.partial(self._wait, write, wait_seconds))
                return
        # The receiver of the outcome may submit more: the lane is not idle before that.
        self._on_outcome(write.outcome)
        self._ended()

    def _ended(self) -> None:
        self._pending -= 1
        if not self._pending:
            self._idle.set()

    async def _wait(self, write: WriteMachine, wait_seconds: float) -> None:
        await self._caller.timing.sleep(wait_seconds)
        self._put(write)

    async def _call(self, write: WriteMachine) -> float:
        """Make a call; return the seconds to wait before the next."""
        call = write.call
        try:
            answer = await self._caller.send(
                call.method, call.path, body=call.body, content_type=call.content_type
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
            answer = await self._caller.send("GET", write.call.path)
        except KubeError:
            return write.seen(None, started_at)
        if answer.status == 403:
            self._forbidden("get", write.call.resource, write, answer)
        return write.seen(answer, started_at)

    def _forbidden(self, verb: str, resource: str, write: WriteMachine, answer: Response) -> None:
        namespace = write.request.namespace
        self._log.forbidden(verb, resource, namespace=namespace, error=answer.error())
