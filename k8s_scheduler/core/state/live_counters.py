"""The counters that are kept up to date, and which pods concern which of them.

A pod that comes or goes concerns the counters that pick its labels. They are looked up by the id of
its label set; that is worked out when such an id, or a counter, is born. A new label set asks only
counters that it may concern: they are found by namespace and by one label pair that they demand.
What came out is remembered by those labels that any counter looks at: sets that differ in others
alone, as those of a StatefulSet's pods do, concern the same counters.

The terms that a pod holds may concern the counters of all newcomers. These are not told: its coming
and going is noted (`held_log`), and they catch up when they are asked.

At most `LIMIT` counters are kept up to date, of at most `MAX_BYTES`; the one that was not asked for
longest is dropped, and comes back when it is asked again. So is one that has changed often and was
not asked: whoever asks for much once must not make every pod of others dearer for long. As long as
somebody has a counter, there is no second one for the same question.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.label_selectors import IN
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.counters import Counted, Counter, Counts, Holding, Matching
from k8s_scheduler.core.state.held_log import HeldLog
from k8s_scheduler.core.state.held_terms import NO_TERMS, HeldTerms
from k8s_scheduler.core.state.label_sets import LabelSets
from k8s_scheduler.core.state.labels import LabelColumns

Mask = npt.NDArray[np.bool_]
# By what a label set finds the counters that may pick it: a namespace and a label pair, None where
# a counter demands no particular one.
_Door: TypeAlias = tuple[str | None, tuple[str, str] | None]
# A namespace and the labels that counters look at.
_Seen: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Concerned(tuple[Counter, ...]):
    """Counters that some label sets concern, shared by these: known by its identity alone.

    There may be a thousand of them in one, so comparing or hashing what is in it takes too long.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


