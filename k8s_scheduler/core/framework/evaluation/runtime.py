"""Runs a profile's plugins over rows: the one evaluator.

PreFilter comes first, for all plugins: one that can't be resolved ends it at once, another no is
kept and the others are asked all the same (so that the final no wins), node sets are intersected.
Then filters run in the profile's order, each only on the rows that passed those before it, so
every rejected row has exactly one plugin's verdict. Rows with nominated pods are judged twice:
with them and without, and both must pass. A plugin that raises fails the pod's cycle, not the
scheduler; the error says which plugin, at which point.
"""

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.evaluation.node_sets import nothing_left, outside_of
from k8s_scheduler.core.framework.evaluation.normalizing import normalized
from k8s_scheduler.core.framework.evaluation.promised import Promised
from k8s_scheduler.core.framework.evaluation.results import (
    Filtered,
    Nominated,
    PreFiltered,
    Scored,
)
from k8s_scheduler.core.framework.evaluation.step_views import StepViews
from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.plugin import (
    SKIP,
    Narrow,
    Prepared,
    Reject,
    Same,
    Term,
)
from k8s_scheduler.core.framework.plugin_errors import blame
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import Verdict, VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.state.delta import Delta, Deltas
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

__all__ = ["Filtered", "Nominated", "PreFiltered", "Runtime", "Scored"]

_NONE_NOMINATED: Nominated = {}


