"""What a profile says of one shape of pods on every node, kept and caught up.

Two parts: what looks at each row on its own is kept row by row (`row_part`), what looks beyond is
asked for one row of each group of rows that look alike (`group_part`). The total of a row is the
sum of its own and of its group's.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from k8s_scheduler.core.engine.shapes.errors import NotKeptError
from k8s_scheduler.core.engine.shapes.group_part import GroupPart
from k8s_scheduler.core.engine.shapes.row_part import NEVER, Column, RowPart
from k8s_scheduler.core.engine.shapes.validity import Inputs
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Term
from k8s_scheduler.core.framework.pod_view import PodView, Questions
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reads import Reads
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.runtime import Filtered, PreFiltered, Runtime, Scored
from k8s_scheduler.core.framework.watch import Watch
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.facts import LIVELY, OBJECTS

# So much of the table changed that judging all of it again is cheaper, and at least so many rows.
_REBUILD_SHARE: Final = 4
_REBUILD_ROWS: Final = 64
_CALM: Final = ~(LIVELY | OBJECTS)


class Evaluation:
    """One shape, on all nodes, as of `cursor`."""

    def __init__(
        self,
        state: Cache,
        runtime: Runtime,
        profile: Profile,
        pod: PodView,
        questions: Questions,
    ) -> None:
        """Judge all nodes; NotKeptError if that can't be kept.

        What plugins ask of the pod, now or later, is taken down in `questions`.
        """
        self._state = state
        self._runtime = runtime
        # What the log of facts had said when this was last right.
        self.cursor = state.facts.position
        self._inputs = Inputs(state, questions)
        with pod.asking(questions):
            self._terms = self._prepare(profile, pod)
        self._asked = frozenset(step.name for step in profile.pre_filters)
        row_filters, group_filters = _sorted(profile, self._terms)
        self._rows = RowPart(state, runtime, self._terms, row_filters)
        with pod.asking(questions):
            group_scores = self._sort_scores(profile, pod)
        self._rows.judge_all(profile)
        self._learn()
        # What filters say where no node is left; nothing was judged since.
        self._filtered: Filtered | None = None
        self._groups: GroupPart | None = None
        if group_filters or group_scores:
            self._groups = GroupPart(state, runtime, questions, group_filters, group_scores)
            self._groups.start(profile, pod, self._terms, self._rows.base)

    # Building

    def _prepare(self, profile: Profile, pod: PodView) -> dict[str, Term]:
        everywhere = self._state.nodes.present_rows()
        terms: dict[str, Term] = {}
        for index, step in enumerate(profile.pre_filters):
            reads = Reads()
            prepared = self._runtime.prepare(step, pod, everywhere, reads)
            if isinstance(prepared, Reject | Narrow | Verdict):
                raise NotKeptError("pre_filter")
            self._inputs.add(index, prepared, reads)
            if prepared is not SKIP:
                terms[step.name] = prepared
        return terms

    def _sort_scores(self, profile: Profile, pod: PodView) -> list[int]:
        """Give the row part its scores; return the places of those that groups are asked for."""
        present = self._state.nodes.present_rows()
        by_group: list[int] = []
        for index, step in enumerate(profile.scores):
            if step.by_group:
                by_group.append(index)
                continue
            reads = Reads()
            term = self._runtime.pre_score(step, pod, present, reads)
            if reads.looked_at_rows:
                raise NotKeptError("pre_score")
            self._inputs.add(len(profile.pre_filters) + index, term, reads)
            self._rows.add_score(profile, index, term)
        return by_group

    def _learn(self) -> None:
        for reads in self._rows.learn():
            self._inputs.see(reads)

    # Catching up

    def catch_up(self, profile: Profile, pod: PodView, watch: Watch | None = None) -> None:
        """Judge again what changed; NotKeptError if that would be nearly everything."""
        since = self._state.facts.since(self.cursor)
        if since is None:
            raise NotKeptError("log")
        rows, facts = since
        self.cursor += len(rows)
        seen = 0
        for fact in facts:
            seen |= fact
        inputs = self._inputs
        if not inputs.are_valid(seen, profile, pod, self._runtime):
            raise NotKeptError("inputs")
        others, inputs.other_terms = inputs.other_terms, {}
        if others:
            self._terms = {**self._terms, **others}
        self._rows.watch = watch
        groups = self._active_groups
        if rows or groups is not None:
            self._catch_up_rows(profile, rows, facts, groups)
        if self._groups is None:
            return
        if groups is None:
            if inputs.moved and not self._groups.are_inputs_same(inputs):
                self._filtered = None
                self._groups.start(profile, pod, self._terms, self._rows.base)
            return
        if groups.is_valid(seen, inputs) and not others:
            return
        self._filtered = None
        groups.judge(profile, pod, self._terms, self._rows.base, watch)

    @property
    def _active_groups(self) -> GroupPart | None:
        """The group part, if it has anything to say."""
        return None if self._groups is None or self._groups.is_idle else self._groups

    def _catch_up_rows(
        self, profile: Profile, rows: list[int], facts: list[int], groups: GroupPart | None
    ) -> None:
        own = self._rows
        if self._state.nodes.row_count > len(own.codes):
            own.grow()
            if groups is not None:
                groups.grow()
        touched, renewed = self._sort_rows(rows, facts)
        if groups is None:
            if touched or renewed:
                self._filtered = None
                self._judge_rows(profile, touched, renewed)
            return
        moved = groups.stale_rows(rows, facts)
        if moved is None:
            raise NotKeptError("counter_log")
        if not (touched or renewed or moved):
            return
        self._filtered = None
        changed = np.array(list(touched | renewed), dtype=np.int64)
        before = own.are_feasible(changed)
        self._judge_rows(profile, touched, renewed)
        after = own.are_feasible(changed)
        flipped = before != after
        came: list[int] = []
        if np.count_nonzero(flipped):
            groups.count(changed[flipped & before], feasible=False)
            came = changed[flipped & after].tolist()
        if moved:
            base = own.base
            counted = [bool(base[row] != NEVER) and row not in came for row in moved]
            groups.place(moved, counted)
        if came:
            groups.count(np.array(came, dtype=np.int64), feasible=True)

    def _sort_rows(
        self, rows: list[int], facts: list[int]
    ) -> tuple[dict[int, None], dict[int, None]]:
        """Return the rows on which pods came or went, and those whose nodes changed themselves.

        Dicts stand for ordered sets.
        """
        wanted = self._rows.facts
        touched: dict[int, None] = {}
        renewed: dict[int, None] = {}
        for row, fact in zip(rows, facts, strict=True):
            if row >= 0 and fact & wanted:
                (renewed if fact & _CALM else touched)[row] = None
        limit = max(_REBUILD_ROWS, len(self._rows.codes) // _REBUILD_SHARE)
        if len(touched) + len(renewed) > limit:
            raise NotKeptError("many_rows")
        return touched, renewed

    def _judge_rows(
        self, profile: Profile, touched: dict[int, None], renewed: dict[int, None]
    ) -> None:
        if renewed:
            self._rows.judge_anew(profile, list(renewed))
            touched = {row: None for row in touched if row not in renewed}
        if touched:
            self._rows.judge_again(profile, list(touched))
        self._learn()

    # Answers

    @property
    def state(self) -> CycleState:
        """What the filters prepared: the state of an attempt that begins."""
        return CycleState(self._terms, self._asked)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self._rows.nbytes + (0 if self._groups is None else self._groups.nbytes)

    def totals(self, profile: Profile) -> Column:
        """Return the total of each row; negative where the pod can't go. Do not write to it."""
        base = self._rows.base
        groups = self._active_groups
        totals = base if groups is None else groups.add_to(base)
        if self._rows.normalizes:
            totals = totals.copy() if totals is base else totals
            feasible = np.flatnonzero(totals >= 0)
            for _, part in self._rows.normalized(profile, feasible):
                totals[feasible] += part
        return totals

    def best(self, profile: Profile, *, start: int) -> NodeRow | None:
        """Return the first row of the highest total at or after `start`, wrapping around."""
        totals = self.totals(profile)
        row = first_highest(totals, start=start)
        return NodeRow(row) if totals[row] >= 0 else None

    def filtered(self) -> Filtered:
        """Return the verdict on every node, as the filters would give it."""
        known = self._filtered
        if known is None:
            known = self._filtered = self._filter()
        return replace(known, before=PreFiltered(self.state))

    def _filter(self) -> Filtered:
        present = self._state.nodes.present_rows()
        codes = self._rows.codes.take(present)
        passed = codes == 0
        groups = self._active_groups
        if groups is not None and passed.any():
            codes[passed] = groups.codes_of(present[passed])
            passed = codes == 0
        return Filtered(codes, present[passed], PreFiltered(self.state))

    def scored(self, profile: Profile, feasible: Column) -> Scored:
        """Return every plugin's part of the totals of the feasible rows, weighted."""
        parts = dict(self._rows.parts(profile, feasible))
        groups = self._active_groups
        if groups is not None:
            parts.update(groups.parts_of(feasible))
        by_plugin = {profile.scores[index].name: parts[index] for index in sorted(parts)}
        totals = np.zeros(len(feasible), dtype=np.int64)
        for part in by_plugin.values():
            totals += part
        return Scored(totals, by_plugin)


def first_highest(totals: Column, *, start: int) -> int:
    """Return where the highest total is first found at or after `start`, wrapping around."""
    if not 0 < start < len(totals):
        return int(totals.argmax())
    after = start + int(totals[start:].argmax())
    before = int(totals[:start].argmax())
    return before if totals[before] > totals[after] else after


def _sorted(profile: Profile, terms: dict[str, Term]) -> tuple[list[int], list[int]]:
    """Return the places of the filters that look at each row, and of those asked for groups."""
    by_row: list[int] = []
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
            by_row.append(index)
    return by_row, by_group
