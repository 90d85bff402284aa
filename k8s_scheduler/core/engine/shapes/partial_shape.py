"""What plugins say of all pods of a partial shape, kept; what they differ in is asked for each.

Pods of one partial shape differ in what they request, or in the nodes they demand or prefer, and
in nothing else: pods of all sizes, or a DaemonSet's, each made for one node. Pods that name claims,
as a StatefulSet's do, are of one if they differ in these claims alone. No two of them are of one
shape, so nothing is won by keeping what is said of one. But most plugins never ask for what they
differ in: what these say is kept, row by row, as if they were the whole profile. Their labels may
differ too, as those of Jobs do: what is kept is for those that answer these plugins alike.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from k8s_scheduler.core.engine.shapes.kept_judgement import NO_PROMISES, KeptJudgement
from k8s_scheduler.core.engine.shapes.row_column_pool import RowColumnPool
from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.evaluation.runtime import Nominated
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Same, Skip, Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.nodes.node_table import Rows

_NO_FLIPS: Final = -1
# Pods that come and go before the best row is chosen first again.
_PATIENCE: Final = 64


@dataclass(slots=True)
class AskedPlugins:
    """The plugins that have to be asked for each pod.

    Those that ask for what these pods differ in; filters that come after one of these, and whatever
    looks beyond the row, because what they say depends on which rows others let pass.
    """

    pre_filters: list[FilterStep]
    filters: list[FilterStep]
    scores: list[tuple[int, ScoreStep]]


class PartialShape(KeptJudgement):
    """What is said of all pods of a partial shape."""

    def __init__(
        self, pool: RowColumnPool, profile: Profile, queued: QueuedPod, questions: Questions
    ) -> None:
        """Ask all plugins about one of them; NotKeptError if what they say can't be kept."""
        super().__init__(pool, queued, questions)
        self.asked = AskedPlugins([], [], [])
        # How many pods come before the best row is chosen first again, and only then asked.
        self._patience = 0
        self.names = frozenset(step.name for step in profile.pre_filters)
        self._prepare(profile, queued.view)
        filters = self._sort_filters(profile)
        scores = self._sort_scores(profile, queued.view)
        self.rows = pool.get(profile, filters, scores)
        # The rows that it lets pass, as of so many flips and a layout of nodes.
        self._feasible: Rows = self.tables.nodes.present_rows()
        self._known = (_NO_FLIPS, self._feasible)
        # Of these rows, by the places of scores.
        self._wide_views: dict[int, tuple[RowsView, Reads]] = {}

    # Building

    def _prepare(self, profile: Profile, pod: PodView) -> None:
        everywhere = self.tables.nodes.present_rows()
        for index, step in enumerate(profile.pre_filters):
            reads, questions = Reads(), Questions()
            with pod.asking(questions):
                prepared = self.runtime.prepare(step, pod, everywhere, reads)
            if questions.differ_in_partial:
                self.asked.pre_filters.append(step)
                continue
            if isinstance(prepared, Reject | Narrow | Verdict):
                raise NotKeptError("pre_filter")
            self._questions.include(questions)
            self._inputs.add(index, prepared, reads)
            if prepared is not SKIP:
                self.terms[step.name] = prepared

    def _sort_filters(self, profile: Profile) -> list[tuple[int, Term]]:
        """Return those that are kept, with their terms."""
        asked = [step.name for step in self.asked.pre_filters]
        kept: list[tuple[int, Term]] = []
        for index, step in enumerate(profile.filters):
            is_asked = step.name in asked
            if not is_asked and step.name not in self.terms:
                continue
            if is_asked or step.by_group or self.asked.filters:
                # The first filter that rejects a row has the word: those that are kept come first.
                self.asked.filters.append(step)
            else:
                kept.append((index, self.terms[step.name]))
        return kept

    def _sort_scores(self, profile: Profile, pod: PodView) -> list[tuple[int, Term]]:
        """Return those that are kept, with what was said at PreScore."""
        present = self.tables.nodes.present_rows()
        kept: list[tuple[int, Term]] = []
        for index, step in enumerate(profile.scores):
            reads, questions = Reads(), Questions()
            with pod.asking(questions):
                term = self.runtime.pre_score(step, pod, present, reads)
            says_nothing = not reads.looked_at_rows and isinstance(term, Same | Skip)
            if (
                questions.differ_in_partial
                or reads.looked_at_rows
                or (step.by_group and not says_nothing)
            ):
                self.asked.scores.append((index, step))
                continue
            self._questions.include(questions)
            self._inputs.add(len(profile.pre_filters) + index, term, reads)
            kept.append((index, term))
        return kept

    # Catching up

    def catch_up(
        self,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None = None,
        nominated: Nominated = NO_PROMISES,  # noqa: ARG002  counted in for each pod
    ) -> None:
        """Judge again what changed; NotKeptError if that can't be done."""
        self._catch_up_rows(profile, queued.view, watch)
        if self._inputs.other_terms:
            raise NotKeptError("inputs")
        if self._questions.differ_in_partial:
            # A plugin has begun to ask for what it did not ask for before.
            raise NotKeptError("questions")

    def feasible(self) -> Rows:
        """Return the rows that all that is kept lets pass, ascending."""
        flips, present = self._known
        now = self.tables.nodes.present_rows()
        if flips != self.rows.flips.position or present is not now:
            self._known = (self.rows.flips.position, now)
            found = np.flatnonzero(self.rows.base != NEVER)
            # The same object stands for all nodes: views of all of them are at hand.
            self._feasible = now if len(found) == len(now) else found
            self._wide_views.clear()
        return self._feasible

    def wide_view(self, index: int, step: ScoreStep) -> tuple[RowsView, Reads]:
        """Return a view of these rows for PreScore, and where it takes down what is read."""
        found = self._wide_views.get(index)
        if found is None:
            reads = Reads()
            view = self.runtime.view(step, self._feasible, reads=reads, wide=True)
            found = self._wide_views[index] = (view, reads)
        return found

    def may_choose_first(self) -> bool:
        """Return whether the best of all rows may be found before it is asked to take the pod.

        Where the best rows are full ones, or scores depend on which rows take the pod, that is in
        vain, and not tried for a while.
        """
        if self._patience:
            self._patience -= 1
            return False
        return not self.rows.scores.normalizes

    def chose_in_vain(self) -> None:
        """Take note that the best of all rows did not take a pod."""
        self._patience = _PATIENCE
