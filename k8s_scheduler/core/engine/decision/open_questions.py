"""Decisions that wait for extenders, and the pods that wait behind them: how they are given up."""

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.decision.suspensions import Suspensions
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue


class OpenQuestions:
    """Ends suspended decisions, and lets the pods of their profiles be tried again."""

    def __init__(self, suspensions: Suspensions, queue: SchedulingQueue) -> None:
        self._suspensions = suspensions
        self._queue = queue

    def forget(self, uid: PodUid) -> None:
        """Give up a suspended decision: its pod is gone, or was placed by another scheduler."""
        profile = self._suspensions.drop(uid)
        if profile is not None:
            self._queue.bring_back(profile)

    def take_back(self) -> None:
        """Begin all suspended decisions anew: half of each would be made by other rules."""
        for queued in self._suspensions.take_back():
            self._queue.set_aside(queued)
            self._queue.bring_back(queued.pod.spec.scheduler_name)

    def release(self, profile: str) -> None:
        """End the suspended decision of a profile: the next one may begin."""
        self._suspensions.end(profile)
        self._queue.bring_back(profile)
