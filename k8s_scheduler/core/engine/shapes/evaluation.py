"""What a profile says of one shape of pods on every node, kept and caught up.

Two parts: what looks at each row on its own is kept row by row (`row_columns`), what looks beyond
is asked for one row of each group of rows that look alike (`group_columns`). The total of a row is
the sum of its own and of its group's.
"""

from dataclasses import replace

import numpy as np

from k8s_scheduler.core.engine.highest import first_highest
from k8s_scheduler.core.engine.shapes.group_columns import GroupColumns
from k8s_scheduler.core.engine.shapes.hidden import differences, withheld_from, withhold
from k8s_scheduler.core.engine.shapes.kept_judgement import NO_PROMISES, KeptJudgement
from k8s_scheduler.core.engine.shapes.row_column_pool import RowColumnPool
from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.engine.shapes.row_scores import Column
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.withheld import Withheld
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.evaluation.runtime import (
    Filtered,
    Nominated,
    PreFiltered,
    Scored,
)
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.base import Mask
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.rows import NodeRow


class KeptEvaluation(KeptJudgement):
    """One shape, on all nodes."""

    def __init__(
        self, pool: RowColumnPool, profile: Profile, queued: QueuedPod, questions: Questions
    ) -> None:
        """Judge all nodes; NotKeptError if that can't be kept.

        What is said row by row is taken from the pool, where it may have been said to others.
        """
        super().__init__(pool, queued, questions)
        pod = queued.view
        with pod.asking(questions):
            self.terms = self._prepare(profile, pod)
        self._asked = frozenset(step.name for step in profile.pre_filters)
        row_filters, group_filters = _sorted(profile, self.terms)
        self._group_filters = [profile.filters[index].name for index in group_filters]
        with pod.asking(questions):
            row_scores, group_scores = self._sort_scores(profile, pod)
        self.rows = pool.get(profile, row_filters, row_scores)
        # As of when it was last looked at.
        self._rows_version = self.rows.version
        self._flips_seen = self.rows.flips.position
        # What filters say where no node is left; nothing was judged since.
        self._filtered: Filtered | None = None
        # What is said of rows with the pods promised there; and which rows that keeps from the pod
        # that was last asked for, None if there are none.
        self._withheld: Withheld | None = None
        self._hidden: Mask | None = None
        # The pod for which groups were not asked yet which rows they keep from it.
        self._pending: tuple[Profile, QueuedPod] | None = None
        self._groups: GroupColumns | None = None
        if group_filters or group_scores:
            self._groups = GroupColumns(
                self.tables, self.runtime, questions, group_filters, group_scores
            )
            self._groups.start(profile, pod, self.terms, self.rows.base)

    # Building

    def _prepare(self, profile: Profile, pod: PodView) -> dict[str, Term]:
        everywhere = self.tables.nodes.present_rows()
        terms: dict[str, Term] = {}
        for index, step in enumerate(profile.pre_filters):
            reads = Reads()
            prepared = self.runtime.prepare(step, pod, everywhere, reads)
            if isinstance(prepared, Reject | Narrow | Verdict):
                raise NotKeptError("pre_filter")
            self._inputs.add(index, prepared, reads)
            if prepared is not SKIP:
                terms[step.name] = prepared
        return terms

    def _sort_scores(
        self, profile: Profile, pod: PodView
    ) -> tuple[list[tuple[int, Term]], list[int]]:
        """Return the scores of rows, with what was said at PreScore, and those of groups."""
        present = self.tables.nodes.present_rows()
        by_row: list[tuple[int, Term]] = []
        by_group: list[int] = []
        for index, step in enumerate(profile.scores):
            if step.by_group:
                by_group.append(index)
                continue
            reads = Reads()
            term = self.runtime.pre_score(step, pod, present, reads)
            if reads.looked_at_rows:
                raise NotKeptError("pre_score")
            self._inputs.add(len(profile.pre_filters) + index, term, reads)
            by_row.append((index, term))
        return by_row, by_group

    # Catching up

    def catch_up(
        self,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None = None,
        nominated: Nominated = NO_PROMISES,
    ) -> None:
        """Judge again what changed; NotKeptError if that would be nearly everything.

        Afterwards it can't decide if it can't be told which rows the pods `nominated` there keep
        from the pod.
        """
        own, pod, inputs = self.rows, queued.view, self._inputs
        _, rows, facts, seen = self._catch_up_rows(profile, pod, watch)
        others = inputs.other_terms
        if others:
            inputs.other_terms = {}
            self.terms = {**self.terms, **others}
        has_judged = own.version != self._rows_version
        if has_judged:
            self._rows_version = own.version
            self._filtered = None
        hidden, self.can_decide = self._withhold(profile, queued, nominated)
        groups = self._groups
        if groups is None or groups.is_idle:
            self._hidden = hidden
            if groups is not None and inputs.moved and not groups.are_inputs_same(inputs):
                self._filtered = None
                self._flips_seen = own.flips.position
                groups.start(profile, pod, self.terms, self._shown)
            return
        self._regroup(rows, facts, seen, groups, hidden)
        if not groups.is_valid(seen, inputs) or others:
            self._filtered = None
            groups.judge(profile, pod, self.terms, self._shown, watch)
        if self._pending is not None and not self._may_be_lazy:
            try:
                self._settle()
            except NotKeptError:
                self.can_decide = False

    @property
    def _may_be_lazy(self) -> bool:
        """Whether totals do not depend on which rows are feasible, but for what filters say."""
        groups = self._groups
        return not self.rows.scores.normalizes and groups is not None and groups.never_scores

    def _settle(self) -> None:
        """Find out which rows promised pods keep from the pod, as filters asked by group say."""
        pending, groups, withheld = self._pending, self._active_groups, self._withheld
        if pending is None or groups is None or withheld is None:
            return
        self._pending = None
        profile, queued = pending
        withheld.settle(profile, queued)
        if withheld.mask is self._hidden:
            return
        self._filtered = None
        came, went = differences([], self.rows.base, self._hidden, withheld.mask)
        self._hidden = withheld.mask
        groups.count(went, feasible=False)
        groups.count(came, feasible=True)
        groups.judge(profile, queued.view, self.terms, self._shown)

    def _withhold(
        self, profile: Profile, queued: QueuedPod, nominated: Nominated
    ) -> tuple[Mask | None, bool]:
        """Return the rows that nominated pods keep from the pod, and whether that can be told."""
        self._pending = None
        if not nominated:
            if self._hidden is not None:
                self._filtered = None
            if self._withheld is not None and not len(self.tables.nominations):
                self._withheld = None
            return None, True
        withheld = self._withheld
        if withheld is None:
            names = self._group_filters
            row_terms = {name: term for name, term in self.terms.items() if name not in names}
            withheld = self._withheld = Withheld(
                self.tables, self.runtime, self._questions, row_terms, groups=bool(names)
            )
            # There is more of it now than was measured.
            self._rows_counted = 0
        groups = self._active_groups
        if self._group_filters and groups is not None and groups.sees_room:
            # Then it would have to be asked about every row with a promise.
            return self._hidden, False
        group_terms = {name: self.terms[name] for name in self._group_filters}
        lazily = self._may_be_lazy
        try:
            has_changed = withheld.catch_up(profile, queued, group_terms, nominated, lazily=lazily)
        except NotKeptError:
            return self._hidden, False
        if lazily:
            self._pending = (profile, queued)
        if not has_changed and self._hidden is withheld.mask:
            return self._hidden, True
        self._filtered = None
        return withheld.mask, True

    @property
    def _active_groups(self) -> GroupColumns | None:
        """The group columns, if they have anything to say."""
        return None if self._groups is None or self._groups.is_idle else self._groups

    def _regroup(
        self,
        rows: list[int],
        facts: list[int],
        seen: int,
        groups: GroupColumns,
        hidden: Mask | None,
    ) -> None:
        """Put rows that changed into the groups they belong to now."""
        own = self.rows
        groups.grow()
        moved = groups.stale_rows(rows, facts, seen)
        if moved is None:
            raise NotKeptError("counter_log")
        came: list[int] = []
        flips = own.flips
        if flips.position != self._flips_seen or hidden is not self._hidden:
            since = flips.since(self._flips_seen)
            if since is None:
                raise NotKeptError("flips")
            self._flips_seen = flips.position
            came, went = differences(since[0], own.base, self._hidden, hidden)
            self._hidden = hidden
            groups.count(went, feasible=False)
        if moved:
            self._filtered = None
            shown = self._shown
            new = frozenset(came)
            counted = [shown.item(row) != NEVER and row not in new for row in moved]
            groups.place(moved, counted)
        if came:
            groups.count(came, feasible=True)

    @property
    def _shown(self) -> Column:
        """What rows have themselves, NEVER also where they are kept from the pod."""
        base, hidden = self.rows.base, self._hidden
        return base if hidden is None else withheld_from(base, hidden)

    # Answers

    @property
    def state(self) -> CycleState:
        """What the filters prepared: the state of an attempt that begins."""
        return CycleState(self.terms, self._asked)

    def totals(self, profile: Profile) -> Column:
        """Return the total of each row; negative where the pod can't go. Do not write to it."""
        self._settle()
        return self._totals(profile)

    def _totals(self, profile: Profile) -> Column:
        base = self.rows.base
        groups = self._groups
        totals = base if groups is None or groups.is_idle else groups.add_to(base)
        if self._hidden is not None:
            totals = totals.copy() if totals is base else totals
            withhold(totals, self._hidden)
        if self.rows.scores.normalizes:
            totals = totals.copy() if totals is base else totals
            feasible = np.flatnonzero(totals >= 0)
            for _, part in self.rows.scores.normalized(profile, feasible):
                totals[feasible] += part
        return totals

    def best(self, profile: Profile, *, start: int) -> NodeRow | None:
        """Return the first row of the highest total at or after `start`, wrapping around."""
        totals = self._totals(profile)
        pending, withheld = self._pending, self._withheld
        while True:
            row = first_highest(totals, start=start)
            if totals[row] < 0:
                return None
            if pending is None or withheld is None:
                return NodeRow(row)
            others = withheld.like(*pending, NodeRow(row))
            if others is None:
                return NodeRow(row)
            totals = totals.copy() if totals is self.rows.base else totals
            totals[others] = NEVER

    def filtered(self) -> Filtered:
        """Return the verdict on every node, as the filters would give it."""
        self._settle()
        known = self._filtered
        if known is None:
            known = self._filtered = self._filter()
        return replace(known, before=PreFiltered(self.state))

    def _filter(self) -> Filtered:
        present = self.tables.nodes.present_rows()
        codes = self.rows.codes.take(present).astype(np.int64)
        passed = codes == 0
        groups = self._active_groups
        if groups is not None and passed.any():
            codes[passed] = groups.codes_of(present[passed])
            passed = codes == 0
        if self._hidden is not None and self._withheld is not None:
            said = self._withheld.codes.take(present)
            codes = np.where(said, said, codes)
            passed = codes == 0
        return Filtered(codes, present[passed], PreFiltered(self.state))

    def scored(self, profile: Profile, feasible: Column) -> Scored:
        """Return every plugin's part of the totals of the feasible rows, weighted."""
        self._settle()
        parts = dict(self.rows.scores.parts(profile, feasible))
        groups = self._active_groups
        if groups is not None:
            parts.update(groups.parts_of(feasible))
        return Scored.of(profile, parts, len(feasible))


def _sorted(profile: Profile, terms: dict[str, Term]) -> tuple[list[tuple[int, Term]], list[int]]:
    """Return the filters that look at each row, with their terms, and those asked for groups."""
    by_row: list[tuple[int, Term]] = []
    by_group: list[int] = []
    for index, step in enumerate(profile.filters):
        if step.name not in terms:
            continue
        if step.by_group:
            by_group.append(index)
        elif by_group:
            # The first filter that rejects a row has the word: rows come before groups.
            raise NotKeptError("order_of_filters")
        else:
            by_row.append((index, terms[step.name]))
    return by_row, by_group
