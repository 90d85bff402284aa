"""The counters that are kept up to date, and which pods concern which of them.

A pod that comes or goes concerns the counters that pick its labels and those of the terms it holds.
Both are looked up by the id of its label set and of its holder; that is worked out when such an id,
or a counter, is born. A new label set asks only counters that it may concern: they are found by
namespace and by one label pair that they demand. What came out is remembered by those labels that
any counter looks at: sets that differ in others alone, as those of a StatefulSet's pods do, concern
the same counters.

At most `LIMIT` counters are kept up to date; the one that was not asked for longest is dropped, and
comes back when it is asked again. As long as somebody has a counter, there is no second one for the
same question.
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
from k8s_scheduler.core.state.held_terms import NO_TERMS, HeldTerms, PodTerm
from k8s_scheduler.core.state.label_sets import LabelSets
from k8s_scheduler.core.state.labels import LabelColumns

Mask = npt.NDArray[np.bool_]
# By what a label set finds the counters that may pick it: a namespace and a label pair, None where
# a counter demands no particular one.
_Door: TypeAlias = tuple[str | None, tuple[str, str] | None]
# A namespace and the labels that counters look at.
_Seen: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
_Concerned: TypeAlias = tuple[Counter, ...]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class CountedFacts(NamedTuple):
    """What is counted of a pod."""

    row: int
    label_set: int
    holder: int
    terminating: bool


class Counters:
    """All counters of one state."""

    LIMIT: Final = 1024
    # So many distinct looks of label sets are remembered.
    SEEN: Final = 1024

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
        self._known: WeakValueDictionary[Counted, Counter] = WeakValueDictionary()
        # By label set: the counters that pick it. Ids that concern no counter are not there, and
        # need not be counted; those that concern the same counters share one tuple of them.
        self.concerned: dict[int, _Concerned] = {}
        self._seen: dict[_Seen, _Concerned] = {}
        # By key of a label: the counters that look at it.
        # Inner dicts of counters stand for ordered sets.
        self._by_key: dict[str, dict[Counter, None]] = {}
        self._by_holder: dict[int, dict[Counter, int]] = {}
        self._by_door: dict[_Door, dict[Counter, None]] = {}
        labels.listen(self._move, self._meet_key)
        label_sets.listen(self.meet_set, self.forget_set)
        held_terms.listen(self.meet_holder, self.forget_holder)

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
            for counter, times in self._by_holder.get(holder, _NO_TIMES).items():
                counter.change(row, difference * times)

    def recount(self, before: CountedFacts, after: CountedFacts) -> None:
        """Count a pod with other facts; whom that makes no difference to is left alone."""
        if before.row != after.row:
            self.count(*before, -1)
            self.count(*after, 1)
            return
        differences = {counter: -times for counter, times in self._concerned(before)}
        for counter, times in self._concerned(after):
            differences[counter] = differences.get(counter, 0) + times
        for counter, difference in differences.items():
            if difference:
                counter.change(after.row, difference)

    def _concerned(self, facts: CountedFacts) -> Iterator[tuple[Counter, int]]:
        """Yield the counters that count a pod of these facts, and how often."""
        for counter in self.concerned.get(facts.label_set, ()):
            if counter.counts_terminating or not facts.terminating:
                yield counter, 1
        yield from self._by_holder.get(facts.holder, _NO_TIMES).items()

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

    def _picking(self, namespace: str, labels: Mapping[str, str]) -> _Concerned:
        """Return the counters that pick a label set."""
        return tuple(
            counter
            for pair in (None, *labels.items())
            for space in (None, namespace)
            for counter in self._by_door.get((space, pair), ())
            if isinstance(counter.counted, Matching) and counter.counted.picks(namespace, labels)
        )

    def forget_set(self, label_set: int) -> None:
        """Take note that a label set has no pods any more."""
        self.concerned.pop(label_set, None)

    def meet_holder(self, holder: int, terms: Iterable[PodTerm]) -> None:
        """Find out which counters a new holder concerns."""
        found: dict[Counter, int] = {}
        for term in terms:
            counter = self._live.get(Holding(term))
            if counter is not None:
                found[counter] = found.get(counter, 0) + 1
        if found:
            self._by_holder[holder] = found

    def forget_holder(self, holder: int) -> None:
        """Take note that a holder has no pods any more."""
        self._by_holder.pop(holder, None)

    # Counters

    def revive(self, counter: Counter) -> None:
        """Count anew, and keep it up to date from now on."""
        if len(self._live) >= self.LIMIT:
            self._drop(self._oldest())
        counted = counter.counted
        self._live[counted] = counter
        self._revived += 1
        heapq.heappush(self._by_age, (counter.asked, self._revived, counter))
        if isinstance(counted, Matching):
            picked = self._sets_picked(counted)
            self._concern(picked, lambda known: (*known, counter))
            for door in _doors(counted):
                self._by_door.setdefault(door, {})[counter] = None
            for key in _keys(counted):
                self._by_key.setdefault(key, {})[counter] = None
            counter.fill(self._count_matching(picked, counted))
        else:
            holders = self._held_terms.holders_of(counted.term)
            for holder, times in holders.items():
                self._by_holder.setdefault(holder, {})[counter] = times
            counter.fill(self._count_holding(holders))

    def _oldest(self) -> Counter:
        """Return the counter that was not asked for longest, and count on its being dropped."""
        ages = self._by_age
        while True:
            asked, number, counter = ages[0]
            if asked == counter.asked:
                heapq.heappop(ages)
                return counter
            heapq.heapreplace(ages, (counter.asked, number, counter))

    def _drop(self, counter: Counter) -> None:
        counted = counter.counted
        del self._live[counted]
        if isinstance(counted, Matching):
            self._concern(
                self._sets_picked(counted),
                lambda known: tuple(other for other in known if other is not counter),
            )
            for door in _doors(counted):
                _take_out(self._by_door, door, counter)
            for key in _keys(counted):
                _take_out(self._by_key, key, counter)
        else:
            for holder in self._held_terms.holders_of(counted.term):
                _take_out(self._by_holder, holder, counter)
        counter.drop()

    def _concern(self, picked: Mask, change: Callable[[_Concerned], _Concerned]) -> None:
        """Change which counters some label sets concern."""
        self._seen.clear()
        concerned = self.concerned
        # Who shared counters before shares them from now on.
        changed: dict[_Concerned, _Concerned] = {}
        for label_set in np.flatnonzero(picked).tolist():
            known = concerned.pop(label_set, ())
            found = changed.get(known)
            if found is None:
                found = changed[known] = change(known)
            if found:
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

    def _count_holding(self, holders: Mapping[int, int]) -> Counts:
        times = np.zeros(self._held_terms.id_count, dtype=np.int64)
        times[list(holders.keys())] = list(holders.values())
        found = times[self._placed("holder")]
        rows = np.flatnonzero(found)
        # In floating point, which is exact for as many pods as there can be.
        counts = np.bincount(self._placed("row")[rows], found[rows], self.labels.capacity)
        return counts.astype(np.int64)

    def _move(self, key: str, row: int, before: int, after: int) -> None:
        for counter in self._live.values():
            counter.move(key, row, before, after)

    def _meet_key(self, key: str) -> None:
        for counter in self._live.values():
            counter.meet_key(key)


_NO_TIMES: Final[Mapping[Counter, int]] = {}


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
