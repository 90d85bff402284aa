"""What plugins say that look beyond a row: asked for one row of each group, at every decision.

Hard and soft spreading, affinity to pods: what they say of a row depends on pods elsewhere, and
scores on which other nodes are feasible. So nothing of it is kept but the last answer, which is
good as long as no counter, no group and nothing else that was read has changed.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np

from k8s_scheduler.core.engine.shapes.groups import AskedGroups, Groups
from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.engine.shapes.row_scores import Column
from k8s_scheduler.core.engine.shapes.validity import Inputs
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import SKIP, Same, Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.framework.views.reads import NodeCount, Reads
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.news.facts import NODE, SHIFTED
from k8s_scheduler.core.state.protocols import Tables

_version: Final = attrgetter("version")
# Looking these up in the enumeration takes its time.
_ALL: Final = NodeCount.ALL
_EACH: Final = NodeCount.EACH


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a score said at PreScore, and of what."""

    term: Term
    reads: Reads
    groups: list[int]
    # For how many nodes the groups stood, each and together.
    each: list[int]
    total: int
    # Counters of which more was read than what groups are made of, and their versions.
    counters: list[PodCounter]
    versions: list[int]

    def is_valid(self, asked: AskedGroups) -> bool:
        """Return whether it would be said again, where what was read of the cluster is the same."""
        reads = self.reads
        if not reads.looked_at_rows:
            return True
        counts = reads.counts_nodes
        return (
            asked.groups == self.groups
            and (counts is not _ALL or asked.total == self.total)
            and (counts is not _EACH or asked.each == self.each)
            and (not self.counters or _versions(self.counters) == self.versions)
        )


