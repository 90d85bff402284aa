"""Pods that nothing but an event can help, by shape.

A cluster event costs work per shape, not per pod: pods of one shape are woken or left together.
For each shape the plugins that reject it are remembered, on whatever node: only what can change
their minds is worth judging again.
"""

from collections.abc import Iterable, Iterator

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.shapes import ShapeKey
from k8s_scheduler.core.queue.queued_pod import QueuedPod


class Alike:
    """The parked pods of one shape.

    There may be thousands, and events come by the thousand: what is asked of all of them at each
    is kept, and worked out anew only when the pod that decided about it has left.
    """

    def __init__(self) -> None:
        # Stands for an ordered set: who parked first is woken first.
        self._pods: dict[PodUid, QueuedPod] = {}
        self.rejectors: frozenset[str] = frozenset()
        self._without_rejectors = 0
        self._seen: int | None = None
        self._chief: QueuedPod | None = None

    def add(self, queued: QueuedPod) -> None:
        """Take a pod that was parked."""
        self._pods[queued.uid] = queued
        self.blame(queued.rejectors)
        self._without_rejectors += not queued.rejectors
        if self._seen is not None:
            self._seen = min(self._seen, queued.seen)
        if self._chief is not None and _importance(queued) > _importance(self._chief):
            self._chief = queued

    def remove(self, queued: QueuedPod) -> None:
        """Let a pod go."""
        del self._pods[queued.uid]
        self._without_rejectors -= not queued.rejectors
        if queued.seen == self._seen:
            self._seen = None
        if queued is self._chief:
            self._chief = None

    def replaced(self) -> None:
        """Take note that one of them is a newer version now."""
        self._chief = None

    def blame(self, plugins: Iterable[str]) -> None:
        """Remember that plugins reject the shape on some node."""
        if not self.rejectors.issuperset(plugins):
            self.rejectors = self.rejectors.union(plugins)

    @property
    def seen(self) -> int:
        """Return the number of the last change that the attempts of all of them knew of."""
        if self._seen is None:
            self._seen = min(queued.seen for queued in self._pods.values())
        return self._seen

    @property
    def found_no_node(self) -> bool:
        """Return whether one of them was tried when there was no node at all to reject it."""
        return self._without_rejectors > 0

    @property
    def first(self) -> QueuedPod:
        """Return who parked first."""
        return next(iter(self._pods.values()))

    @property
    def chief(self) -> QueuedPod:
        """Return the most important one: they may differ in that, and it can preempt the most."""
        if self._chief is None:
            self._chief = max(self._pods.values(), key=_importance)
        return self._chief

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __reversed__(self) -> Iterator[QueuedPod]:
        return reversed(self._pods.values())

    def __contains__(self, queued: QueuedPod) -> bool:
        return self._pods.get(queued.uid) is queued

    def __len__(self) -> int:
        return len(self._pods)


class Parked:
    """Parked pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, QueuedPod] = {}
        self._by_shape: dict[ShapeKey, Alike] = {}

    def add(self, queued: QueuedPod) -> None:
        """Park a pod."""
        self._pods[queued.uid] = queued
        alike = self._by_shape.get(queued.shape)
        if alike is None:
            alike = self._by_shape[queued.shape] = Alike()
        alike.add(queued)

    def remove(self, uid: PodUid) -> QueuedPod | None:
        """Take a pod out."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        alike = self._by_shape[queued.shape]
        alike.remove(queued)
        if not len(alike):
            del self._by_shape[queued.shape]
        return queued

    def replaced(self, shape: ShapeKey) -> None:
        """Take note that a parked pod is a newer version of the same shape now."""
        self._by_shape[shape].replaced()

    def rejectors(self, shape: ShapeKey) -> frozenset[str]:
        """Return the plugins that reject a parked shape on some node."""
        return self._by_shape[shape].rejectors

    def shapes(self) -> list[ShapeKey]:
        """Return the shapes that have parked pods, longest parked first."""
        first = {shape: alike.first.sequence for shape, alike in self._by_shape.items()}
        return sorted(first, key=first.__getitem__)

    def of_shape(self, shape: ShapeKey) -> Alike | None:
        """Return the parked pods of a shape, longest parked first; None if there are none."""
        return self._by_shape.get(shape)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)


def _importance(queued: QueuedPod) -> int:
    return queued.pod.spec.priority or 0
