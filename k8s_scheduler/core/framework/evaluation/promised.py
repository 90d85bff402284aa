"""Rows judged again with the pods that were promised room there.

There may be a thousand such rows while a crowd of pods makes room for itself, and every pod that
is decided about meanwhile asks about all of them. So rows are judged together wherever the promise
changes only what is on the row: filters see many rows, each with its own difference. Only where a
plugin counts the promised pods in its term (spreading, affinity) a row is tried by itself.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.evaluation.judging_rows import Together, judge_all
from k8s_scheduler.core.framework.evaluation.trial import counting_steps
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.shapes import ShapeKey, shape_of
from k8s_scheduler.core.framework.views.base import FEW, Codes
from k8s_scheduler.core.state.delta import Delta, PlacedPod
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

if TYPE_CHECKING:
    from k8s_scheduler.core.framework.evaluation.runtime import Nominated, PreFiltered, Runtime

_Places = npt.NDArray[np.intp]


class Promised:
    """Counts promised pods in."""

    def __init__(self, runtime: "Runtime", state: Tables) -> None:
        self._runtime = runtime
        self._state = state
        # By row: who was promised room there when it was last asked about, and the difference.
        self._kept: dict[NodeRow, tuple[Sequence[PlacedPod], Delta]] = {}
        # The last question about all rows in which nothing but the rows counted.
        self._last: tuple[Nominated, Rows, _Places, Together] | None = None
        # By uid: a promised pod whose shape was asked for, and the shape.
        self._shapes: dict[PodUid, tuple[PlacedPod, ShapeKey]] = {}

    def count_in(
        self,
        profile: Profile,
        before: "PreFiltered",
        nominated: "Nominated",
        *,
        rows: Rows,
        codes: Codes,
    ) -> None:
        """Write into `codes` what the promised pods change on the rows."""
        terms = before.state.terms
        if counting_steps(profile, terms):
            found = list(self._places(before, nominated, rows))
            places = np.array([place for place, _ in found], dtype=np.intp)
            trials = [self._runtime.trial(profile, before, row) for _, row in found]
            for trial in trials:
                trial.add(*nominated[trial.delta.row])
            changed = judge_all(self._runtime, profile, terms, trials)
        else:
            places, together = self._together(before, nominated, rows)
            changed = together.judge(self._runtime, profile, terms)
        codes[places] = np.where(changed, changed, codes[places])

    def _together(
        self, before: "PreFiltered", nominated: "Nominated", rows: Rows
    ) -> tuple[_Places, Together]:
        if before.names is not None:
            return self._gather(before, nominated, rows)
        last = self._last
        if last is None or last[0] is not nominated or last[1] is not rows:
            self._forget_old(nominated)
            last = (nominated, rows, *self._gather(before, nominated, rows))
            # A difference with a copy of something says the same only for now.
            lasts = all(delta.is_lasting for delta in last[3].deltas)
            self._last = last if lasts else None
        return last[2], last[3]

    def _gather(
        self, before: "PreFiltered", nominated: "Nominated", rows: Rows
    ) -> tuple[_Places, Together]:
        found = list(self._places(before, nominated, rows))
        places = np.array([place for place, _ in found], dtype=np.intp)
        return places, Together([self.difference(row, nominated[row]) for _, row in found])

    def _places(
        self, before: "PreFiltered", nominated: "Nominated", rows: Rows
    ) -> Iterator[tuple[int, NodeRow]]:
        """Yield those of the rows that have promised pods, with their places among the rows."""
        name_of = self._state.nodes.name_of
        if len(rows) <= FEW:
            places = [place for place, row in enumerate(rows.tolist()) if row in nominated]
        else:
            promised = np.fromiter(nominated, dtype=np.int64, count=len(nominated))
            places = np.flatnonzero(np.isin(rows, promised)).tolist()
        for place in places:
            row = NodeRow(int(rows[place]))
            if before.names is None or name_of(row) in before.names:
                yield place, row

    def difference(self, row: NodeRow, pods: Sequence[PlacedPod]) -> Delta:
        """Return the row with these pods; the last one again if it was the same pods.

        Do not change it.
        """
        known = self._kept.get(row)
        if known is not None and known[0] is pods:
            return known[1]
        delta = self._state.delta(row)
        for placed in pods:
            delta.add(placed)
        if delta.is_lasting:
            self._kept[row] = (pods, delta)
        return delta

    def shape_of(self, placed: PlacedPod) -> ShapeKey:
        """Return the shape of a promised pod, worked out once."""
        known = self._shapes.get(placed.uid)
        if known is None or known[0] is not placed:
            if len(self._shapes) > 2 * len(self._state.nominations):
                node_of = self._state.nominations.node_of
                there = self._shapes.items()
                self._shapes = {uid: known for uid, known in there if node_of(uid) is not None}
            known = self._shapes[placed.uid] = (placed, shape_of(placed.pod))
        return known[1]

    def forget(self) -> None:
        """Let go of everything: no pod is promised anything."""
        if self._kept or self._shapes or self._last is not None:
            self._kept, self._shapes, self._last = {}, {}, None

    def _forget_old(self, nominated: "Nominated") -> None:
        """Let go of rows without promises, once there are as many as with."""
        if len(self._kept) > 2 * len(nominated):
            self._kept = {row: self._kept[row] for row in nominated if row in self._kept}
