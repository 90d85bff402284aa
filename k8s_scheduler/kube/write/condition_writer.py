"""Writes PodScheduled conditions and nominations from their queue, some workers at a time.

A condition is worth a few tries and no more: it describes an attempt that is already over, and the
next one describes itself. A try is given up as soon as something newer about the pod waits. Who
stops has better things to wait for than hundreds of them: after `end` none is begun.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.http.protocol import STRATEGIC_MERGE_PATCH, Response, Transport
from k8s_scheduler.kube.http.response_meaning import is_gone, is_passing
from k8s_scheduler.kube.http.throttle import Admit
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.kube.write.conditions import (
    ConditionPatch,
    ConditionQueue,
    encode_condition,
    status_path,
)
from k8s_scheduler.lib.backoff import Backoff
from k8s_scheduler.lib.crew import Crew
from k8s_scheduler.obs.counters import Counter

log = logging.getLogger(__name__)

TRIES = 4


class ConditionWriter:
    """The conditions' lane of the dispatcher."""

    def __init__(
        self,
        transport: Transport,
        *,
        dropped: Counter,
        may_write: Callable[[], bool],
        admit: Admit,
        on_done: Callable[[PodUid], None],
        limit: int,
        workers: int,
        call_timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        wall_clock_ns: Callable[[], int] = time.time_ns,
        sleep: Sleep = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._dropped = dropped
        self._transport = transport
        self._may_write = may_write
        self._admit = admit
        self._on_done = on_done
        self._call_timeout_seconds = call_timeout_seconds
        self._wall_clock_ns = wall_clock_ns
        self._sleep = sleep
        self._uniform = uniform
        self._queue = ConditionQueue(limit)
        self._writers = Crew(workers, self._queue.take, self._work_off)
        self._overtaken: set[PodUid] = set()
        self._is_ending = False
        # Patches that have been sent and not been answered.
        self.under_way = 0
        self._log = BoundedLog(log, clock)

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def queue(self) -> ConditionQueue:
        """What waits, to be counted."""
        return self._queue

    def put(self, patch: ConditionPatch) -> None:
        """Take a patch; the oldest waiting one goes when there is no room."""
        oldest = self._queue.put(patch)
        self._writers.call()
        for each in oldest:
            self._drop("queue", "too many conditions wait, the oldest is dropped: %s/%s", each)

    def give_way(self, uid: PodUid) -> bool:
        """Forget what waits for a pod that is now bound; return whether nothing is under way."""
        if self._queue.withdraw(uid):
            return True
        self._overtaken.add(uid)
        return False

    def end(self) -> None:
        """Begin no more, neither what waits nor another try; what is under way is answered."""
        self._is_ending = True
        dropped = self._queue.end()
        if dropped:
            self._dropped.inc(dropped)
            log.warning("%s conditions were not written, the scheduler is stopping", dropped)

    async def run(self) -> None:
        """Write patches until cancelled."""
        await self._writers.run()

    async def _work_off(self, patch: ConditionPatch) -> None:
        try:
            await self._write(patch)
        finally:
            # A newer patch of the same pod can be taken now, and whoever wrote this one is free.
            self._queue.done(patch.uid)
            self._overtaken.discard(patch.uid)
            self._on_done(patch.uid)

    async def _write(self, patch: ConditionPatch) -> None:
        backoff = Backoff(0.2, 5.0, uniform=self._uniform)
        for left in reversed(range(TRIES)):
            await self._admit()
            if not self._may_write() or self._is_stale(patch.uid):
                return
            if self._is_ending:
                break
            if await self._try(patch):
                return
            if left and not self._is_stale(patch.uid):
                await self._sleep(backoff.next_seconds())
        if not self._is_stale(patch.uid):
            self._drop("tries", "the condition of pod %s/%s could not be written", patch)

    async def _try(self, patch: ConditionPatch) -> bool:
        """Return whether the patch is settled, be it written or refused."""
        self.under_way += 1
        try:
            response = await self._transport.request(
                "PATCH",
                status_path(patch),
                body=encode_condition(patch, wall_ns=self._wall_clock_ns()),
                content_type=STRATEGIC_MERGE_PATCH,
                timeout_seconds=self._call_timeout_seconds,
                may_send=self._may_write,
            )
        except KubeError as error:
            log.debug("condition of pod %s/%s: %s", patch.namespace, patch.name, error)
            return False
        finally:
            self.under_way -= 1
        if response.ok or is_gone(response):
            return True
        if is_passing(response) or response.status == 409:
            # The latter: somebody wrote at the same time.
            return False
        self._refused(patch, response)
        return True

    def _refused(self, patch: ConditionPatch, response: Response) -> None:
        error = response.error()
        if response.status == 403:
            self._dropped.inc()
            self._log.forbidden("patch", "pods/status", namespace=patch.namespace, error=error)
        else:
            self._drop("refused", "the condition of pod %s/%s was refused: %s", patch, error)

    def _is_stale(self, uid: PodUid) -> bool:
        return uid in self._overtaken or self._queue.is_waiting(uid)

    def _drop(self, key: str, text: str, patch: ConditionPatch, *args: object) -> None:
        self._dropped.inc()
        self._log.warning(key, text, patch.namespace, patch.name, *args)
