"""Runs a profile's plugins over rows: the one evaluator.

Filters run in the profile's order, each only on the rows that passed those before it, so every
rejected row has exactly one plugin's verdict. A plugin that raises fails the pod's cycle, not
the scheduler; the error says which plugin, at which point.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.core.framework.plugin import MAX_SCORE, SKIP, NormalizePlugin
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views import Codes, PodView, RowsView, Scores
from k8s_scheduler.core.state.node_table import NodeTable, Rows


class PluginError(Exception):
    """A plugin raised, or broke its contract."""

    def __init__(self, plugin: str, extension_point: str, problem: str) -> None:
        super().__init__(f'running {extension_point} plugin "{plugin}": {problem}')
        self.plugin = plugin
        self.extension_point = extension_point


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filters said: a code for each row asked about, and the rows that passed."""

    codes: Codes
    feasible: Rows


class Runtime:
    """Evaluates pods against one node table."""

    def __init__(self, table: NodeTable, verdicts: VerdictTable) -> None:
        self._table = table
        self._verdicts = verdicts

    def run_filters(self, profile: Profile, pod: PodView, rows: Rows) -> Filtered:
        """Judge the pod on each of the rows."""
        codes = np.zeros(len(rows), dtype=np.int64)
        left = np.arange(len(rows))
        for step in profile.filters:
            if not len(left):
                break
            found = self._filter(step, pod, rows[left])
            if found is None:
                continue
            codes[left] = found
            left = left[found == 0]
        return Filtered(codes, rows[left])

    def run_scores(self, profile: Profile, pod: PodView, feasible: Rows) -> Scores:
        """Return the weighted total of each feasible row."""
        total = np.zeros(len(feasible), dtype=np.int64)
        for step in profile.scores:
            scores = self._score(step, pod, feasible)
            if scores is not None:
                total += scores * step.weight
        return total

    def _filter(self, step: FilterStep, pod: PodView, rows: Rows) -> Codes | None:
        with _blaming(step.name, "Filter"):
            term = step.plugin.prepare(pod)
            if term is SKIP:
                return None
            return step.plugin.filter(term, self._view(step, rows))

    def _score(self, step: ScoreStep, pod: PodView, rows: Rows) -> Scores | None:
        with _blaming(step.name, "Score"):
            term = step.plugin.pre_score(pod)
            if term is SKIP:
                return None
            scores = step.plugin.score(term, self._view(step, rows))
            if isinstance(step.plugin, NormalizePlugin):
                scores = step.plugin.normalize(scores)
        low, high = int(scores.min()), int(scores.max())
        if low < 0 or high > MAX_SCORE:
            raise PluginError(
                step.name,
                "Score",
                f'plugin "{step.name}" returns an invalid score {low if low < 0 else high}, '
                "it should in the range of [0, 100] after normalizing",
            )
        return scores

    def _view(self, step: FilterStep | ScoreStep, rows: Rows) -> RowsView:
        return RowsView(
            self._table,
            rows,
            plugin=step.name,
            dependencies=step.depends_on,
            verdicts=self._verdicts,
        )


@contextmanager
def _blaming(plugin: str, extension_point: str) -> Iterator[None]:
    """Turn whatever a plugin raises into an error that names the plugin."""
    try:
        yield
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise PluginError(plugin, extension_point, problem) from error
