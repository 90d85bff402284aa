"""What a profile says of a single pod: what goes for all its kin is at hand, the rest is asked."""

import numpy as np

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.highest import first_highest
from k8s_scheduler.core.engine.shapes.partial_shape import Kin
from k8s_scheduler.core.engine.shapes.promises import Promises
from k8s_scheduler.core.engine.shapes.row_columns import NEVER, Column
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, PreFiltered, Runtime, Scored
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Same, Term
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile, ScoreStep
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow


class RejectedError(Exception):
    """A plugin rejects the pod before any node is looked at: it is judged from scratch."""


class _LooksBeyondError(Exception):
    """What a plugin says of one row depends on which others there are."""


class OneOff:
    """One pod, now. Good until anything changes."""

    def __init__(
        self,
        state: Tables,
        runtime: Runtime,
        pod: PodView,
        *,
        labels: bytes,
        kin: Kin,
        watch: Watch | None = None,
        promises: Promises | None = None,
    ) -> None:
        """Ask what has to be asked before nodes are looked at. Raises PluginError.

        `labels` are those of the pod for which what goes for all kin was made; `promises` are those
        that count for this one.
        """
        self._state = state
        self._runtime = runtime
        self._pod = pod
        self._kin = kin
        self._watch = watch
        self.labels = labels
        self.cursor = kin.cursor
        self._promises = promises
        self._terms = dict(kin.terms)
        if promises is not None:
            promises.prepare(pod, self._terms)
        # The only nodes that come into question, if plugins name them, and those plugins.
        self._names: frozenset[NodeName] | None = None
        self._narrowed_by: list[str] = []
        self._prepare()
        # The rows that take the pod, once that was found out.
        self._known: Rows | None = None

    # Building

    def _prepare(self) -> None:
        runtime, pod, watch = self._runtime, self._pod, self._watch
        everywhere = self._state.nodes.present_rows()
        for step in self._kin.asked.pre_filters:
            prepared = runtime.prepare(step, pod, everywhere)
            if prepared is SKIP:
                continue
            if watch is not None:
                watch.asked(points.PRE_FILTER, step.name)
            if isinstance(prepared, Reject):
                raise RejectedError
            if isinstance(prepared, Narrow):
                self._narrow(step.name, prepared)
            else:
                self._terms[step.name] = prepared

    def _narrow(self, plugin: str, prepared: Narrow) -> None:
        names = frozenset(prepared.names)
        self._narrowed_by.append(plugin)
        self._names = names if self._names is None else self._names & names
        self._terms[plugin] = prepared.term

    def _candidates(self) -> Rows:
        """Return the rows that are let pass by all that is kept."""
        if self._names is None:
            return self._kin.feasible()
        nodes, base = self._state.nodes, self._kin.rows.base
        if len(self._names) == 1:
            (name,) = self._names
            row = nodes.row_of(name)
            passes = row is not None and base[row] != NEVER
            return np.array((row,) if passes else (), dtype=np.int64)
        found = (nodes.row_of(name) for name in sorted(self._names))
        passed = [row for row in found if row is not None and base[row] != NEVER]
        return np.array(sorted(passed), dtype=np.int64)

    def _filter(self, rows: Rows) -> Rows:
        """Return those of the rows that pass the filters that have to be asked."""
        terms, watch, runtime = self._terms, self._watch, self._runtime
        for step in self._kin.asked.filters:
            if step.name not in terms:
                continue
            if not len(rows):
                break
            if watch is not None:
                watch.asked(points.FILTER, step.name, len(rows))
            codes = runtime.filter(step, terms[step.name], rows)
            if np.count_nonzero(codes):
                rows = rows[codes == 0]
        return rows

    def _take(self, rows: Rows) -> Rows:
        """Return those of the rows that take the pod, with and without who was promised room."""
        found = self._filter(rows)
        if self._promises is None or not len(found):
            return found
        return self._promises.left_of(found, self._terms, self._names)

    # Answers

    @property
    def node_names(self) -> frozenset[NodeName] | None:
        """The only nodes that come into question, if the pod names them."""
        return self._names

    @property
    def state(self) -> CycleState:
        """What the filters prepared: the state of an attempt that begins."""
        return CycleState(self._terms, self._kin.names)

    def best(self, profile: Profile, *, start: int) -> NodeRow | None:
        """Return the first row of the highest total at or after `start`, wrapping around."""
        if self._names is None and self._known is None and self._kin.may_choose_first():
            row = self._choose_first(profile, start)
            if row is not None:
                return row
        rows = self._feasible
        if len(rows) <= 1:
            return NodeRow(int(rows[0])) if len(rows) else None
        return _first_of(rows, self._sum(profile, rows), start)

    def _choose_first(self, profile: Profile, start: int) -> NodeRow | None:
        """Return the best of all rows if that one takes the pod: the others need not be asked.

        Only where what is said of one row has nothing to do with the others.
        """
        rows = self._kin.feasible()
        if not len(rows):
            return None
        try:
            row = _first_of(rows, self._sum(profile, rows, chooses_first=True), start)
        except (PluginError, _LooksBeyondError):
            # Of rows that don't take the pod a plugin may not know what to say.
            row = None
        if row is not None and len(self._take(np.array((row,), dtype=np.int64))):
            return row
        self._kin.chose_in_vain()
        return None

    @property
    def _feasible(self) -> Rows:
        """The rows that take the pod."""
        if self._known is None:
            self._known = self._take(self._candidates())
        return self._known

    def _sum(self, profile: Profile, rows: Rows, *, chooses_first: bool = False) -> Column:
        """Return the totals of some rows.

        Who chooses first does not know which of them take the pod: _LooksBeyondError if that
        matters.
        """
        kept = self._kin.rows
        totals = kept.base if len(rows) == len(kept.base) else kept.base.take(rows)
        is_own = totals is not kept.base
        parts: list[tuple[int, Column | int]] = list(kept.normalized(profile, rows))
        parts += self._asked_scores(rows, chooses_first=chooses_first)
        for _, part in parts:
            # What is kept is not written to, and what is new need not be made again.
            totals = np.add(totals, part, out=totals if is_own else None)
            is_own = True
        return totals

    def _asked_scores(
        self, rows: Rows, *, chooses_first: bool = False
    ) -> list[tuple[int, Column | int]]:
        """Return the weighted scores of rows that have to be asked for, by their places."""
        found: list[tuple[int, Column | int]] = []
        watch, runtime = self._watch, self._runtime
        if not len(rows):
            return found
        for index, step in self._kin.asked.scores:
            view = runtime.view(step, rows)
            if chooses_first:
                term: Term = self._pre_score(index, step)
            else:
                term = runtime.pre_score_view(step, self._pod, view)
            if term is SKIP:
                continue
            if watch is not None:
                watch.asked(points.PRE_SCORE, step.name)
                watch.asked(points.SCORE, step.name, len(rows))
            if isinstance(term, Same):
                found.append((index, term.score * step.weight))
                continue
            if chooses_first and (step.by_group or step.normalize is not None):
                raise _LooksBeyondError
            scores = runtime.score_view(step, term, view)
            found.append((index, scores if step.weight == 1 else scores * step.weight))
        return found

    def _pre_score(self, index: int, step: ScoreStep) -> Term:
        """Return what is said at PreScore, if that does not depend on which rows there are."""
        view, reads = self._kin.wide_view(index, step)
        reads.looked_at_rows = False
        term = self._runtime.pre_score_view(step, self._pod, view)
        if reads.looked_at_rows:
            raise _LooksBeyondError
        return term

    # Answers, all of them: for those who look closely

    def totals(self, profile: Profile) -> Column:
        """Return the total of each row; negative where the pod can't go."""
        totals = np.full(len(self._kin.rows.base), NEVER, dtype=np.int64)
        totals[self._feasible] = self._sum(profile, self._feasible)
        return totals

    def filtered(self) -> Filtered:
        """Return the verdict on every node, as the filters would give it."""
        before = PreFiltered(self.state, None, self._names, tuple(sorted(self._narrowed_by)))
        present = self._state.nodes.present_rows()
        codes, places, outside = self._runtime.within(before, present)
        if places is None:
            places = np.arange(len(present))
        codes[places] = self._kin.rows.codes.take(present.take(places))
        for step in self._kin.asked.filters:
            if step.name in self._terms:
                places = places[codes.take(places) == 0]
                rows = present.take(places)
                if len(rows):
                    codes[places] = self._runtime.filter(step, self._terms[step.name], rows)
        if self._promises is not None:
            self._promises.count_in(before, present, codes)
        return Filtered(codes, present[codes == 0], before, outside)

    def scored(self, profile: Profile, feasible: Column) -> Scored:
        """Return every plugin's part of the totals of the feasible rows, weighted."""
        parts: dict[int, Column | int] = dict(self._kin.rows.parts(profile, feasible))
        parts.update(self._asked_scores(feasible))
        return Scored.of(profile, parts, len(feasible))


def _first_of(rows: Rows, totals: Column, start: int) -> NodeRow:
    """Return the first of ascending rows of the highest total at or after `start`."""
    return NodeRow(int(rows[first_highest(totals, start=int(rows.searchsorted(start)))]))
