"""What plugins say of all kin, kept; for each of them, only what they differ in is asked.

Kin are pods that differ in what they request, or in the nodes they demand or prefer, and in nothing
else: pods of all sizes, or a DaemonSet's, each made for one node. Pods that name claims, as a
StatefulSet's do, are kin if they differ in these claims alone. No two of them are of one shape, so
nothing is won by keeping what is said of one. But most plugins never ask for what they differ in:
what these say is kept, row by row, as if they were the whole profile. Their labels may differ too,
as those of Jobs do: what is kept is for those that answer these plugins alike.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from k8s_scheduler.core.engine.shapes.row_column_pool import RowParts
from k8s_scheduler.core.engine.shapes.row_columns import NEVER, RowPart
from k8s_scheduler.core.engine.shapes.sizes import size_of, size_of_questions
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.validity import Inputs
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Same, Skip, Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import Tables

_NO_FLIPS: Final = -1
# Pods that come and go before the best row is chosen first again.
_PATIENCE: Final = 64


@dataclass(slots=True)
class Asked:
    """The plugins that have to be asked for each pod.

    Those that ask for what kin differ in; filters that come after one of these, and whatever looks
    beyond the row, because what they say depends on which rows others let pass.
    """

    pre_filters: list[FilterStep]
    filters: list[FilterStep]
    scores: list[tuple[int, ScoreStep]]


class Kin:
    """What is said of all kin."""

    def __init__(
        self,
        state: Tables,
        runtime: Runtime,
        profile: Profile,
        pod: PodView,
        questions: Questions,
        *,
        labels: bytes,
        row_parts: RowParts,
    ) -> None:
        """Ask all plugins about one of them; NotKeptError if what they say can't be kept.

        What those ask that say the same of all kin is taken down in `questions`, now and later.
        """
        self._state = state
        self._runtime = runtime
        # What the log of facts had said when this was last right.
        self.cursor = state.facts.position
        # Of the pod that it was made for: see `Evaluation.labels`.
        self.labels = labels
        self._questions = questions
        self._inputs = Inputs(state, self._questions)
        self.asked = Asked([], [], [])
        # How many pods come before the best row is chosen first again, and only then asked.
        self._patience = 0
        self.terms: dict[str, Term] = {}
        self.names = frozenset(step.name for step in profile.pre_filters)
        self._prepare(profile, pod)
        filters = self._sort_filters(profile)
        scores = self._sort_scores(profile, pod)
        self.rows: RowPart = row_parts.get(profile, filters, scores)
        # The rows that it lets pass, as of so many flips and a layout of nodes.
        self._feasible: Rows = state.nodes.present_rows()
        self._known = (_NO_FLIPS, self._feasible)
        # Of these rows, by the places of scores.
        self._wide_views: dict[int, tuple[RowsView, Reads]] = {}
        # How much memory it takes besides what it may share, as far as it is known yet.
        self.nbytes = size_of(self, apart_from=self.rows.terms) + size_of_questions(self._questions)

    # Building

    def _prepare(self, profile: Profile, pod: PodView) -> None:
        everywhere = self._state.nodes.present_rows()
        for index, step in enumerate(profile.pre_filters):
            reads, questions = Reads(), Questions()
            with pod.asking(questions):
                prepared = self._runtime.prepare(step, pod, everywhere, reads)
            if questions.differ_in_kin:
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
        present = self._state.nodes.present_rows()
        kept: list[tuple[int, Term]] = []
        for index, step in enumerate(profile.scores):
            reads, questions = Reads(), Questions()
            with pod.asking(questions):
                term = self._runtime.pre_score(step, pod, present, reads)
            says_nothing = not reads.looked_at_rows and isinstance(term, Same | Skip)
            if (
                questions.differ_in_kin
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

    def catch_up(self, profile: Profile, pod: PodView, watch: Watch | None) -> None:
        """Judge again what changed; NotKeptError if that can't be done."""
        facts = self._state.facts
        self.rows.catch_up(profile, watch)
        since = facts.since(self.cursor)
        if since is None:
            raise NotKeptError("log")
        self.cursor = facts.position
        seen = 0
        for fact in since[1]:
            seen |= fact
        inputs = self._inputs
        if not inputs.are_valid(seen, profile, pod, self._runtime) or inputs.other_terms:
            raise NotKeptError("inputs")
        if self._questions.differ_in_kin:
            # A plugin has begun to ask for what it did not ask for before.
            raise NotKeptError("questions")

    def give_up(self) -> None:
        """Let nobody go by this any more, nor by what others share with it."""
        self.rows.give_up()

    def feasible(self) -> Rows:
        """Return the rows that all that is kept lets pass, ascending."""
        flips, present = self._known
        now = self._state.nodes.present_rows()
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
            view = self._runtime.view(step, self._feasible, reads=reads, wide=True)
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
        return not self.rows.normalizes

    def chose_in_vain(self) -> None:
        """Take note that the best of all rows did not take a pod."""
        self._patience = _PATIENCE
