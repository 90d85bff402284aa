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
from k8s_scheduler.core.framework.pod_view import PodView, Questions
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
    # Counters of which more was read than what groups are made of, and their versions.
    counters: list[Counter]
    versions: list[int]

    def is_valid(self, groups: list[int], nodes: Column) -> bool:
        """Return whether it would be said again; objects and numbers are looked at elsewhere."""
        reads = self.reads
        if not reads.looked_at_rows:
            return are_present(reads.presences)
        counts = reads.counts_nodes
        return (
            groups == self.groups
            and (counts is not NodeCount.ALL or _total(nodes) == _total(self.nodes))
            and (counts is not NodeCount.EACH or np.array_equal(nodes, self.nodes))
            and _versions(self.counters) == self.versions
            and are_present(reads.presences)
        )


class GroupPart:
    """The codes and added scores of all groups."""

    def __init__(
        self,
        state: Cache,
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
        self._stamp: object = None
        # By group: the code of the filter that rejects it, and the sum of the weighted scores,
        # NEVER where one rejects; each score's part by its place.
        self._codes: list[int] = []
        self._addend: Column = np.zeros(0, dtype=np.int64)
        self._parts: dict[int, Column] = {}
        # The groups that scores were asked about.
        self._asked: list[int] = []
        # Whether there was a row to ask the scores about; and whether all were asked, and none had
        # anything to say or looked at any row.
        self._has_asked = False
        self._has_new_keys = False
        self._has_new_reads = True
        self._looks = False
        self.is_idle = False
        # Whether rows that have to be placed have changed in counts alone.
        self._only_counts = False
        self._every_reads: tuple[Reads, ...] = ()
        self._counters: list[Counter] = []
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
            news = self._reads.news
            self._has_new_keys = False
            self._ask(profile, pod, terms, watch)
            if self._reads.news != news:
                self._has_new_reads = True
                self._has_new_keys |= self._groups.add_keys(self._reads.narrow)
            if not self._has_new_keys:
                break
            self._prepared.clear()
            self._groups.lay_out(self._state.nodes.present_rows(), base != NEVER)
        if self._has_new_reads:
            self._look_back()
        said = self._filters or self._parts or self._looks
        self.is_idle = self._has_asked and not said
        self._stamp = self._stamp_now()

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
        scores = self._ask_scores(profile, pod, _Asked(alive, members), watch) if alive else ()
        addend = [NEVER] * len(groups)
        for number, score in zip(alive, np.asarray(scores).tolist(), strict=True):
            addend[number] = score
        self._addend = np.array(addend, dtype=np.int64)

    def _ask_scores(
        self, profile: Profile, pod: PodView, asked: "_Asked", watch: Watch | None
    ) -> Column:
        """Return the sum of the weighted scores of some groups."""
        counts = self._groups.counts
        nodes = np.array([counts[number] for number in asked.groups], dtype=np.int64)
        total: Column | None = None
        self._asked = asked.groups
        for index in self._scores:
            step = profile.scores[index]
            term = self._pre_score(index, step, pod, asked, nodes)
            if term is SKIP:
                continue
            view = self._runtime.group_view(step, asked.members, nodes, self._reads)
            if watch is not None:
                watch.asked(points.SCORE, step.name, len(nodes))
            scores = (
                np.full(len(nodes), term.score, dtype=np.int64)
                if isinstance(term, Same)
                else self._runtime.score_view(step, term, view)
            )
            part = self._parts[index] = scores if step.weight == 1 else scores * step.weight
            total = part if total is None else total + part
        return np.zeros(len(nodes), dtype=np.int64) if total is None else total

    def _pre_score(
        self, index: int, step: ScoreStep, pod: PodView, asked: "_Asked", nodes: Column
    ) -> Term:
        """Return what a plugin says at PreScore; as the last time, if all it read is the same."""
        known = self._prepared.get(index)
        if known is not None and known.is_valid(asked.groups, nodes):
            return known.term
        reads = Reads()
        with pod.asking(self._questions):
            term = self._runtime.group_pre_score(step, pod, asked.members, nodes, reads)
        # Groups that are not made by all of it are made anew, and all is asked again.
        self._has_new_keys |= self._groups.add_keys(reads.narrow)
        self._has_new_reads = True
        counters = self._not_told_apart(reads)
        versions = _versions(counters)
        self._prepared[index] = _Prepared(term, reads, asked.groups, nodes, counters, versions)
        return term

    def _not_told_apart(self, reads: Reads) -> list[Counter]:
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
        self._looks = any(map(_looks, every))
        self._has_new_reads = False

    def are_inputs_same(self, inputs: Inputs) -> bool:
        """Return whether the objects and numbers that were read are the same now."""
        return all(map(inputs.are_same, self._every_reads))

    def is_valid(self, seen: int, inputs: Inputs) -> bool:
        """Return whether the plugins would say the same of all groups again.

        What was said at PreScore is forgotten where it may not be right any more.
        """
        count = len(self._prepared)
        for index, prepared in list(self._prepared.items()):
            reads = prepared.reads
            same = inputs.are_same(reads) if inputs.moved else are_present(reads.presences)
            if seen & reads.wide_facts or not same:
                del self._prepared[index]
        reads = self._reads
        if not (inputs.are_same(reads) if inputs.moved else are_present(reads.presences)):
            # What is not read any more shall not be compared for ever.
            self._reads = Reads()
            self._has_new_reads = True
            return False
        return (
            len(self._prepared) == count
            and not seen & reads.wide_facts
            and self._stamp_now() == self._stamp
        )

    def _stamp_now(self) -> object:
        """Return something that is equal as long as the same would be said of the same groups."""
        counts = self._groups.counts
        nodes: object = [number for number, count in enumerate(counts) if count]
        if self._counts_nodes is NodeCount.EACH:
            nodes = counts.copy()
        elif self._counts_nodes is NodeCount.ALL:
            nodes = nodes, sum(counts)
        return _versions(self._counters), nodes

    def stale_rows(self, rows: list[int], facts: list[int]) -> list[int] | None:
        """Return the rows that may have come into another group; None if any may have."""
        wanted = self._groups.facts | NODE
        others = [row for row, fact in zip(rows, facts, strict=True) if row >= 0 and fact & wanted]
        found = self._groups.stale_rows(have_moved=bool(others))
        self._only_counts = not others
        return None if found is None else list(dict.fromkeys(found + others))

    def place(self, rows: list[int], counted: list[bool]) -> None:
        """Put rows into the groups they belong to now; those that are counted stay counted."""
        of_row, counts = self._groups.of_row, self._groups.counts
        before = of_row.take(rows).tolist()
        if self._only_counts:
            self._groups.place_by_counts(rows)
        else:
            self._groups.place(rows)
        for group, after, counts_here in zip(
            before, of_row.take(rows).tolist(), counted, strict=True
        ):
            if counts_here and after != group:
                counts[group] -= 1
                counts[after] += 1

    def count(self, rows: list[int], *, feasible: bool) -> None:
        """Take note of rows that have become feasible, or are not any longer."""
        of_row, counts = self._groups.of_row, self._groups.counts
        for row in rows:
            counts[of_row[row]] += 1 if feasible else -1

    def grow(self) -> None:
        """Make room for rows that are new."""
        if self._state.nodes.row_count > len(self._groups.of_row):
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
        found = []
        for index, part in self._parts.items():
            by_group = np.zeros(len(self._groups), dtype=np.int64)
            by_group[self._asked] = part
            found.append((index, by_group.take(groups)))
        return found

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        return self._groups.nbytes


def _looks(reads: Reads) -> bool:
    """Return whether rows, or pods on them, were looked at."""
    return bool(reads.counters or reads.presences or reads.wide_facts or reads.looked_at_rows)


def _versions(counters: list[Counter]) -> list[int]:
    return [counter.version for counter in counters]


def _total(nodes: Column) -> int:
    return int(np.add.reduce(nodes))