class GroupColumns:
    """The codes and added scores of all groups."""

    def __init__(
        self,
        state: Tables,
        runtime: Runtime,
        questions: Questions,
        filters: list[int],
        scores: list[int],
    ) -> None:
        """Take the places of filters and scores in the profile; `start` begins."""
        self._questions = questions
        self._state = state
        self._runtime = runtime
        self._filters = filters
        self._scores = scores
        self._groups = Groups(state)
        # What filters and scores have read; and what was said at PreScore, with what was read then.
        self._reads = Reads()
        self._prepared: dict[int, _Prepared] = {}
        # What the last answer depends on that changes often.
        self._versions: list[int] = []
        self._stamp: object = None
        # What filters said that reject groups: these, and their codes.
        self._rejected: list[tuple[list[int], list[int]]] = []
        # By group: the sum of the weighted scores, NEVER where a filter rejects.
        self._addend: Column = np.zeros(0, dtype=np.int64)
        # The groups that scores were asked about; each score and its weight, by its place.
        self._asked: list[int] = []
        self._parts: dict[int, tuple[Column, int]] = {}
        # Whether there was a row to ask the scores about; and whether all were asked, and none had
        # anything to say or looked at any row.
        self._has_asked = False
        self._has_new_keys = False
        self._has_new_reads = True
        self._looks = False
        self.is_idle = False
        # Whether rows that have to be placed have changed in counts alone.
        self._only_counts = False
        # All that was read; the facts of all rows and the presences in it.
        self._every_reads: tuple[Reads, ...] = ()
        self._wide_facts = 0
        self._presences: list[tuple[PodCounter, str, bool]] = []
        self._counters: list[PodCounter] = []
        self._counts_nodes: NodeCount | None = None

    def start(self, profile: Profile, pod: PodView, terms: dict[str, Term], base: Column) -> None:
        """Group all rows and judge the groups."""
        self._prepared.clear()
        self._reads = Reads()
        self._has_new_reads = True
        self._groups.lay_out(self._state.nodes.present_rows(), base != NEVER)
        self.judge(profile, pod, terms, base)

    # Judging

    def judge(
        self,
        profile: Profile,
        pod: PodView,
        terms: dict[str, Term],
        base: Column,
        watch: Watch | None = None,
    ) -> None:
        """Ask one row of each group; again, as long as that brings up something new to go by."""
        while True:
            reads = self._reads
            before = (reads.news, reads.wide_facts, reads.counts_nodes)
            self._has_new_keys = False
            self._ask(profile, pod, terms, watch)
            if (reads.news, reads.wide_facts, reads.counts_nodes) != before:
                self._has_new_reads = True
                self._has_new_keys |= self._groups.add_keys(reads.narrow)
            if not self._has_new_keys:
                break
            self._prepared.clear()
            self._groups.lay_out(self._state.nodes.present_rows(), base != NEVER)
        if self._has_new_reads:
            self._look_back()
        said = self._filters or self._parts or self._looks
        self.is_idle = self._has_asked and not said
        self._versions = _versions(self._counters)
        self._stamp = self._stamp_now()

    def _ask(
        self, profile: Profile, pod: PodView, terms: dict[str, Term], watch: Watch | None
    ) -> None:
        groups = self._groups
        asked = groups.asked()
        self._rejected = []
        self._parts = {}
        for index in self._filters:
            alive = asked.groups
            if not alive:
                break
            step = profile.filters[index]
            if watch is not None:
                watch.asked(points.FILTER, step.name, len(alive))
            found = self._filter(index, step, terms[step.name], asked).tolist()
            if any(found):
                self._rejected.append((alive, found))
                asked = asked.left(found)
        self._asked = alive = asked.groups
        self._has_asked = bool(alive)
        total = self._ask_scores(profile, pod, asked, watch) if alive else None
        self._addend = asked.addend(total, len(groups))

    def _filter(self, index: int, step: FilterStep, term: Term, asked: AskedGroups) -> Column:
        """Return one plugin's codes of some groups."""
        if isinstance(term, Verdict):
            return self._runtime.filter(step, term, asked.members)
        views = asked.views(self._reads)
        view = views.get(index)
        if view is None:
            view = views[index] = self._runtime.view(step, asked.members, None, self._reads)
            view.settle()
        return self._runtime.filter_view(step, term, view)

    def _ask_scores(
        self, profile: Profile, pod: PodView, asked: AskedGroups, watch: Watch | None
    ) -> Column | None:
        """Return the sum of the weighted scores of some groups; None if there is no score."""
        asked.count(self._groups.counts, self._groups.count_changes)
        total: Column | None = None
        prepared = self._prepared
        for index in self._scores:
            known = prepared.get(index)
            if known is not None and known.is_valid(asked):
                term = known.term
            else:
                term = self._pre_score(index, profile.scores[index], pod, asked)
            if term is SKIP:
                continue
            step = profile.scores[index]
            if watch is not None:
                watch.asked(points.SCORE, step.name, len(asked.groups))
            scores = self._score(index, step, term, asked)
            weight = step.weight
            self._parts[index] = (scores, weight)
            part = scores if weight == 1 else scores * weight
            total = part if total is None else total + part
        return total

    def _score(self, index: int, step: ScoreStep, term: Term, asked: AskedGroups) -> Column:
        """Return one plugin's scores of some groups, whose rows have been counted."""
        if isinstance(term, Same):
            return np.full(len(asked.groups), term.score, dtype=np.int64)
        views = asked.views(self._reads)
        # Filters have the places from 0 on.
        view = views.get(~index)
        if view is None:
            view = self._runtime.group_view(step, asked.members, asked.nodes, self._reads)
            view.settle()
            views[~index] = view
        return self._runtime.score_view(step, term, view)

    def _pre_score(self, index: int, step: ScoreStep, pod: PodView, asked: AskedGroups) -> Term:
        """Return what a plugin says at PreScore, and keep it."""
        reads = Reads()
        nodes = asked.nodes.copy()
        with pod.asking(self._questions):
            term = self._runtime.group_pre_score(step, pod, asked.members, nodes, reads)
        # Groups that are not made by all of it are made anew, and all is asked again.
        self._has_new_keys |= self._groups.add_keys(reads.narrow)
        self._has_new_reads = True
        counters = self._not_told_apart(reads)
        versions = _versions(counters)
        self._prepared[index] = _Prepared(
            term, reads, asked.groups, asked.each, asked.total, counters, versions
        )
        return term

    def _not_told_apart(self, reads: Reads) -> list[PodCounter]:
        """Return the counters of which more was read than what groups are made of."""
        found = dict(reads.wide_counters)
        for read in reads.narrow:
            if not isinstance(read, str) and not self._groups.is_told_apart(read):
                found[read[0]] = None
        return list(found)

    # Catching up

    def _look_back(self) -> None:
        """Work out from what was read what has to be looked at the next time."""
        every = (self._reads, *(prepared.reads for prepared in self._prepared.values()))
        self._every_reads = every
        counters = (c for reads in every for c in self._not_told_apart(reads))
        self._counters = list(dict.fromkeys(counters))
        wanted = [reads.counts_nodes for reads in every if reads.counts_nodes is not None]
        self._counts_nodes = max(wanted, default=None)
        self._wide_facts = 0
        for reads in every:
            self._wide_facts |= reads.wide_facts
        presences = ((*read, seen) for reads in every for read, seen in reads.presences.items())
        self._presences = list(dict.fromkeys(presences))
        self._looks = any(map(_looks, every))
        self._has_new_reads = False

    def are_inputs_same(self, inputs: Inputs) -> bool:
        """Return whether the objects and numbers that were read are the same now."""
        return all(map(inputs.are_same, self._every_reads))

    def is_valid(self, seen: int, inputs: Inputs) -> bool:
        """Return whether the plugins would say the same of all groups again.

        What was said at PreScore is forgotten where it may not be right any more.
        """
        if inputs.moved or seen & self._wide_facts or (self._presences and not self._are_present()):
            return self._is_valid_yet(seen, inputs)
        return _versions(self._counters) == self._versions and self._stamp_now() == self._stamp

    def _are_present(self) -> bool:
        """Return whether the same counters count any pod as before."""
        return all((counter.total(key) > 0) is seen for counter, key, seen in self._presences)

    def _is_valid_yet(self, seen: int, inputs: Inputs) -> bool:
        """Look at everything."""
        count = len(self._prepared)
        for index, prepared in list(self._prepared.items()):
            reads = prepared.reads
            if seen & reads.wide_facts or not inputs.are_same(reads):
                del self._prepared[index]
        reads = self._reads
        if not inputs.are_same(reads):
            # What is not read any more shall not be compared for ever.
            self._reads = Reads()
            self._has_new_reads = True
            return False
        return (
            len(self._prepared) == count
            and not seen & reads.wide_facts
            and _versions(self._counters) == self._versions
            and self._stamp_now() == self._stamp
        )

    def _stamp_now(self) -> object:
        """Return something that is equal as long as the same groups stand for as many nodes.

        As far as any plugin asked.
        """
        wanted = self._counts_nodes
        if wanted is _EACH:
            return self._groups.counts.copy()
        alive = self._groups.asked().groups
        return (alive, sum(self._groups.counts)) if wanted is _ALL else alive

    def stale_rows(self, rows: list[int], facts: list[int], seen: int) -> list[int] | None:
        """Return the rows that may have come into another group; None if any may have.

        Given the facts that changed in rows, one by one and together.
        """
        wanted = self._groups.facts | NODE
        others: list[int] = []
        if seen & wanted:
            pairs = zip(rows, facts, strict=True)
            others = [row for row, fact in pairs if fact & wanted and row >= 0]
        found = self._groups.stale_rows(have_moved=bool(others))
        self._only_counts = not others
        if found is None:
            return None
        if others:
            found = found + others
        return list(dict.fromkeys(found)) if len(found) > 1 else found

    def place(self, rows: list[int], counted: list[bool]) -> None:
        """Put rows into the groups they belong to now; those that are counted stay counted."""
        if self._only_counts:
            self._groups.place_by_counts(rows, counted)
        else:
            self._groups.place(rows, counted)

    def count(self, rows: list[int], *, feasible: bool) -> None:
        """Take note of rows that have become feasible, or are not any longer."""
        self._groups.count(rows, feasible=feasible)

    def grow(self) -> None:
        if self._state.nodes.row_count > len(self._groups.of_row):
            self._groups.grow(self._state.nodes.row_count)

    # Answers

    @property
    def sees_room(self) -> bool:
        """Whether what pods take of a row itself was looked at, besides what counters count."""
        return bool((self._reads.facts | self._reads.wide_facts) & SHIFTED)

    @property
    def never_scores(self) -> bool:
        """Whether no score has anything to say, whichever rows are feasible."""
        if not self._has_asked or self._parts:
            return False
        return not any(known.reads.looked_at_rows for known in self._prepared.values())

    def add_to(self, base: Column) -> Column:
        """Return the totals: what rows have themselves, and what their groups add."""
        if len(self._addend) == 1:
            return base + int(self._addend[0])
        # A row without a node finds some group; it is never chosen all the same.
        return self._groups.add_to(base, self._addend)

    def codes_of(self, rows: Column) -> Column:
        """Return the codes of rows that no row filter rejects."""
        codes = np.zeros(len(self._groups), dtype=np.int64)
        for groups, found in self._rejected:
            codes[groups] = found
        return codes.take(self._groups.of_row.take(rows))

    def parts_of(self, rows: Column) -> list[tuple[int, Column]]:
        """Return each score of feasible rows, weighted, by its place among the scores."""
        groups = self._groups.of_row.take(rows)
        found = []
        for index, (scores, weight) in self._parts.items():
            by_group = np.zeros(len(self._groups), dtype=np.int64)
            by_group[self._asked] = scores * weight
            found.append((index, by_group.take(groups)))
        return found


def _looks(reads: Reads) -> bool:
    """Return whether rows, or pods on them, were looked at."""
    return bool(reads.counters or reads.presences or reads.wide_facts or reads.looked_at_rows)


def _versions(counters: list[PodCounter]) -> list[int]:
    return list(map(_version, counters))
