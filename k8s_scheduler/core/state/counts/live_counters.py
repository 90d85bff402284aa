"""The counters that are kept up to date, and which pods concern which of them.

A pod that comes or goes concerns the counters that pick its labels. They are looked up by the id of
its label set; that is worked out when such an id is first used, or a counter is made (`concerned`).

The terms that a pod holds may concern the counters of all newcomers. These are not told: that a pod
came or left is noted (`count_log`), and they catch up when they are asked. So do counters for pods
with many terms, and those that would be one too many to be told of the same pods: one
tenant's terms may pick the pods of all others, which must not cost more with each of these terms.

At most `LIMIT` counters are kept up to date, of at most `MAX_BYTES`; the one that was not asked for
longest is dropped, and comes back when it is asked again. So is one that has changed often and was
not asked: many questions asked once must not slow down the pods of others for long. As long as a
counter is in use, there is no second one for the same question.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.counts.concerned import ConcernIndex, take_out
from k8s_scheduler.core.state.counts.count_log import CountLog
from k8s_scheduler.core.state.counts.label_sets import LabelSets, Mask
from k8s_scheduler.core.state.counts.pod_counter import Counts, Crowd, PodCounter
from k8s_scheduler.core.state.counts.questions import Counted, SelectedPods, TermHolders, breadth
from k8s_scheduler.core.state.nodes.labels import LabelColumns
from k8s_scheduler.core.state.terms.held_terms import NO_TERMS, HeldTerms
from k8s_scheduler.lib.hollow import compact

# So many ticks without a question, and a counter that is not told of pods is dropped.
_QUIET_TICKS: Final = 16
# A counter that was not asked for two or three of these is dropped, some at a tick: the shape that
# asked it is forgotten by then.
_PERIOD_SECONDS: Final = 300.0
_PERIODS: Final = 2
_RETIRED_PER_TICK: Final = 64
# In place of an id where none is new.
_NO_BIRTH: Final = -1
# So many places of counters that were dropped may stand among the ages of the others.
_STALE_AGES: Final = 64


class CountedFacts(NamedTuple):
    """What is counted of a pod."""

    row: int
    label_set: int
    holder: int
    terminating: bool


class Counters:
    """All counters of one state."""

    LIMIT: Final = 1024
    MAX_BYTES: Final = 128 * 1024 * 1024
    # A counter that has to catch up with so many rows, or births of holders, is counted anew.
    CATCHES_UP: Final = 256

    def __init__(
        self,
        *,
        labels: LabelColumns,
        label_sets: LabelSets,
        held_terms: HeldTerms,
        placed: Callable[[str], AnyColumn],
    ) -> None:
        self.labels = labels
        # Grows with every question to a counter, and with whatever makes one catch up.
        self.clock = 0
        self._label_sets = label_sets
        self._held_terms = held_terms
        self._placed = placed
        self._live: dict[Counted, PodCounter] = {}
        # Each that is kept up to date, by when it was asked when last looked at here: since then it
        # may have been asked again, never earlier. A pod with thousands of terms drops as many.
        self._by_age: list[tuple[int, int, PodCounter]] = []
        self._revived = 0
        self._revivals: dict[PodCounter, int] = {}
        self._known: WeakValueDictionary[Counted, PodCounter] = WeakValueDictionary()
        self._index = ConcernIndex()
        # By label set: the counters that pick it. Ids that concern no counter are not there.
        self.concerned = self._index.concerned
        # By key of a node's label: the counters that count by it, or were asked to.
        self._followers: dict[str, dict[PodCounter, None]] = {}
        # How much memory counters take, each and together, as far as it was looked at.
        self._sizes: dict[PodCounter, int] = {}
        self.nbytes = 0
        self._max_bytes = self.MAX_BYTES
        self.held_log = CountLog()
        # Notes of label sets: by their id twice, and one more for pods on their way out. Made only
        # while a counter reads them.
        self.set_log = CountLog()
        self.readers = 0
        # The clock at the last ticks.
        self._clocks: deque[int] = deque(maxlen=_QUIET_TICKS)
        # The clock at the beginning of this period and those before, and when the next one begins.
        self._periods: deque[int] = deque(maxlen=_PERIODS + 1)
        self._next_period = 0.0
        labels.listen(self._move, self._meet_key, self._start_over)
        labels.on_new_key(held_terms.meet_key)
        label_sets.listen(self.meet_set, self.forget_set)
        held_terms.listen(self.held_log.born)

    def get(self, counted: Counted) -> PodCounter:
        found = self._live.get(counted) or self._known.get(counted)
        if found is None:
            found = self._known[counted] = PodCounter(counted, self)
        return found

    def __len__(self) -> int:
        return len(self._live)

    # Pods

    def count(
        self, row: int, label_set: int, holder: int, terminating: bool, difference: int
    ) -> None:
        for counter in self.concerned.get(label_set, ()):
            if not terminating or counter.counts_terminating:
                counter.change(row, difference)
        if self.readers:
            self.note_set(label_set, row, terminating, difference)
        if holder != NO_TERMS:
            self._note_holder(holder, row, difference)

    def note_set(self, label_set: int, row: int, terminating: bool, difference: int) -> None:
        """Note pods of a label set more or less, for counters that are not told."""
        self.set_log.note(2 * label_set + terminating, row, difference)
        # The counter that was asked last has to catch up, too.
        self.clock += 1

    def _note_holder(self, holder: int, row: int, difference: int) -> None:
        self.held_log.note(holder, row, difference)
        self.clock += 1

    def recount(self, before: CountedFacts, after: CountedFacts) -> None:
        """Count a pod with other facts; counters that it counts alike for are left alone."""
        if before.row != after.row:
            self.count(*before, -1)
            self.count(*after, 1)
            return
        if before.holder != after.holder:
            for holder, difference in ((before.holder, -1), (after.holder, 1)):
                if holder != NO_TERMS:
                    self._note_holder(holder, after.row, difference)
        if self.readers:
            self.note_set(before.label_set, before.row, before.terminating, -1)
            self.note_set(after.label_set, after.row, after.terminating, 1)
        differences = dict.fromkeys(self._concerned(before), -1)
        for counter in self._concerned(after):
            differences[counter] = differences.get(counter, 0) + 1
        for counter, difference in differences.items():
            if difference:
                counter.change(after.row, difference)

    def _concerned(self, facts: CountedFacts) -> Iterator[PodCounter]:
        for counter in self.concerned.get(facts.label_set, ()):
            if counter.counts_terminating or not facts.terminating:
                yield counter

    def meet_set(self, label_set: int, namespace: str, labels: Mapping[str, str]) -> None:
        if self.readers:
            self.set_log.born(2 * label_set)
            self.set_log.born(2 * label_set + 1)
        self._index.meet(label_set, namespace, labels)

    def forget_set(self, label_set: int) -> None:
        self.concerned.pop(label_set, None)

    # Counters

    def revive(self, counter: PodCounter) -> None:
        self._make_room(self.LIMIT - 1)
        self._index.sweep_if_dropped(counter)
        counted = counter.counted
        self._live[counted] = counter
        self._revived += 1
        self._revivals[counter] = self._revived
        heapq.heappush(self._by_age, (counter.asked, self._revived, counter))
        if isinstance(counted, SelectedPods) and self._is_told(counter, counted):
            counter.notes = None
        else:
            counter.notes = self.held_log if isinstance(counted, TermHolders) else self.set_log
            self.readers += counter.notes is self.set_log
            self._count_anew(counter)
        self._measure(counter)

    def _is_told(self, counter: PodCounter, counted: SelectedPods) -> bool:
        """Count anew, and have a counter told of pods; return whether there is room for it."""
        picked = self._label_sets.picked_by(counted)
        if not self._index.add(counter, counted, np.flatnonzero(picked).tolist()):
            return False
        counter.fill(self._count_matching(picked, counted))
        return True

    def limit(self, max_bytes: int) -> None:
        """Take no more memory than this from now on; those that have to go are counted anew."""
        self._max_bytes = min(max_bytes, self.MAX_BYTES)
        self._make_room(self.LIMIT)
        self._index.sweep()

    def drop_all(self) -> None:
        """Let all be counted anew when they are asked next: rows of which they knew are gone."""
        for counter in list(self._live.values()):
            self.retire(counter)
        self._index.sweep()

    def tidy(self) -> None:
        """Drop readers of the log of label sets that were not asked for a while: at each tick."""
        self._clocks.append(self.clock)
        before = self._clocks[0]
        if self.readers and len(self._clocks) == self._clocks.maxlen:
            for counter in list(self._live.values()):
                if counter.notes is self.set_log and counter.asked < before:
                    self.retire(counter)

    def age(self, *, now: float) -> None:
        if now >= self._next_period:
            self._next_period = now + _PERIOD_SECONDS
            # The counter that was asked last says so anew when it is asked again.
            self.clock += 1
            self._periods.append(self.clock)
        before = self._periods[0] if len(self._periods) > _PERIODS else 0
        for _ in range(min(len(self._live), _RETIRED_PER_TICK)):
            oldest = self._oldest()
            if oldest.asked >= before:
                return
            self.retire(oldest)

    def _make_room(self, count: int) -> None:
        """Drop those that were not asked for longest, until so many are left and memory will do."""
        while self._live and (len(self._live) > count or self.nbytes > self._max_bytes):
            self.retire(self._oldest())

    def catch_up(self, counter: PodCounter) -> None:
        log, cursor = counter.notes, counter.cursor
        if log is None:
            return
        births = log.births_since(cursor)
        if not births and cursor == log.position - 1:
            # One pod since the last decision, as is usual.
            counter.cursor = log.position
            row, difference = log.newest(counter.times)
            if difference:
                counter.change(row, difference)
            return
        if not births and counter.is_unconcerned(log.ids_since(cursor)):
            # As is usual where shapes take turns.
            counter.cursor = log.position
            return
        changed: dict[int, int] | None = None
        if log.knows(cursor) and len(births) <= self.CATCHES_UP // breadth(counter.counted):
            changed = self._changed_since(counter, log, births)
        if changed is None or len(changed) > self.CATCHES_UP:
            self._count_anew(counter)
            return
        counter.cursor = log.position
        for row, difference in changed.items():
            if difference:
                counter.change(row, difference)

    def _changed_since(
        self, counter: PodCounter, log: CountLog, births: list[tuple[int, int]]
    ) -> dict[int, int]:
        """Return row -> difference since a counter last caught up; it knows new ids then."""
        changed: dict[int, int] = {}
        start = counter.cursor
        for end, born in (*births, (log.position, _NO_BIRTH)):
            if end > start:
                for row, difference in log.weighed(start, end, counter.times):
                    changed[row] = changed.get(row, 0) + difference
                start = end
            if born != _NO_BIRTH:
                self._learn(counter, born)
        return changed

    def _learn(self, counter: PodCounter, number: int) -> None:
        if number >= len(counter.times):
            more = np.zeros(number + 1 - len(counter.times) + 64, dtype=np.int64)
            counter.times = np.append(counter.times, more)
        counter.times[number] = self._times_of(number, counter)
        counter.forget_few()

    def _times_of(self, number: int, counter: PodCounter) -> int:
        counted = counter.counted
        if isinstance(counted, TermHolders):
            return self._held_terms.times_of(number, counted.picked, counted.group)
        label_set, terminating = divmod(number, 2)
        known = self._label_sets.at(label_set)
        if known is None or (terminating and not counter.counts_terminating):
            # Of a set that is gone again, as many have left as have come.
            return 0
        namespace, labels = known
        if isinstance(counted, SelectedPods):
            return int(counted.picks(namespace, labels))
        return counted.weight_of(namespace, labels)

    # Some pods

    def amounts(self, counter: PodCounter, crowd: Crowd) -> Counts:
        counted = counter.counted
        if counter.notes is not None:
            # A counter that reads the log knows that of all pods, once it has caught up.
            counter.catch_up()
            if isinstance(counted, TermHolders):
                return counter.times.take(crowd.holders)
            return counter.times.take(2 * crowd.label_sets + crowd.terminating)
        sets = crowd.label_sets.tolist()
        picked = {number: self._times_of(2 * number, counter) for number in dict.fromkeys(sets)}
        found: Counts = np.array([picked[number] for number in sets], dtype=np.int64)
        if not counter.counts_terminating:
            found[crowd.terminating] = 0
        return found

    # Labels of nodes

    def follow(self, counter: PodCounter, key: str) -> None:
        self._followers.setdefault(key, {})[counter] = None
        self._measure(counter)

    def unfollow(self, counter: PodCounter, keys: Iterable[str]) -> None:
        for key in keys:
            take_out(self._followers, key, counter)
        self._followers = compact(self._followers)

    def _measure(self, counter: PodCounter) -> None:
        size = counter.nbytes
        self.nbytes += size - self._sizes.get(counter, 0)
        self._sizes[counter] = size

    def _oldest(self) -> PodCounter:
        ages = self._by_age
        while True:
            asked, number, counter = ages[0]
            if not counter.is_live or self._revivals.get(counter) != number:
                # It was dropped meanwhile.
                heapq.heappop(ages)
            elif asked == counter.asked:
                return counter
            else:
                heapq.heapreplace(ages, (counter.asked, number, counter))

    def retire(self, counter: PodCounter) -> None:
        counted = counter.counted
        del self._live[counted]
        del self._revivals[counter]
        self.nbytes -= self._sizes.pop(counter)
        self.readers -= counter.notes is self.set_log
        if counter.notes is None and isinstance(counted, SelectedPods):
            self._index.drop(counter, counted)
        counter.drop()
        if len(self._by_age) > 2 * (len(self._live) + _STALE_AGES):
            self._by_age = [(c.asked, number, c) for c, number in self._revivals.items()]
            heapq.heapify(self._by_age)

    def _count_matching(self, picked: Mask, counted: SelectedPods) -> Counts:
        mask = picked[self._placed("label_set")]
        if not counted.with_terminating:
            mask &= ~self._placed("terminating")
        return np.bincount(self._placed("row")[mask], minlength=self.labels.capacity)

    def _count_anew(self, counter: PodCounter) -> None:
        """Count for a counter that is not told, and find out how much further pods will count."""
        counted = counter.counted
        if isinstance(counted, TermHolders):
            times = self._held_terms.times(counted.picked, counted.group)
            found = times.take(self._placed("holder"))
        else:
            times = np.repeat(self._label_sets.weights(counted), 2)
            if not counter.counts_terminating:
                times[1::2] = 0
            found = times.take(2 * self._placed("label_set") + self._placed("terminating"))
        rows = np.flatnonzero(found)
        # In floating point, which is exact for as many pods as there can be.
        counts = np.bincount(self._placed("row")[rows], found[rows], self.labels.capacity)
        counter.fill(counts.astype(np.int64))
        log = self.held_log if counter.notes is None else counter.notes
        counter.times, counter.cursor = times, log.position
        counter.forget_few()

    def _move(self, key: str, row: int, before: int, after: int) -> None:
        for counter in self._followers.get(key, ()):
            counter.move(key, row, before, after)

    def _meet_key(self, key: str) -> None:
        for counter in tuple(self._followers.get(key, ())):
            counter.meet_key(key)

    def _start_over(self) -> None:
        """Forget all sums by domain: ids of domains mean nothing any more."""
        for counter in self._live.values():
            counter.start_over()
            self._measure(counter)