_NOBODY: Final = Concerned()


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
    # So many distinct looks of label sets are remembered.
    SEEN: Final = 1024
    # So many that were dropped may still be told of changes, which they ignore.
    UNSWEPT: Final = 64
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
        """Count the pods whose columns `placed` returns, on nodes with these labels."""
        self.labels = labels
        self.clock = 0
        self._label_sets = label_sets
        self._held_terms = held_terms
        self._placed = placed
        self._live: dict[Counted, Counter] = {}
        # Each that is kept up to date, by when it was asked when last looked at here: since then it
        # may have been asked again, never earlier. A pod with thousands of terms drops as many.
        self._by_age: list[tuple[int, int, Counter]] = []
        self._revived = 0
        self._revivals: dict[Counter, int] = {}
        self._known: WeakValueDictionary[Counted, Counter] = WeakValueDictionary()
        # By label set: the counters that pick it. Ids that concern no counter are not there, and
        # need not be counted; those that concern the same counters share one tuple of them.
        self.concerned: dict[int, Concerned] = {}
        self._seen: dict[_Seen, Concerned] = {}
        # By key of a label: the counters that look at it.
        # Inner dicts of counters stand for ordered sets.
        self._by_key: dict[str, dict[Counter, None]] = {}
        self._by_door: dict[_Door, dict[Counter, None]] = {}
        # Those that were dropped, and are still among the concerned.
        self._unswept: dict[Counter, None] = {}
        # By key of a node's label: the counters that count by it, or were asked to.
        self._followers: dict[str, dict[Counter, None]] = {}
        # How much memory counters take, each and together, as far as it was looked at.
        self._sizes: dict[Counter, int] = {}
        self.nbytes = 0
        self._max_bytes = self.MAX_BYTES
        self._held_log = HeldLog()
        self.held_position = 0
        labels.listen(self._move, self._meet_key, self._start_over)
        labels.on_new_key(held_terms.meet_key)
        label_sets.listen(self.meet_set, self.forget_set)
        held_terms.listen(self._held_log.born)

    def get(self, counted: Counted) -> Counter:
        """Return the counter for a question."""
        found = self._live.get(counted) or self._known.get(counted)
        if found is None:
            found = self._known[counted] = Counter(counted, self)
        return found

    def __len__(self) -> int:
        """Return how many counters are kept up to date."""
        return len(self._live)

    # Pods

    def count(
        self, row: int, label_set: int, holder: int, terminating: bool, difference: int
    ) -> None:
        """Count pods of these facts more or less."""
        for counter in self.concerned.get(label_set, ()):
            if not terminating or counter.counts_terminating:
                counter.change(row, difference)
        if holder != NO_TERMS:
            self._note_holder(holder, row, difference)

    def _note_holder(self, holder: int, row: int, difference: int) -> None:
        log = self._held_log
        log.note(holder, row, difference)
        self.held_position = log.position
        # Whoever was asked last has to catch up, too.
        self.clock += 1

    def recount(self, before: CountedFacts, after: CountedFacts) -> None:
        """Count a pod with other facts; whom that makes no difference to is left alone."""
        if before.row != after.row:
            self.count(*before, -1)
            self.count(*after, 1)
            return
        if before.holder != after.holder:
            for holder, difference in ((before.holder, -1), (after.holder, 1)):
                if holder != NO_TERMS:
                    self._note_holder(holder, after.row, difference)
        differences = dict.fromkeys(self._concerned(before), -1)
        for counter in self._concerned(after):
            differences[counter] = differences.get(counter, 0) + 1
        for counter, difference in differences.items():
            if difference:
                counter.change(after.row, difference)

    def _concerned(self, facts: CountedFacts) -> Iterator[Counter]:
        """Yield the counters that count a pod of these facts by its labels."""
        for counter in self.concerned.get(facts.label_set, ()):
            if counter.counts_terminating or not facts.terminating:
                yield counter

    def meet_set(self, label_set: int, namespace: str, labels: Mapping[str, str]) -> None:
        """Find out which counters a new label set concerns."""
        if not self._by_door:
            return
        by_key = self._by_key
        seen = namespace, tuple([pair for pair in labels.items() if pair[0] in by_key])
        found = self._seen.get(seen)
        if found is None:
            if len(self._seen) >= self.SEEN:
                self._seen.clear()
            found = self._seen[seen] = self._picking(namespace, labels)
        if found:
            self.concerned[label_set] = found

    def _picking(self, namespace: str, labels: Mapping[str, str]) -> Concerned:
        """Return the counters that pick a label set."""
        return Concerned(
            counter
            for pair in (None, *labels.items())
            for space in (None, namespace)
            for counter in self._by_door.get((space, pair), ())
            if isinstance(counter.counted, Matching) and counter.counted.picks(namespace, labels)
        )

    def forget_set(self, label_set: int) -> None:
        """Take note that a label set has no pods any more."""
        self.concerned.pop(label_set, None)

    # Counters

    def revive(self, counter: Counter) -> None:
        """Count anew, and keep it up to date from now on."""
        self._make_room(self.LIMIT - 1)
        if counter in self._unswept:
            self._sweep()
        counted = counter.counted
        self._live[counted] = counter
        self._revived += 1
        self._revivals[counter] = self._revived
        heapq.heappush(self._by_age, (counter.asked, self._revived, counter))
        if isinstance(counted, Matching):
            picked = self._sets_picked(counted)
            self._concern(picked, counter)
            for door in _doors(counted):
                self._by_door.setdefault(door, {})[counter] = None
            for key in _keys(counted):
                self._by_key.setdefault(key, {})[counter] = None
            counter.fill(self._count_matching(picked, counted))
        else:
            self._count_holding(counter, counted)
        self._measure(counter)

    def limit(self, max_bytes: int) -> None:
        """Take no more memory than this from now on; those that have to go are counted anew."""
        self._max_bytes = min(max_bytes, self.MAX_BYTES)
        self._make_room(self.LIMIT)
        self._sweep()

    def _make_room(self, count: int) -> None:
        """Drop those that were not asked for longest, until so many are left and memory will do."""
        while self._live and (len(self._live) > count or self.nbytes > self._max_bytes):
            self.retire(self._oldest())

    def catch_up(self, counter: Counter) -> None:
        """Bring a counter up to date that sums up what holders' terms are to a newcomer."""
        log = self._held_log
        counted, cursor = counter.counted, counter.cursor
        if not isinstance(counted, Holding):
            return
        births = log.births_since(cursor)
        if not births and cursor == log.position - 1:
            # One pod since the last decision, as it mostly is.
            counter.cursor = log.position
            row, difference = log.newest(counter.times)
            if difference:
                counter.change(row, difference)
            return
        if not births and counter.is_unconcerned(log.holders_since(cursor)):
            # As it mostly is where shapes take turns.
            counter.cursor = log.position
            return
        changed: dict[int, int] | None = None
        if log.knows(cursor) and len(births) <= self.CATCHES_UP:
            changed = self._changed_since(counter, counted, births)
        if changed is None or len(changed) > self.CATCHES_UP:
            self._count_holding(counter, counted)
            return
        counter.cursor = log.position
        for row, difference in changed.items():
            if difference:
                counter.change(row, difference)

    def _changed_since(
        self, counter: Counter, counted: Holding, births: list[tuple[int, int]]
    ) -> dict[int, int]:
        """Return row -> difference since a counter last caught up; it knows new holders then."""
        changed: dict[int, int] = {}
        log, start = self._held_log, counter.cursor
        for end, born in (*births, (log.position, NO_TERMS)):
            if end > start:
                for row, difference in log.weighed(start, end, counter.times):
                    changed[row] = changed.get(row, 0) + difference
                start = end
            if born != NO_TERMS:
                self._learn(counter, counted, born)
        return changed

    def _learn(self, counter: Counter, counted: Holding, holder: int) -> None:
        """Let a counter know how much the pods of a new holder count."""
        if holder >= len(counter.times):
            more = np.zeros(holder + 1 - len(counter.times) + 64, dtype=np.int64)
            counter.times = np.append(counter.times, more)
        counter.times[holder] = self._held_terms.times_of(holder, counted.picked, counted.group)
        counter.forget_few()

    # Labels of nodes

    def follow(self, counter: Counter, key: str) -> None:
        """Tell a counter from now on of nodes that get another value of a label."""
        self._followers.setdefault(key, {})[counter] = None
        self._measure(counter)

    def unfollow(self, counter: Counter, keys: Iterable[str]) -> None:
        """Tell a counter no longer of these labels."""
        for key in keys:
            _take_out(self._followers, key, counter)

    def _measure(self, counter: Counter) -> None:
        """Take note of how much memory a counter takes."""
        size = counter.nbytes
        self.nbytes += size - self._sizes.get(counter, 0)
        self._sizes[counter] = size

    def _oldest(self) -> Counter:
        """Return the counter that was not asked for longest."""
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

    def retire(self, counter: Counter) -> None:
        """Keep a counter no longer up to date."""
        counted = counter.counted
        del self._live[counted]
        del self._revivals[counter]
        self.nbytes -= self._sizes.pop(counter)
        if isinstance(counted, Matching):
            for door in _doors(counted):
                _take_out(self._by_door, door, counter)
            for key in _keys(counted):
                _take_out(self._by_key, key, counter)
            self._unswept[counter] = None
        counter.drop()
        if len(self._unswept) > self.UNSWEPT:
            self._sweep()
        if len(self._by_age) > 2 * (len(self._live) + self.UNSWEPT):
            self._by_age = [(c.asked, number, c) for c, number in self._revivals.items()]
            heapq.heapify(self._by_age)

    def _sweep(self) -> None:
        """Let those that were dropped be concerned no more, all at once."""
        gone, concerned = self._unswept, self.concerned
        self._unswept = {}
        self._seen.clear()
        # Who shared counters before shares them from now on.
        swept: dict[Concerned, Concerned] = {}
        before, self.concerned = concerned, {}
        for label_set, known in before.items():
            left = swept.get(known)
            if left is None:
                left = swept[known] = Concerned([c for c in known if c not in gone])
            if left:
                self.concerned[label_set] = left

    def _concern(self, picked: Mask, counter: Counter) -> None:
        """Let some label sets concern one counter more."""
        self._seen.clear()
        concerned = self.concerned
        # Who shared counters before shares them from now on.
        shared: dict[Concerned, Concerned] = {}
        for label_set in np.flatnonzero(picked).tolist():
            known = concerned.get(label_set, _NOBODY)
            found = shared.get(known)
            if found is None:
                found = shared[known] = Concerned((*known, counter))
            concerned[label_set] = found

    def _sets_picked(self, counted: Matching) -> Mask:
        picked = self._label_sets.match(None, ())
        for namespaces, requirements in counted.selections:
            picked &= self._label_sets.match(namespaces, requirements)
        return picked

    def _count_matching(self, picked: Mask, counted: Matching) -> Counts:
        mask = picked[self._placed("label_set")]
        if not counted.with_terminating:
            mask &= ~self._placed("terminating")
        return np.bincount(self._placed("row")[mask], minlength=self.labels.capacity)

    def _count_holding(self, counter: Counter, counted: Holding) -> None:
        """Count the pods that hold certain terms, and know how much further ones will count."""
        times = self._held_terms.times(counted.picked, counted.group)
        found = times.take(self._placed("holder"))
        rows = np.flatnonzero(found)
        # In floating point, which is exact for as many pods as there can be.
        counts = np.bincount(self._placed("row")[rows], found[rows], self.labels.capacity)
        counter.fill(counts.astype(np.int64))
        counter.times, counter.cursor = times, self._held_log.position
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


def _doors(counted: Matching) -> list[_Door]:
    """Return the doors of a counter: one, or none where it can't pick anything."""
    space: str | None = None
    pair: tuple[str, str] | None = None
    for namespaces, requirements in counted.selections:
        if requirements is None or namespaces == ():
            return []
        if namespaces is not None and len(namespaces) == 1:
            space = space or namespaces[0]
        for requirement in requirements:
            if requirement.operator == IN and len(requirement.values) == 1:
                pair = pair or (requirement.key, requirement.values[0])
    return [(space, pair)]


def _keys(counted: Matching) -> dict[str, None]:
    """Return the keys of the labels that a counter looks at."""
    return {
        requirement.key: None
        for _, requirements in counted.selections
        for requirement in requirements or ()
    }


def _take_out(where: dict[_Key, dict[Counter, _Value]], key: _Key, counter: Counter) -> None:
    """Take a counter out of an index; a place without counters goes."""
    here = where.get(key)
    if here is not None and counter in here:
        del here[counter]
        if not here:
            del where[key]
