"""What a profile says of a single pod: kept for its partial shape, or else asked."""

from collections.abc import Mapping

import numpy as np

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.highest import first_highest
from k8s_scheduler.core.engine.shapes.partial_shape import PartialShape
from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.engine.shapes.row_scores import Column
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.evaluation.runtime import (
    Filtered,
    Nominated,
    PreFiltered,
    Runtime,
    Scored,
)
from k8s_scheduler.core.framework.evaluation.trial import counting_steps
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Same, Term
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile, ScoreStep
from k8s_scheduler.core.framework.views.base import Codes, Mask
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow


class RejectedError(Exception):
    """A plugin rejects the pod before any node is looked at: it is judged from scratch."""


class _LooksBeyondError(Exception):
    """What a plugin says of one row depends on which others there are."""


class PromisedRoom:
    """What those nominated to rows leave to a pod."""

    def __init__(
        self, state: Tables, runtime: Runtime, profile: Profile, nominated: Nominated
    ) -> None:
        self._state = state
        self._runtime = runtime
        self._profile = profile
        self._nominated = nominated

    def prepare(self, pod: PodView, terms: dict[str, Term]) -> None:
        """Put the pod's own terms in place of those that were prepared for another one.

        Where pods are counted in, they may be asked what the other one was never asked.
        """
        everywhere = self._state.nodes.present_rows()
        for step, _ in counting_steps(self._profile, terms):
            terms[step.name] = self._runtime.prepare(step, pod, everywhere)

    def left_of(
        self, rows: Rows, terms: Mapping[str, Term], names: frozenset[NodeName] | None
    ) -> Rows:
        """Return those of the rows that pass with the promised pods, too; all are as they are."""
        everywhere = self._state.nodes.present_rows()
        is_many = names is None and len(rows) > 1 and not counting_steps(self._profile, terms)
        # Of all rows together, much is known from the last time.
        asked = everywhere if is_many else rows
        codes: Codes = np.zeros(len(asked), dtype=np.int64)
        self.count_in(PreFiltered(CycleState(terms), None, names), asked, codes)
        if not np.count_nonzero(codes):
            return rows
        if asked is rows:
            passed: Rows = rows[codes == 0]
            return passed
        passes: Mask = np.ones(self._state.nodes.row_count, dtype=np.bool_)
        passes[asked[codes != 0]] = False
        left: Rows = rows[passes[rows]]
        return left

    def count_in(self, before: PreFiltered, rows: Rows, codes: Codes) -> None:
        """Write into the codes of rows what the promised pods change."""
        self._runtime.promised.count_in(
            self._profile, before, self._nominated, rows=rows, codes=codes
        )


class PartialEvaluation:
    """One pod, now. Good until anything changes."""

    def __init__(
        self,
        shape: PartialShape,
        pod: PodView,
        watch: Watch | None = None,
        promises: PromisedRoom | None = None,
    ) -> None:
        """Ask what has to be asked before nodes are looked at. Raises PluginError.

        `promises` are those that count for this pod.
        """
        self._state = shape.tables
        self._runtime = shape.runtime
        self._pod = pod
        self._shape = shape
        self._watch = watch
        # Those of the pod for which what goes for all of the shape was made.
        self.labels = shape.labels
        self.cursor = shape.cursor
        self._promises = promises
        self._terms = dict(shape.terms)
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
        for step in self._shape.asked.pre_filters:
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
            return self._shape.feasible()
        nodes, base = self._state.nodes, self._shape.rows.base
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
        for step in self._shape.asked.filters:
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
        """Return those of the rows that take the pod, with and without those promised room."""
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
        return CycleState(self._terms, self._shape.names)

    def best(self, profile: Profile, *, start: int) -> NodeRow | None:
        """Return the first row of the highest total at or after `start`, wrapping around."""
        if self._names is None and self._known is None and self._shape.may_choose_first():
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
        rows = self._shape.feasible()
        if not len(rows):
            return None
        try:
            row = _first_of(rows, self._sum(profile, rows, chooses_first=True), start)
        except (PluginError, _LooksBeyondError):
            # Of rows that don't take the pod a plugin may not know what to say.
            row = None
        if row is not None and len(self._take(np.array((row,), dtype=np.int64))):
            return row
        self._shape.chose_in_vain()
        return None

    @property
    def _feasible(self) -> Rows:
        if self._known is None:
            self._known = self._take(self._candidates())
        return self._known

    def _sum(self, profile: Profile, rows: Rows, *, chooses_first: bool = False) -> Column:
        """Return the totals of some rows.

        If the row is chosen first, it is not known which of them take the pod: _LooksBeyondError
        where that matters.
        """
        kept = self._shape.rows
        totals = kept.base if len(rows) == len(kept.base) else kept.base.take(rows)
        is_own = totals is not kept.base
        parts: list[tuple[int, Column | int]] = list(kept.scores.normalized(profile, rows))
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
        for index, step in self._shape.asked.scores:
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
        view, reads = self._shape.wide_view(index, step)
        reads.looked_at_rows = False
        term = self._runtime.pre_score_view(step, self._pod, view)
        if reads.looked_at_rows:
            raise _LooksBeyondError
        return term

    # Answers, all of them: for a close look

    def totals(self, profile: Profile) -> Column:
        """Return the total of each row; negative where the pod can't go."""
        totals = np.full(len(self._shape.rows.base), NEVER, dtype=np.int64)
        totals[self._feasible] = self._sum(profile, self._feasible)
        return totals

    def filtered(self) -> Filtered:
        """Return the verdict on every node, as the filters would give it."""
        before = PreFiltered(self.state, None, self._names, tuple(sorted(self._narrowed_by)))
        present = self._state.nodes.present_rows()
        codes, places, outside = self._runtime.within(before, present)
        if places is None:
            places = np.arange(len(present))
        codes[places] = self._shape.rows.codes.take(present.take(places))
        for step in self._shape.asked.filters:
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
        parts: dict[int, Column | int] = dict(self._shape.rows.scores.parts(profile, feasible))
        parts.update(self._asked_scores(feasible))
        return Scored.of(profile, parts, len(feasible))


def _first_of(rows: Rows, totals: Column, start: int) -> NodeRow:
    """Return the first of ascending rows of the highest total at or after `start`."""
    return NodeRow(int(rows[first_highest(totals, start=int(rows.searchsorted(start)))]))
