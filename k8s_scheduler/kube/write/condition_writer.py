"""Writes PodScheduled conditions and nominations from their queue, some workers at a time.

A condition is tried a few times and no more: it describes an attempt that is over, and the next
attempt writes its own. A condition is given up as soon as a newer one of the same pod waits. A
process that stops must not wait for hundreds of conditions: after `end` none is begun.
"""

import logging
from collections.abc import Callable
from typing import Final

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.http.caller import Caller, RetryPolicy, Tries
from k8s_scheduler.kube.http.protocol import STRATEGIC_MERGE_PATCH, Response
from k8s_scheduler.kube.http.response_meaning import is_gone, is_overtaken, is_passing
from k8s_scheduler.kube.write.conditions import (
    ConditionPatch,
    ConditionQueue,
    encode_condition,
    status_path,
)
from k8s_scheduler.lib.worker_pool import WorkerPool
from k8s_scheduler.obs.counters import Counter

log = logging.getLogger(__name__)

TRIES: Final = 4


def _is_retried(answer: Response) -> bool:
    return is_passing(answer) or is_overtaken(answer)


_POLICY: Final = RetryPolicy(tries=TRIES, is_retried=_is_retried, longest_retry_after_seconds=0.0)


class ConditionWriter:
    """The conditions' lane of the dispatcher."""

    def __init__(
        self,
        caller: Caller,
        *,
        dropped: Counter,
        on_done: Callable[[PodUid], None],
        limit: int,
        workers: int,
    ) -> None:
        self._caller = caller
        self._dropped = dropped
        self._on_done = on_done
        self._queue = ConditionQueue(limit)
        self._writers = WorkerPool(workers, self._queue.take, self._work_off)
        self._overtaken: set[PodUid] = set()
        self._is_ending = False
        # Patches that have been sent and not been answered.
        self.under_way = 0
        self._log = BoundedLog(log, caller.timing.clock)

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def queue(self) -> ConditionQueue:
        return self._queue

    def put(self, patch: ConditionPatch) -> None:
        """Take a patch; the oldest waiting one goes when there is no room."""
        oldest = self._queue.put(patch)
        self._writers.notify()
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
        await self._writers.run()

    async def _work_off(self, patch: ConditionPatch) -> None:
        try:
            await self._write(patch)
        finally:
            # A newer patch of the same pod can be taken now.
            self._queue.done(patch.uid)
            self._overtaken.discard(patch.uid)
            self._on_done(patch.uid)

    async def _write(self, patch: ConditionPatch) -> None:
        uid, may_write = patch.uid, self._caller.may_write
        tries = self._caller.tries(
            _POLICY,
            may_begin=lambda: may_write() and not self._is_stale(uid),
            may_repeat=lambda: not self._is_stale(uid),
        )
        async for _ in tries:
            if self._is_ending:
                break
            if await self._try(patch, tries):
                return
        if not tries.was_stopped and not self._is_stale(uid):
            self._drop("tries", "the condition of pod %s/%s could not be written", patch)

    async def _try(self, patch: ConditionPatch, tries: Tries) -> bool:
        """Return whether the patch is settled, be it written or refused."""
        self.under_way += 1
        try:
            response = await tries.send(
                "PATCH",
                status_path(patch),
                body=encode_condition(patch, wall_ns=self._caller.timing.wall_clock_ns()),
                content_type=STRATEGIC_MERGE_PATCH,
            )
        finally:
            self.under_way -= 1
        if response is None:
            log.debug("condition of pod %s/%s: %s", patch.namespace, patch.name, tries.problem)
            return False
        if not response.ok and not is_gone(response):
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
