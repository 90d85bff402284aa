"""What filters asked by group say of rows, with the pods counted in that were promised them.

Spreading and affinity have another term for each row with such pods. Most of these pods are no
concern of the newcomer: that is found out once for all that are alike. The others are tried on one
row of each group: rows that look alike to the plugins, with pods that do. What came of it is good
as long as nothing that was read for it has changed.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from k8s_scheduler.core.engine.shapes.groups import NO_GROUP, Groups
from k8s_scheduler.core.engine.shapes.newcomer import Newcomer
from k8s_scheduler.core.engine.shapes.row_scores import Column
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.validity import ClusterReads, are_present
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.answers import Inquiry
from k8s_scheduler.core.framework.views.base import Mask
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.news.facts import NODE, SHIFTED
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

Promises = Mapping[NodeRow, Sequence[PlacedPod]]


class CountedIn:
    """The codes of all rows with promised pods that concern the newcomer."""

    def __init__(self, state: Tables, runtime: Runtime, questions: Questions) -> None:
        """Take down in `questions` what is asked of the newcomer."""
        self._state = state
        self._runtime = runtime
        self._newcomer = Newcomer(state, runtime, questions)
        # The evaluation's, from which all that is known was found out.
        self._terms: Mapping[str, Term] = {}
        # What is asked of promised pods. Those of one spec that answer alike are alike, and have
        # one number; 0 for those that are no concern of the newcomer.
        self._inquiry = Inquiry()
        self._numbers: dict[object, int] = {}
        # By row: its pods, and what they amount to. All that several pods may amount to.
        self._marks: dict[NodeRow, tuple[Sequence[PlacedPod], int]] = {}
        self._sums: dict[tuple[int, ...], int] = {(): 0}
        self._start_over()

    def _start_over(self) -> None:
        self._groups = Groups(self._state)
        self._rows: Column = np.zeros(0, dtype=np.int64)
        self._is_laid_out = False
        self._forget()

    def _forget(self) -> None:
        # By group; and from what that was found out.
        self._codes: dict[int, int] = {}
        self._reads = Reads()
        self._cluster_reads = ClusterReads(self._state)
        self._counters: list[PodCounter] = []
        self._versions: list[int] = []

    # Catching up

    def catch_up(
        self,
        profile: Profile,
        queued: QueuedPod,
        terms: Mapping[str, Term],
        promises: Promises,
        *,
        is_other: bool,
        noted: tuple[list[int], list[int], int],
    ) -> bool:
        """Forget what may come out otherwise; return whether anything is grouped otherwise now.

        `settle` and `like` try what is not known. `terms` are the evaluation's, of filters asked by
        group. `is_other` says that promises have changed, `noted` are the rows and facts noted
        since, and all these facts. NotKeptError if it can't be told.
        """
        if not self._are_terms(terms):
            self._terms = dict(terms)
            self._numbers.clear()
            self._marks.clear()
            self._start_over()
        if is_other or not self._is_laid_out or self._have_moved(promises, *noted):
            self._lay_out(profile, queued, promises)
            has_changed = True
        else:
            has_changed = self._follow_counts(promises)
        if len(self._rows) and not self._is_valid(noted[2]):
            self._forget()
        return has_changed

    def _are_terms(self, terms: Mapping[str, Term]) -> bool:
        known = self._terms
        return known.keys() == terms.keys() and all(
            known[name] is term for name, term in terms.items()
        )

    def _have_moved(self, promises: Promises, rows: list[int], facts: list[int], seen: int) -> bool:
        """Return whether a row in question has other labels, taints or what else tells it apart."""
        wanted = self._groups.facts | NODE
        if not seen & wanted:
            return False
        pairs = zip(rows, facts, strict=True)
        return any(fact & wanted and row in promises for row, fact in pairs)

    def _follow_counts(self, promises: Promises) -> bool:
        """Put rows into other groups whose counts have changed; return whether there are any."""
        rows = self._groups.stale_rows(have_moved=False)
        if rows is None:
            raise NotKeptError("counter_log")
        there = [row for row in dict.fromkeys(rows) if row in promises]
        if there:
            self._groups.place_by_counts(there, [True] * len(there))
        return bool(there)

    def _is_valid(self, seen: int) -> bool:
        """Return whether the same would come out again of all groups."""
        return (
            not seen & self._reads.wide_facts
            and [counter.version for counter in self._counters] == self._versions
            and are_present(self._reads.presences)
            and self._cluster_reads.are_same(seen)
        )

    # Which pods are alike

    def _lay_out(self, profile: Profile, queued: QueuedPod, promises: Promises) -> None:
        """Group all rows whose pods concern the newcomer."""
        by_row = self._amounts(profile, queued, promises)
        while by_row is None:
            by_row = self._amounts(profile, queued, promises)
        self._start_over()
        self._rows = np.flatnonzero(by_row)
        if len(self._rows):
            self._groups.mark(by_row)
            self._groups.lay_out(self._rows, by_row > 0)
        self._is_laid_out = True

    def _amounts(self, profile: Profile, queued: QueuedPod, promises: Promises) -> Column | None:
        """Return by row what its pods amount to; None if all that was known is to be asked anew."""
        if self._inquiry.renew():
            self._numbers.clear()
            self._marks.clear()
        marks = self._marks
        if len(marks) > 2 * len(promises):
            self._marks = marks = {row: marks[row] for row in promises if row in marks}
        by_row = np.zeros(self._state.nodes.row_count, dtype=np.int64)
        for row, pods in promises.items():
            known = marks.get(row)
            if known is None or known[0] is not pods:
                known = marks[row] = (pods, self._amount(profile, queued, row, pods))
                if self._asks_more:
                    return None
            by_row[row] = known[1]
        return by_row

    @property
    def _asks_more(self) -> bool:
        """Whether pods that were alike may not be any longer: something else was asked of them."""
        return self._inquiry.questions.count != self._inquiry.asked

    def _amount(
        self, profile: Profile, queued: QueuedPod, row: NodeRow, pods: Sequence[PlacedPod]
    ) -> int:
        """Return a number for what some pods on a row amount to; 0 if they are no concern."""
        numbers = [self._number_of(profile, queued, row, placed) for placed in pods]
        key = tuple(number for number in numbers if number)
        return self._sums.setdefault(key, len(self._sums))

    def _number_of(
        self, profile: Profile, queued: QueuedPod, row: NodeRow, placed: PlacedPod
    ) -> int:
        shape = self._runtime.promised.shape_of(placed)
        asked = self._inquiry.questions
        if asked.name or asked.terms:
            raise NotKeptError("promises")
        key = (shape.spec, self._inquiry.answers(self._state, placed.pod, shape.labels))
        found = self._numbers.get(key)
        if found is None:
            trial, reads = self._trial(profile, queued, row, (placed,))
            is_nothing = not trial.has_own_terms and not reads.news
            found = self._numbers[key] = 0 if is_nothing else len(self._numbers) + 1
        return found

    # Trying

    def _trial(
        self, profile: Profile, queued: QueuedPod, row: NodeRow, pods: Sequence[PlacedPod]
    ) -> tuple[Trial, Reads]:
        terms = self._newcomer.terms(profile, queued, self._terms)
        reads = Reads()
        delta = self._state.delta(row)
        questions = self._inquiry.questions
        trial = Trial(self._runtime, profile, dict(terms), delta, reads, questions=questions)
        trial.add(*pods)
        return trial, reads

    def like(
        self, profile: Profile, queued: QueuedPod, promises: Promises, row: NodeRow
    ) -> Column | None:
        """Return all rows that are rejected as this one is; None if it is not."""
        is_grouped = bool(len(self._rows)) and row in promises
        group = self._groups.of_row.item(row) if is_grouped else NO_GROUP
        if group == NO_GROUP:
            return None
        if group not in self._codes and self._try(profile, queued, promises, [(group, int(row))]):
            self.settle(profile, queued, promises)
            group = self._groups.of_row.item(row)
        if not self._codes[group]:
            return None
        found: Column = self._rows[self._groups.of_row.take(self._rows) == group]
        return found

    def settle(self, profile: Profile, queued: QueuedPod, promises: Promises) -> bool:
        """Try one row of each group of which nothing is known; return whether there was any."""
        has_tried = False
        while len(self._rows):
            asked = self._groups.asked()
            members = zip(asked.groups, asked.members.tolist(), strict=True)
            missing = [(group, row) for group, row in members if group not in self._codes]
            if not missing:
                break
            has_tried = True
            self._try(profile, queued, promises, missing)
        return has_tried

    def _try(
        self,
        profile: Profile,
        queued: QueuedPod,
        promises: Promises,
        groups: list[tuple[int, int]],
    ) -> bool:
        """Try a row of each of some groups; return whether all is grouped otherwise since then."""
        for group, row in groups:
            trial, reads = self._trial(profile, queued, NodeRow(row), promises[NodeRow(row)])
            self._codes[group] = trial.judge() if trial.has_own_terms else 0
            self._reads.include(reads)
        if (self._reads.facts | self._reads.wide_facts) & SHIFTED:
            # Then it would have to be asked about rows with any promise.
            raise NotKeptError("promises")
        if self._asks_more:
            self._lay_out(profile, queued, promises)
            return True
        if self._groups.add_keys(self._reads.narrow):
            self._groups.lay_out(self._rows, self._mask())
            self._forget()
            return True
        self._look_back()
        return False

    def _mask(self) -> Mask:
        mask: Mask = np.zeros(self._state.nodes.row_count, dtype=np.bool_)
        mask[self._rows] = True
        return mask

    def _look_back(self) -> None:
        """Take down from what the codes were found out."""
        reads = self._reads
        found = dict(reads.wide_counters)
        for read in reads.narrow:
            if not isinstance(read, str) and not self._groups.is_told_apart(read):
                found[read[0]] = None
        self._counters = list(found)
        self._versions = [counter.version for counter in self._counters]
        self._cluster_reads.see(reads)

    # Answers

    def write_to(self, codes: Column) -> None:
        """Write the codes of rows that are rejected into a column that lets them pass."""
        if not any(self._codes.values()):
            return
        by_group = np.zeros(len(self._groups), dtype=np.int64)
        for group, code in self._codes.items():
            by_group[group] = code
        rows = self._rows
        found = by_group.take(self._groups.of_row.take(rows))
        codes[rows] = np.where(codes.take(rows), codes.take(rows), found)
