"""What plugins say that look beyond a row: asked for one row of each group, at every decision.

Hard and soft spreading, affinity to pods: what they say of a row depends on pods elsewhere, and
scores on which other nodes are feasible. So nothing of it is kept but the last answer, which is
good as long as no counter, no group and nothing else that was read has changed.
"""

from dataclasses import dataclass

import numpy as np

from k8s_scheduler.core.engine.shapes.groups import Groups
from k8s_scheduler.core.engine.shapes.row_part import NEVER, Column
from k8s_scheduler.core.engine.shapes.validity import Inputs, are_present
from k8s_scheduler.core.framework import watch as points
from k8s_scheduler.core.framework.plugin import SKIP, Same, Term
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.profile import Profile, ScoreStep
from k8s_scheduler.core.framework.reads import NodeCount, Reads
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.framework.watch import Watch
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.counters import Counter
from k8s_scheduler.core.state.facts import NODE


@dataclass(frozen=True, slots=True)
class _Asked:
    """Groups that are asked about, and a row of each."""

    groups: list[int]
    members: Column


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a score said at PreScore, and of what."""

    term: Term
    reads: Reads
    groups: list[int]
    nodes: Column
    versions: list[int]

    def is_valid(self, groups: list[int], nodes: Column) -> bool:
        """Return whether it would be said again; objects and numbers are looked at elsewhere."""
        counts = self.reads.counts_nodes
        return (
            (not self.reads.looked_at_rows or groups == self.groups)
            and (counts is not NodeCount.ALL or _total(nodes) == _total(self.nodes))
            and (counts is not NodeCount.EACH or np.array_equal(nodes, self.nodes))
            and [counter.version for counter in self.reads.counters] == self.versions
            and are_present(self.reads.presences)
        )


class GroupPart:
    """The codes and added scores of all groups."""

    def __init__(
        self, state: Cache, runtime: Runtime, filters: list[int], scores: list[int]
    ) -> None:
        """Take the places of filters and scores in the profile; `start` begins."""
        self._state = state
        self._runtime = runtime
        self._filters = filters
        self._scores = scores
        self._groups = Groups(state)
        # What filters and scores have read; and what was said at PreScore, with what was read then.
        self._reads = Reads()
        self._prepared: dict[int, _Prepared] = {}
        self._stamp: tuple[list[int], list[int]] = ([], [])
        # By group: the code of the filter that rejects it, and the sum of the weighted scores,
        # NEVER where one rejects; each score's part by its place.
        self._codes: list[int] = []
        self._addend: Column = np.zeros(0, dtype=np.int64)
        self._parts: dict[int, Column] = {}
        # Whether there was a row to ask the scores about; and whether all were asked, and none had
        # anything to say or looked at any row.
        self._has_asked = False
        self.is_idle = False
        self._every_reads: tuple[Reads, ...] = ()
        self._counters: list[Counter] = []

    def start(self, profile: Profile, pod: PodView, terms: dict[str, Term], base: Column) -> None:
        """Group all rows and judge the groups."""
        self._prepared.clear()
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
            self._reads = Reads()
            self._ask(profile, pod, terms, watch)
            narrow = dict(self._reads.narrow)
            for prepared in self._prepared.values():
                narrow.update(prepared.reads.narrow)
            if not self._groups.add_keys(narrow):
                break
            self._prepared.clear()
            self._groups.lay_out(self._state.nodes.present_rows(), base != NEVER)
        self._look_back()

    def _ask(
        self, profile: Profile, pod: PodView, terms: dict[str, Term], watch: Watch | None
    ) -> None:
        groups = self._groups
        alive = [number for number, count in enumerate(groups.counts) if count]
        members = np.array([groups.member(number) for number in alive], dtype=np.int64)
        self._codes = [0] * len(groups)
        self._parts = {}
        for index in self._filters:
            if not alive:
                break
            step = profile.filters[index]
            if watch is not None:
                watch.asked(points.FILTER, step.name, len(alive))
            codes = self._runtime.filter(step, terms[step.name], members, reads=self._reads)
            found = codes.tolist()
            if any(found):
                for number, code in zip(alive, found, strict=True):
                    self._codes[number] = code
                passed = [place for place, code in enumerate(found) if not code]
                alive = [alive[place] for place in passed]
                members = members.take(passed)
        self._has_asked = bool(alive)
        self._addend = np.full(len(groups), NEVER, dtype=np.int64)
        if alive:
            self._addend[alive] = self._ask_scores(profile, pod, _Asked(alive, members), watch)

    def _ask_scores(
        self, profile: Profile, pod: PodView, asked: "_Asked", watch: Watch | None
    ) -> Column:
        """Return the sum of the weighted scores of some groups."""
        counts = self._groups.counts
        nodes = np.array([counts[number] for number in asked.groups], dtype=np.int64)
        total = np.zeros(len(nodes), dtype=np.int64)
        for index in self._scores:
            step = profile.scores[index]
            view = self._runtime.group_view(step, asked.members, nodes, self._reads)
            term = self._pre_score(index, step, pod, asked, nodes)
            if term is SKIP:
                continue
            if watch is not None:
                watch.asked(points.SCORE, step.name, len(nodes))
            scores = (
                np.full(len(nodes), term.score, dtype=np.int64)
                if isinstance(term, Same)
                else self._runtime.score_view(step, term, view)
            )
            weighted = scores if step.weight == 1 else scores * step.weight
            part = self._parts[index] = np.zeros(len(counts), dtype=np.int64)
            part[asked.groups] = weighted
            total += weighted
        return total

    def _pre_score(
        self, index: int, step: ScoreStep, pod: PodView, asked: "_Asked", nodes: Column
    ) -> Term:
        """Return what a plugin says at PreScore; as the last time, if all it read is the same."""
        known = self._prepared.get(index)
        if known is not None and known.is_valid(asked.groups, nodes):
            return known.term
        reads = Reads()
        term = self._runtime.group_pre_score(step, pod, asked.members, nodes, reads)
        versions = [counter.version for counter in reads.counters]
        self._prepared[index] = _Prepared(term, reads, asked.groups, nodes, versions)
        return term

    # Catching up

    def _look_back(self) -> None:
        """Work out from what was read what has to be looked at the next time."""
        every = (self._reads, *(prepared.reads for prepared in self._prepared.values()))
        self._every_reads = every
        self._counters = list(dict.fromkeys(c for reads in every for c in reads.counters))
        said = self._filters or self._parts or any(map(_looks, every))
        self.is_idle = self._has_asked and not said
        self._stamp = self._stamp_now()

    def are_inputs_same(self, inputs: Inputs) -> bool:
        """Return whether the objects and numbers that were read are the same now."""
        return all(map(inputs.are_same, self._every_reads))

    def is_valid(self, seen: int, inputs: Inputs) -> bool:
        """Return whether the plugins would say the same of all groups again.

        What was said at PreScore is forgotten where it may not be right any more.
        """
        for index, prepared in list(self._prepared.items()):
            reads = prepared.reads
            if seen & reads.wide_facts or (
                (inputs.moved or reads.presences) and not inputs.are_same(reads)
            ):
                del self._prepared[index]
        reads = self._reads
        return (
            len(self._prepared) == len(self._scores)
            and not seen & reads.wide_facts
            and self._stamp_now() == self._stamp
            and (not (inputs.moved or reads.presences) or inputs.are_same(reads))
        )

    def _stamp_now(self) -> tuple[list[int], list[int]]:
        """Return the counters' versions and how many feasible rows each group has."""
        return [counter.version for counter in self._counters], self._groups.counts.copy()

    def stale_rows(self, rows: list[int], facts: list[int]) -> list[int] | None:
        """Return the rows that may have come into another group; None if any may have."""
        wanted = self._groups.facts | NODE
        others = [row for row, fact in zip(rows, facts, strict=True) if row >= 0 and fact & wanted]
        found = self._groups.stale_rows(have_moved=bool(others))
        return None if found is None else found + others

    def leave(self, rows: list[int], feasible: list[bool]) -> None:
        """Count rows out, before they change."""
        self._count(rows, feasible, -1)

    def enter(self, rows: list[int], feasible: list[bool]) -> None:
        """Count rows in, after they changed."""
        self._count(rows, feasible, 1)

    def _count(self, rows: list[int], feasible: list[bool], difference: int) -> None:
        counts = self._groups.counts
        groups = self._groups.of_row.take(rows).tolist()
        for group, counted in zip(groups, feasible, strict=True):
            if counted:
                counts[group] += difference

    def place(self, rows: list[int]) -> None:
        """Put rows into the groups they belong to now."""
        self._groups.place(rows)

    def grow(self) -> None:
        """Make room for rows that are new."""
        self._groups.grow(self._state.nodes.row_count)

    # Answers

    def add_to(self, base: Column) -> Column:
        """Return the totals: what rows have themselves, and what their groups add."""
        if len(self._addend) == 1:
            return base + int(self._addend[0])
        # A row without a node finds some group; it is never chosen all the same.
        return base + self._addend.take(self._groups.of_row, mode="wrap")

    def codes_of(self, rows: Column) -> Column:
        """Return the codes of rows that no row filter rejects."""
        codes = np.array(self._codes, dtype=np.int64)
        return codes.take(self._groups.of_row.take(rows))

    def parts_of(self, rows: Column) -> list[tuple[int, Column]]:
        """Return each score of feasible rows, weighted, by its place among the scores."""
        groups = self._groups.of_row.take(rows)
        return [(index, part.take(groups)) for index, part in self._parts.items()]

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        return self._groups.nbytes


def _looks(reads: Reads) -> bool:
    """Return whether rows, or pods on them, were looked at."""
    return bool(reads.counters or reads.presences or reads.looked_at_rows)


def _total(nodes: Column) -> int:
    return int(np.add.reduce(nodes))
