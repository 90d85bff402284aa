"""Rows judged again with the pods that were promised room there.

There may be a thousand such rows while a crowd of pods makes room for itself, and every pod that
is decided about meanwhile asks about all of them. So rows are judged together wherever the promise
changes only what is on the row: filters see many rows, each with its own difference. Only where a
plugin counts the promised pods in its term (spreading, affinity) a row is tried by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.trial import Trial
from k8s_scheduler.core.framework.view_base import Codes
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.delta import Delta, PlacedPod
from k8s_scheduler.core.state.deltas import Deltas
from k8s_scheduler.core.state.node_table import Rows

if TYPE_CHECKING:
    from k8s_scheduler.core.framework.runtime import Nominated, PreFiltered, Runtime


class Promised:
    """Counts promised pods in."""

    def __init__(self, runtime: "Runtime", state: Cache) -> None:
        self._runtime = runtime
        self._state = state
        # By row: who was promised room there when it was last asked about, and the difference.
        self._kept: dict[NodeRow, tuple[Sequence[PlacedPod], Delta]] = {}
        # The last question about all rows in which nothing but the rows counted.
        self._last: tuple[Nominated, Rows, Together] | None = None

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
        if Trial.counts_pods(profile, terms):
            together = self._try(profile, before, nominated, rows=rows, codes=codes)
        else:
            together = self._together(before, nominated, rows)
        if together.deltas:
            found = self._judge(profile, terms, together)
            codes[together.places] = np.where(found, found, codes[together.places])

    def _together(self, before: "PreFiltered", nominated: "Nominated", rows: Rows) -> "Together":
        if before.names is not None:
            return self._gather(before, nominated, rows)
        last = self._last
        if last is None or last[0] is not nominated or last[1] is not rows:
            last = (nominated, rows, self._gather(before, nominated, rows))
            # A difference with a copy of something says the same only for now.
            lasts = all(delta.is_lasting for delta in last[2].deltas)
            self._last = last if lasts else None
        return last[2]

    def _gather(self, before: "PreFiltered", nominated: "Nominated", rows: Rows) -> "Together":
        found = list(self._places(before, nominated, rows))
        deltas = [self._difference(row, nominated[row]) for _, row in found]
        return Together([place for place, _ in found], deltas)

    def _try(
        self,
        profile: Profile,
        before: "PreFiltered",
        nominated: "Nominated",
        *,
        rows: Rows,
        codes: Codes,
    ) -> "Together":
        """Judge by themselves the rows where a term changes; return the others."""
        places: list[int] = []
        deltas: list[Delta] = []
        for place, row in self._places(before, nominated, rows):
            trial = self._runtime.trial(profile, before, row)
            trial.add(*nominated[row])
            if trial.has_terms(before.state.terms):
                places.append(place)
                deltas.append(trial.delta)
            else:
                codes[place] = trial.judge() or codes[place]
        return Together(places, deltas)

    def _places(
        self, before: "PreFiltered", nominated: "Nominated", rows: Rows
    ) -> Iterator[tuple[int, NodeRow]]:
        """Yield those of the rows that have promised pods, with their places among the rows."""
        promised = np.fromiter(nominated, dtype=np.int64, count=len(nominated))
        name_of = self._state.nodes.name_of
        for place in np.flatnonzero(np.isin(rows, promised)).tolist():
            row = NodeRow(int(rows[place]))
            if before.names is None or name_of(row) in before.names:
                yield place, row

    def _difference(self, row: NodeRow, pods: Sequence[PlacedPod]) -> Delta:
        """Return the row with these pods; the last one again if it was the same pods."""
        known = self._kept.get(row)
        if known is not None and known[0] is pods:
            return known[1]
        delta = self._state.delta(row)
        for placed in pods:
            delta.add(placed)
        if delta.is_lasting:
            self._kept[row] = (pods, delta)
        return delta

    def _judge(self, profile: Profile, terms: Mapping[str, Term], together: "Together") -> Codes:
        """Return for each row the code of the first filter that rejects it; 0 if it passes."""
        codes: Codes = np.zeros(len(together.deltas), dtype=np.int64)
        rows, shown = together.rows, together.shown
        left: npt.NDArray[np.intp] = np.arange(len(rows))
        for step in profile.filters:
            if step.name not in terms:
                continue
            found = self._runtime.filter(step, terms[step.name], rows, shown)
            if not np.count_nonzero(found):
                continue
            codes[left] = found
            left = left[found == 0]
            if not len(left):
                break
            rows = together.rows[left]
            shown = Deltas([together.deltas[place] for place in left.tolist()])
        return codes


class Together:
    """Rows that are judged together: their places in a question, and what differs on each."""

    __slots__ = ("deltas", "places", "rows", "shown")

    def __init__(self, places: Sequence[int], deltas: Sequence[Delta]) -> None:
        self.places: npt.NDArray[np.intp] = np.array(places, dtype=np.intp)
        self.deltas = deltas
        self.rows: Rows = np.array([delta.row for delta in deltas], dtype=np.int64)
        self.shown = Deltas(deltas)
