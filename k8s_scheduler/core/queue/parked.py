"""Pods that nothing but an event can help, by shape.

A cluster event costs work per shape, not per pod: pods of one shape are woken or left together.
For each shape the plugins that reject it are remembered, on whatever node: only what can change
their minds is worth judging again.
"""

from collections.abc import Iterable, Iterator

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.shapes import ShapeKey
from k8s_scheduler.core.queue.queued_pod import QueuedPod


class Parked:
    """Parked pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, QueuedPod] = {}
        # Inner dicts stand for ordered sets: who parked first is woken first.
        self._by_shape: dict[ShapeKey, dict[PodUid, QueuedPod]] = {}
        self._rejectors: dict[ShapeKey, frozenset[str]] = {}

    def add(self, queued: QueuedPod) -> None:
        """Park a pod."""
        self._pods[queued.uid] = queued
        self._by_shape.setdefault(queued.shape, {})[queued.uid] = queued
        self.blame(queued.shape, queued.rejectors)

    def remove(self, uid: PodUid) -> QueuedPod | None:
        """Take a pod out."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        shape = self._by_shape[queued.shape]
        del shape[uid]
        if not shape:
            del self._by_shape[queued.shape]
            del self._rejectors[queued.shape]
        return queued

    def blame(self, shape: ShapeKey, plugins: Iterable[str]) -> None:
        """Remember that plugins reject a parked shape on some node."""
        self._rejectors[shape] = self._rejectors.get(shape, frozenset()).union(plugins)

    def rejectors(self, shape: ShapeKey) -> frozenset[str]:
        """Return the plugins that reject a parked shape on some node."""
        return self._rejectors[shape]

    def shapes(self) -> list[ShapeKey]:
        """Return the shapes that have parked pods, longest parked first."""
        first = {shape: next(iter(pods.values())) for shape, pods in self._by_shape.items()}
        return sorted(first, key=lambda shape: first[shape].sequence)

    def of_shape(self, shape: ShapeKey) -> list[QueuedPod]:
        """Return the parked pods of a shape, longest parked first."""
        return list(self._by_shape.get(shape, {}).values())

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)
