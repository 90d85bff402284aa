"""Which nominated pods count for a pod in question: the others that are not less important."""

from collections.abc import Iterator

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.runtime import Nominated
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.delta import PlacedPod


def nominated_for(state: Cache, pod: Pod) -> Nominated:
    """Return, by row, the pods whose promised room the pod has to respect."""
    return Nominees(state).counting_for(pod)


class Nominees:
    """Answers for one state; what is the same for most pods is put together once."""

    def __init__(self, state: Cache) -> None:
        self._state = state
        # All of them, and what they were when that was put together.
        self._all: Nominated = {}
        self._made_of: tuple[int, object] = (-1, None)

    def counting_for(self, pod: Pod) -> Nominated:
        """Return, by row, the pods whose promised room the pod has to respect.

        The same object as long as it is the same for pods that are not nominated themselves and
        not more important than any of them.
        """
        nominations = self._state.nominations
        if not len(nominations):
            return {}
        uid, priority = PodUid(pod.metadata.uid), pod.spec.priority or 0
        if nominations.node_of(uid) is None and priority <= nominations.lowest_priority:
            return self._everybody()
        found = {
            row: tuple(p for p in placed if p.uid != uid and p.priority >= priority)
            for row, placed in self._placed()
        }
        return {row: others for row, others in found.items() if others}

    def _everybody(self) -> Nominated:
        made_of = (self._state.nominations.version, self._state.nodes.present_rows())
        if self._made_of[0] != made_of[0] or self._made_of[1] is not made_of[1]:
            self._all = {row: placed for row, placed in self._placed() if placed}
            self._made_of = made_of
        return self._all

    def _placed(self) -> Iterator[tuple[NodeRow, tuple[PlacedPod, ...]]]:
        nodes, nominations = self._state.nodes, self._state.nominations
        for node in nominations.nodes():
            row = nodes.row_of(node)
            if row is not None and nodes.node_at(row) is not None:
                yield row, nominations.placed_on(node)
