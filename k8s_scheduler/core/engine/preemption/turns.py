"""Whose turn it is: pods that are active, and pods in the line for a search for room.

The most important pod comes first, wherever it waits. But a step of a search takes as long as many
decisions, and a search has many steps: after a step that did not end it, so many active pods have
their turns first, however important the pod is that is searched for. With nothing active, searches
go on one step after the other.
"""

from typing import Final

from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue

# Decisions between two steps of searches. A step takes about as long as so many simple decisions.
DECISIONS_PER_STEP: Final = 64
# Pods that join the line in one message without an attempt of their own.
_JOINING: Final = 256


class SearchTurns:
    """Picks the next pod."""

    def __init__(self, queue: SchedulingQueue) -> None:
        self._queue = queue
        # Decisions that come before the next step of a search.
        self._others = 0

    def next(self) -> QueuedPod | None:
        """Pop the next pod; None if there is none, or if enough has been done for one message."""
        queue = self._queue
        if not len(queue.line):
            return queue.pop()
        for _ in range(_JOINING):
            if not queue.has_active or (self._others <= 0 and queue.line_is_next):
                return queue.pop_line()
            queued = queue.pop()
            if queued is None or not queue.joins_line(queued):
                self._others -= 1
                return queued
        return None

    def stepped(self) -> None:
        self._others = DECISIONS_PER_STEP

    def start_over(self) -> None:
        self._others = 0