class Runtime:
    """Evaluates pods against one state."""

    def __init__(self, state: Tables, verdicts: VerdictTable) -> None:
        self._state = state
        self._verdicts = verdicts
        self.view = StepViews(state, verdicts).view
        self.promised = Promised(self, state)

    # Filters

    def run_pre_filters(
        self,
        profile: Profile,
        pod: PodView,
        watch: Watch | None = None,
        reads: Reads | None = None,
    ) -> PreFiltered:
        """Ask every filter plugin what it needs, or whether it is over already."""
        if watch is None:
            return self._pre_filter(profile, pod, None, reads)
        started = watch.now()
        status = points.ERROR
        try:
            found = self._pre_filter(profile, pod, watch, reads)
            no = found.rejection
            status = points.SUCCESS if no is None else points.rejected(resolvable=no.resolvable)
        finally:
            watch.ended(points.PRE_FILTER, status, started)
        return found

    def _pre_filter(
        self, profile: Profile, pod: PodView, watch: Watch | None, reads: Reads | None
    ) -> PreFiltered:
        terms: dict[str, Term] = {}
        refused: Verdict | None = None
        names: frozenset[NodeName] | None = None
        narrowed_by: list[str] = []
        everywhere = self._state.nodes.present_rows()
        asked: list[str] = []
        for step in profile.pre_filters:
            asked.append(step.name)
            taken = reads if step.counts_pods else None
            prepared = self.prepare(step, pod, everywhere, taken)
            if prepared is SKIP:
                # By far the most frequent answer.
                continue
            if watch is not None:
                watch.asked(points.PRE_FILTER, step.name)
            if isinstance(prepared, Reject):
                verdict = Verdict(step.name, prepared.reasons, prepared.resolvable)
                if not prepared.resolvable:
                    return PreFiltered(CycleState(asked=frozenset(asked)), verdict)
                refused = refused or verdict
            elif isinstance(prepared, Narrow):
                narrowed_by.append(step.name)
                wanted = frozenset(prepared.names)
                names = wanted if names is None else names & wanted
                if not names:
                    state = CycleState(asked=frozenset(asked))
                    return PreFiltered(state, nothing_left(narrowed_by))
                terms[step.name] = prepared.term
            else:
                terms[step.name] = prepared
        state = CycleState(terms, frozenset(asked))
        if refused is not None:
            return PreFiltered(state, rejection=refused)
        return PreFiltered(state, None, names, tuple(sorted(narrowed_by)))

    def prepare(
        self, step: FilterStep, pod: PodView, rows: Rows, reads: Reads | None = None
    ) -> Prepared:
        """Return what a plugin says at PreFilter; just a term, if it may only filter."""
        try:
            prepared = step.plugin.prepare(pod, self.view(step, rows, reads=reads, wide=True))
        except Exception as error:
            raise blame(error, step.name, "PreFilter") from error
        if step.pre_filters:
            return prepared
        if isinstance(prepared, Narrow):
            return prepared.term
        if isinstance(prepared, Reject):
            verdict = Verdict(step.name, prepared.reasons, prepared.resolvable)
            return verdict if prepared.term is None else prepared.term
        return prepared

    def run_filters(
        self,
        profile: Profile,
        pod: PodView,
        rows: Rows,
        nominated: Nominated = _NONE_NOMINATED,
        *,
        watch: Watch | None = None,
        reads: Reads | None = None,
    ) -> Filtered:
        """Judge the pod on each of the rows; codes of earlier judgements are void.

        `reads` takes down what is read by plugins to which pods are counts.
        """
        self._verdicts.forget()
        before = self.run_pre_filters(profile, pod, watch, reads)
        if before.rejection is not None:
            code = self._verdicts.code(before.rejection)
            return Filtered(np.full(len(rows), code), rows[:0], before)
        if watch is None:
            return self._filter_rows(profile, before, rows, nominated, reads=reads)
        started = watch.now()
        status = points.ERROR
        try:
            found = self._filter_rows(profile, before, rows, nominated, watch=watch, reads=reads)
            # As kube-scheduler does: only a failure is no success here.
            status = points.SUCCESS
        finally:
            watch.ended(points.FILTER, status, started)
        return found

    def _filter_rows(
        self,
        profile: Profile,
        before: PreFiltered,
        rows: Rows,
        nominated: Nominated,
        *,
        watch: Watch | None = None,
        reads: Reads | None = None,
    ) -> Filtered:
        # Positions in `rows` that passed so far; None while these are all of them, so that views
        # of all nodes stay just that.
        codes, passed, outside = self.within(before, rows)
        for step in profile.filters:
            if step.name not in before.state.terms:
                continue
            left = rows if passed is None else rows.take(passed)
            if not len(left):
                break
            if watch is not None:
                watch.asked(points.FILTER, step.name, len(left))
            taken = reads if step.counts_pods else None
            found = self.filter(step, before.state.terms[step.name], left, reads=taken)
            if not np.count_nonzero(found):
                continue
            if passed is None:
                codes[:] = found
                passed = np.flatnonzero(found == 0)
            else:
                codes[passed] = found
                passed = passed[found == 0]
        if nominated:
            self.promised.count_in(profile, before, nominated, rows=rows, codes=codes)
            passed = np.flatnonzero(codes == 0)
        return Filtered(codes, rows if passed is None else rows.take(passed), before, outside)

    def within(
        self, before: PreFiltered, rows: Rows
    ) -> tuple[Codes, npt.NDArray[np.intp] | None, int]:
        """Return codes that reject the rows in no node set, where the others are, and that code.

        Without a set, nothing is rejected and the code is -1.
        """
        if before.names is None:
            return np.zeros(len(rows), dtype=np.int64), None, -1
        named = self._rows_named(before.names)
        if len(rows) and rows is self._state.nodes.present_rows():
            # These are ascending, and a set names few nodes.
            places = np.searchsorted(rows, named)
            places = places[rows.take(places, mode="clip") == named]
        else:
            places = np.flatnonzero(np.isin(rows, named))
        outside = self._verdicts.code(outside_of(before.narrowed_by))
        codes = np.full(len(rows), outside, dtype=np.int64)
        codes[places] = 0
        return codes, places, outside

    def blamed(self, codes: Codes) -> tuple[str, ...]:
        """Return the plugins whose verdicts these codes are, sorted."""
        distinct = dict.fromkeys(codes.tolist())
        found = {name for code in distinct if code for name in self._verdicts[code].blamed}
        return tuple(sorted(found))

    def filter(
        self,
        step: FilterStep,
        term: Term,
        rows: Rows,
        delta: Delta | Deltas | None = None,
        reads: Reads | None = None,
    ) -> Codes:
        """Return one plugin's codes; a term that is a verdict stands for every row."""
        if isinstance(term, Verdict):
            return np.full(len(rows), self._verdicts.code(term), dtype=np.int64)
        return self.filter_view(step, term, self.view(step, rows, delta, reads))

    @staticmethod
    def filter_view(step: FilterStep, term: Term, view: RowsView) -> Codes:
        """Return one plugin's codes of what is in a view."""
        try:
            return step.plugin.filter(term, view)
        except Exception as error:
            raise blame(error, step.name, "Filter") from error

    def trial(
        self, profile: Profile, before: PreFiltered, row: NodeRow, reads: Reads | None = None
    ) -> "Trial":
        """Return one row to try changes on; `reads` takes down what is read for it."""
        return Trial(self, profile, dict(before.state.terms), self._state.delta(row), reads)

    # Scores

    def run_scores(
        self, profile: Profile, pod: PodView, feasible: Rows, watch: Watch | None = None
    ) -> Scored:
        """Return the weighted scores of each feasible row."""
        if watch is None:
            return self._score_rows(self._pre_score(profile, pod, feasible, None), feasible, None)
        started, point, status = watch.now(), points.PRE_SCORE, points.ERROR
        try:
            terms = self._pre_score(profile, pod, feasible, watch)
            started, point = watch.ended(point, points.SUCCESS, started), points.SCORE
            found = self._score_rows(terms, feasible, watch)
            status = points.SUCCESS
        finally:
            watch.ended(point, status, started)
        return found

    def _score_rows(
        self,
        terms: list[tuple[ScoreStep, RowsView, Term]],
        feasible: Rows,
        watch: Watch | None,
    ) -> Scored:
        parts: dict[str, Scores | int] = {}
        constant = 0
        totals: Scores | None = None
        for step, view, term in terms:
            if watch is not None:
                watch.asked(points.SCORE, step.name, len(feasible))
            if isinstance(term, Same):
                parts[step.name] = same = term.score * step.weight
                constant += same
                continue
            found = self.score_view(step, term, view)
            part = parts[step.name] = found if step.weight == 1 else found * step.weight
            totals = part if totals is None else totals + part
        if totals is None:
            return Scored(np.full(len(feasible), constant, dtype=np.int64), parts)
        return Scored(totals + constant if constant else totals, parts)

    def _pre_score(
        self, profile: Profile, pod: PodView, feasible: Rows, watch: Watch | None
    ) -> list[tuple[ScoreStep, RowsView, Term]]:
        """Return the plugins that have something to say, with what they need for it."""
        terms = []
        for step in profile.scores:
            view = self.view(step, feasible)
            term = self.pre_score_view(step, pod, view)
            if term is not SKIP:
                terms.append((step, view, term))
                if watch is not None:
                    watch.asked(points.PRE_SCORE, step.name)
        return terms

    @staticmethod
    def pre_score_view(step: ScoreStep, pod: PodView, view: RowsView) -> Term:
        """Return what a plugin says at PreScore of what is in a view."""
        try:
            return step.plugin.pre_score(pod, view)
        except Exception as error:
            raise blame(error, step.name, "PreScore") from error

    @staticmethod
    def _raw_score(step: ScoreStep, view: RowsView, term: Term) -> Scores:
        try:
            return step.plugin.score(term, view)
        except Exception as error:
            raise blame(error, step.name, "Score") from error

    # Scores, piece by piece: for evaluations that are kept

    def pre_score(self, step: ScoreStep, pod: PodView, rows: Rows, reads: Reads) -> Term:
        return self.pre_score_view(step, pod, self.view(step, rows, reads=reads, wide=True))

    def raw_score(self, step: ScoreStep, term: Term, rows: Rows, reads: Reads) -> Scores:
        """Return a plugin's scores before they are normalised."""
        return self._raw_score(step, self.view(step, rows, reads=reads), term)

    def score(self, step: ScoreStep, term: Term, rows: Rows, reads: Reads) -> Scores:
        return self.score_view(step, term, self.view(step, rows, reads=reads))

    def group_view(self, step: ScoreStep, rows: Rows, nodes: Scores, reads: Reads) -> RowsView:
        """Return a view of rows that stand for several nodes each."""
        return self.view(step, rows, reads=reads, multiplicity=nodes)

    def group_pre_score(
        self, step: ScoreStep, pod: PodView, rows: Rows, nodes: Scores, reads: Reads
    ) -> Term:
        """Return what a plugin says at PreScore of rows that stand for several nodes each."""
        return self.pre_score_view(step, pod, self.group_view(step, rows, nodes, reads))

    def score_view(self, step: ScoreStep, term: Term, view: RowsView) -> Scores:
        """Return a plugin's scores of what is in a view."""
        return normalized(step, self._raw_score(step, view, term))

    def _rows_named(self, names: frozenset[NodeName]) -> Rows:
        """Return the rows of the nodes of these names, ascending."""
        found = (self._state.nodes.row_of(name) for name in sorted(names))
        return np.array(sorted(row for row in found if row is not None), dtype=np.int64)
