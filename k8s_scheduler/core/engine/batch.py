"""Some attempts in a row: what one message may do."""

from k8s_scheduler.core.engine.attempts import Attempts
from k8s_scheduler.core.engine.preemption.post_filter import MakingRoom
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue


class Batch:
    """Tries pods in the order of their turns."""

    def __init__(self, attempts: Attempts, making_room: MakingRoom, queue: SchedulingQueue) -> None:
        self._attempts = attempts
        self._making_room = making_room
        self._queue = queue

    def run(self, limit: int, *, now: float) -> None:
        """Try so many pods; fewer if a search for room has done all that one message may.

        A pod of the quarantine is tried alone, and only when no other can be tried.
        """
        tried = 0
        while tried < limit and (queued := self._making_room.turns.next()) is not None:
            self._attempts.attempt(queued, now=now)
            tried += 1
            if self._making_room.search_work.is_spent:
                return
        if not tried and limit and self._queue.next_quarantined is not None:
            alone = self._queue.pop_quarantined()
            if alone is not None:
                self._attempts.attempt(alone, now=now)
