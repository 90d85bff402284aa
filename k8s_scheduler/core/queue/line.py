"""Parked pods to which a search for room is due, the most important one first."""

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.shapes import ShapeKey
from k8s_scheduler.core.queue.heap import Heap
from k8s_scheduler.core.queue.queued_pod import QueuedPod

# Pods of which one search says what the next would: shape, priority, preemption policy.
_Like = tuple[ShapeKey, int, str]


class Line:
    """Pods that wait for their turn, in the order of the queue."""

    def __init__(self) -> None:
        self._heap: Heap[QueuedPod] = Heap()
        self._alike: dict[_Like, dict[PodUid, QueuedPod]] = {}
        # As it was when each joined: a newer version of a parked pod may differ.
        self._kinds: dict[PodUid, _Like] = {}

    def add(self, queued: QueuedPod, *, order: tuple[float, ...]) -> None:
        self._heap.push(queued.uid, queued, order=order, sequence=queued.sequence)
        like = self._kinds[queued.uid] = _like(queued)
        self._alike.setdefault(like, {})[queued.uid] = queued

    def remove(self, queued: QueuedPod) -> None:
        like = self._kinds.pop(queued.uid, None)
        if like is None:
            return
        self._heap.remove(queued.uid)
        alike = self._alike[like]
        del alike[queued.uid]
        if not alike:
            del self._alike[like]

    def find_like(self, queued: QueuedPod) -> QueuedPod | None:
        found = self._alike.get(_like(queued)) if self._alike else None
        return None if found is None else next(iter(found.values()))

    @property
    def first(self) -> QueuedPod | None:
        found = self._heap.peek()
        return None if found is None else found[1]

    @property
    def first_order(self) -> tuple[tuple[float, ...], int] | None:
        """The place of the first in the order of the queue."""
        found = self._heap.peek()
        return None if found is None else (found[0], found[1].sequence)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._kinds

    def __len__(self) -> int:
        return len(self._kinds)


def _like(queued: QueuedPod) -> _Like:
    spec = queued.pod.spec
    return queued.shape, spec.priority or 0, spec.preemption_policy or ""
