"""Runs a profile's plugins over rows: the one evaluator.

PreFilter comes first, for all plugins: one that can't be resolved ends it at once, another no is
kept and the others are asked all the same (so that the final no wins), node sets are intersected.
Then filters run in the profile's order, each only on the rows that passed those before it, so
every rejected row has exactly one plugin's verdict. A plugin that raises fails the pod's cycle,
not the scheduler; the error says which plugin, at which point.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.framework.plugin import (
    MAX_SCORE,
    SKIP,
    Narrow,
    Reject,
    Term,
)
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import Reason, Verdict, VerdictTable
from k8s_scheduler.core.framework.views import Codes, PodView, RowsView, Scores
from k8s_scheduler.core.state.node_table import NodeTable, Rows

PRE_FILTER_RESULT = "PreFilterResult"


class PluginError(Exception):
    """A plugin raised, or broke its contract."""

    def __init__(self, plugin: str, extension_point: str, problem: str) -> None:
        super().__init__(f'running {extension_point} plugin "{plugin}": {problem}')
        self.plugin = plugin
        self.extension_point = extension_point


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What PreFilter found out before any node was looked at.

    `rejection`: no node can do. `names`: only these nodes can, says `narrowed_by`.
    """

    steps: tuple[tuple[FilterStep, Term], ...] = ()
    rejection: Verdict | None = None
    names: frozenset[NodeName] | None = None
    narrowed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filters said: a code for each row asked about, and the rows that passed."""

    codes: Codes
    feasible: Rows
    pre_filter: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """The weighted scores of each feasible row: in total, and by the plugins not skipped."""

    totals: Scores
    by_plugin: Mapping[str, Scores]


class Runtime:
    """Evaluates pods against one node table."""

    def __init__(self, table: NodeTable, verdicts: VerdictTable) -> None:
        self._table = table
        self._verdicts = verdicts

    def run_pre_filters(self, profile: Profile, pod: PodView) -> PreFiltered:
        """Ask every filter plugin what it needs, or whether it is over already."""
        steps: list[tuple[FilterStep, Term]] = []
        refused: Verdict | None = None
        names: frozenset[NodeName] | None = None
        narrowed_by: list[str] = []
        everywhere = self._table.present_rows()
        for step in profile.filters:
            with _blaming(step.name, "PreFilter"):
                prepared = step.plugin.prepare(pod, self._view(step, everywhere))
            if prepared is SKIP:
                continue
            if isinstance(prepared, Reject):
                verdict = Verdict(step.name, prepared.reasons, prepared.resolvable)
                if not prepared.resolvable:
                    return PreFiltered(rejection=verdict)
                refused = refused or verdict
                continue
            if isinstance(prepared, Narrow):
                narrowed_by.append(step.name)
                wanted = frozenset(prepared.names)
                names = wanted if names is None else names & wanted
                if not names:
                    return PreFiltered(rejection=_nothing_left(narrowed_by))
                prepared = prepared.term
            steps.append((step, prepared))
        if refused is not None:
            return PreFiltered(rejection=refused)
        return PreFiltered(tuple(steps), None, names, tuple(sorted(narrowed_by)))

    def run_filters(self, profile: Profile, pod: PodView, rows: Rows) -> Filtered:
        """Judge the pod on each of the rows; codes of earlier judgements are void."""
        self._verdicts.forget()
        before = self.run_pre_filters(profile, pod)
        if before.rejection is not None:
            code = self._verdicts.code(before.rejection)
            return Filtered(np.full(len(rows), code), rows[:0], before.rejection)
        codes = np.zeros(len(rows), dtype=np.int64)
        left = np.arange(len(rows))
        if before.names is not None:
            left = np.flatnonzero(np.isin(rows, self._rows_named(before.names)))
            codes[:] = self._verdicts.code(_outside(before.narrowed_by))
            codes[left] = 0
        for step, term in before.steps:
            if not len(left):
                break
            with _blaming(step.name, "Filter"):
                found = step.plugin.filter(term, self._view(step, rows[left]))
            codes[left] = found
            left = left[found == 0]
        return Filtered(codes, rows[left])

    def run_scores(self, profile: Profile, pod: PodView, feasible: Rows) -> Scored:
        """Return the weighted scores of each feasible row."""
        totals = np.zeros(len(feasible), dtype=np.int64)
        by_plugin: dict[str, Scores] = {}
        for step in profile.scores:
            scores = self._score(step, pod, feasible)
            if scores is not None:
                by_plugin[step.name] = scores * step.weight
                totals += by_plugin[step.name]
        return Scored(totals, by_plugin)

    def _score(self, step: ScoreStep, pod: PodView, rows: Rows) -> Scores | None:
        view = self._view(step, rows)
        with _blaming(step.name, "PreScore"):
            term = step.plugin.pre_score(pod, view)
        if term is SKIP:
            return None
        with _blaming(step.name, "Score"):
            scores = step.plugin.score(term, view)
            if step.normalize is not None:
                scores = step.normalize(scores)
        low, high = int(scores.min()), int(scores.max())
        if low < 0 or high > MAX_SCORE:
            raise PluginError(
                step.name,
                "Score",
                f'plugin "{step.name}" returns an invalid score {low if low < 0 else high}, '
                "it should in the range of [0, 100] after normalizing",
            )
        return scores

    def _rows_named(self, names: frozenset[NodeName]) -> list[int]:
        found = (self._table.row_of(name) for name in sorted(names))
        return [row for row in found if row is not None]

    def _view(self, step: FilterStep | ScoreStep, rows: Rows) -> RowsView:
        return RowsView(
            self._table,
            rows,
            plugin=step.name,
            dependencies=step.depends_on,
            verdicts=self._verdicts,
        )


def _nothing_left(plugins: list[str]) -> Verdict:
    """Return the verdict of node sets that have no node in common."""
    if len(plugins) == 1:
        text = f"node(s) didn't satisfy plugin {plugins[0]}"
    else:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"
    reason = Reason(code=f"{PRE_FILTER_RESULT}/Empty", text=text)
    return Verdict("", (reason,), resolvable=False, narrowed_by=tuple(sorted(plugins)))


def _outside(plugins: tuple[str, ...]) -> Verdict:
    """Return the verdict of a node that is in no node set."""
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
    reason = Reason(code=f"{PRE_FILTER_RESULT}/Outside", text=text)
    return Verdict(PRE_FILTER_RESULT, (reason,), resolvable=False, narrowed_by=plugins)


@contextmanager
def _blaming(plugin: str, extension_point: str) -> Iterator[None]:
    """Turn whatever a plugin raises into an error that names the plugin."""
    try:
        yield
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise PluginError(plugin, extension_point, problem) from error
