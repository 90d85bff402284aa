"""Which nominated pods count for a pod in question: the others that are not less important.

Thousands may be nominated while a crowd of pods makes room for itself, and every decision
meanwhile asks. So what counts is put together once for all pods to which it is the same, and what
one nomination changes is changed in it. A mapping that was handed out stays as it is: searches for
room hold on to theirs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.evaluation.runtime import Nominated
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

Placed = tuple[PlacedPod, ...]
_NOBODY: Final[Nominated] = {}
# For pods of so many priorities it is kept who counts.
_KEPT: Final = 16


class Excepting(Mapping[NodeRow, Placed]):
    """What counts for all pods of a priority, but for what one row holds without one of them."""

    __slots__ = ("_others", "everybody", "row")

    def __init__(self, everybody: Mapping[NodeRow, Placed], row: NodeRow, others: Placed) -> None:
        """Take what counts for all, and who is left on a row that is in it."""
        self.everybody = everybody
        self.row = row
        self._others = others

    def __getitem__(self, row: NodeRow) -> Placed:
        if row != self.row:
            return self.everybody[row]
        if not self._others:
            raise KeyError(row)
        return self._others

    def __iter__(self) -> Iterator[NodeRow]:
        return (row for row in self.everybody if row != self.row or self._others)

    def __len__(self) -> int:
        return len(self.everybody) - (not self._others)


@dataclass(slots=True)
class _Counting:
    """Who counts for pods of some priorities, and as of when."""

    version: int
    # The same object as long as every node keeps its row.
    layout: Rows
    found: Mapping[NodeRow, Placed]


class Nominees:
    """Answers for one state; what is the same for many pods is put together once."""

    def __init__(self, state: Tables) -> None:
        self._state = state
        # By the lowest priority that counts, in the order of their last use.
        self._known: dict[int, _Counting] = {}

    def counting_for(self, pod: Pod) -> Nominated:
        """Return, by row, the pods whose promised room the pod has to respect.

        The same object as long as it is the same, for pods that are not nominated themselves.
        """
        nominations = self._state.nominations
        if not len(nominations):
            self._known.clear()
            return _NOBODY
        least = nominations.least_counting(pod.spec.priority or 0)
        if least is None:
            return _NOBODY
        everybody = self._counting(least)
        uid = PodUid(pod.metadata.uid)
        node = nominations.node_of(uid)
        row = None if node is None else self._state.nodes.row_of(node)
        here = () if row is None else everybody.get(row, ())
        if row is None or all(placed.uid != uid for placed in here):
            return everybody
        return Excepting(everybody, row, tuple(p for p in here if p.uid != uid))

    def forget(self) -> None:
        """Let go of pods that were nominated: none is any more."""
        self._known.clear()

    def _counting(self, least: int) -> Mapping[NodeRow, Placed]:
        nominations, layout = self._state.nominations, self._state.nodes.present_rows()
        known = self._known.pop(least, None)
        if known is None or known.layout is not layout:
            changed = None
        else:
            changed = nominations.changed_since(known.version)
        if known is None or changed is None:
            found: dict[NodeRow, Placed] = {}
            known = _Counting(nominations.version, layout, found)
            changed = nominations.nodes()
        elif changed:
            found = dict(known.found)
        if changed:
            for node in changed:
                row = self._state.nodes.row_of(node)
                if row is not None and self._state.nodes.node_at(row) is not None:
                    self._put(found, row, nominations.placed_on(node), least)
            known = _Counting(nominations.version, layout, found)
        self._known[least] = known
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return known.found

    @staticmethod
    def _put(found: dict[NodeRow, Placed], row: NodeRow, placed: Placed, least: int) -> None:
        if any(each.priority < least for each in placed):
            placed = tuple(each for each in placed if each.priority >= least)
        if placed:
            found[row] = placed
        else:
            found.pop(row, None)
