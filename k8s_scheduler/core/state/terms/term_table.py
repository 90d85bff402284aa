"""Held terms as columns: which of them pick a newcomer, and what becomes of those that do.

Each term has a place as long as it is held, and a number that no other term ever has. Places are
used again, and become others when most of them are empty; a term is remembered by its number.
"""

from array import array
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.selector_index import Differences, SelectorIndex
from k8s_scheduler.core.state.terms.picked_terms import Group, Purpose
from k8s_scheduler.core.state.terms.pod_terms import PodTerm, TermKind
from k8s_scheduler.core.state.terms.term_groups import TermGroups
from k8s_scheduler.lib.hollow import compact

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_PURPOSES: Final[Mapping[TermKind, Purpose]] = {
    TermKind.REQUIRED_AFFINITY: Purpose.NEEDING,
    TermKind.REQUIRED_ANTI_AFFINITY: Purpose.REFUSING,
    TermKind.PREFERRED_AFFINITY: Purpose.ATTRACTING,
    TermKind.PREFERRED_ANTI_AFFINITY: Purpose.REPELLING,
}
_WEIGHTED: Final = (TermKind.PREFERRED_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY)
# In place of the group of a term that is not held.
_NO_GROUP: Final = -1
_FIRST_CAPACITY: Final = 64
# Places are given anew once so many of them, and most, are empty.
_EMPTY: Final = 1024


class TermTable:
    """The distinct terms that are held."""

    def __init__(self, has_key: Callable[[str], bool]) -> None:
        """Hold nothing; `has_key` says whether some node has a label with a key."""
        self.groups = TermGroups(has_key)
        # How many terms look at a label.
        self.label_keys: dict[str, int] = {}
        self._lay_out(_FIRST_CAPACITY)

    def _lay_out(self, capacity: int) -> None:
        self._places: dict[PodTerm, int] = {}
        self._terms: list[PodTerm | None] = []
        # Not a list, which would keep an object for each of them.
        self._free = array("q")
        # By place: the number of the term, 0 where there is none; its group; its weight.
        self.number_at: Numbers = np.zeros(capacity, dtype=np.int64)
        self.group_at: Numbers = np.full(capacity, _NO_GROUP, dtype=np.int64)
        self.weight_at: Numbers = np.zeros(capacity, dtype=np.int64)
        self._by_labels = SelectorIndex()
        self._by_namespace_labels = SelectorIndex()
        self._by_namespace: dict[str, Differences] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place_of(self, term: PodTerm) -> int | None:
        return self._places.get(term)

    def put(self, term: PodTerm, number: int) -> int:
        for requirement in term.labels or ():
            _count(self.label_keys, requirement.key, 1)
        group = self.groups.acquire((_PURPOSES[term.kind], term.topology_key))
        return self._put(term, number, group)

    def drop(self, term: PodTerm) -> None:
        place = self._places.pop(term)
        self._terms[place] = None
        self._free.append(place)
        self.groups.release(int(self.group_at[place]))
        self.number_at[place] = 0
        self.group_at[place] = _NO_GROUP
        for requirement in term.labels or ():
            _count(self.label_keys, requirement.key, -1)
        self.label_keys = compact(self.label_keys)
        self._by_labels.drop(place, term.labels)
        self._by_namespace_labels.drop(place, term.namespace_labels)
        for namespace in dict.fromkeys(term.namespaces):
            listed = self._by_namespace[namespace]
            listed.drop(place)
            if not listed:
                del self._by_namespace[namespace]
        self._by_namespace = compact(self._by_namespace)

    def tidy(self, moved: Callable[[Numbers], None]) -> None:
        """Give back empty places, if they are many; `moved` is given what places have become."""
        if len(self._free) <= max(_EMPTY, len(self._terms) // 2):
            return
        held = list(self._places.items())
        numbers, groups = self.number_at, self.group_at
        after = np.full(len(self._terms), _NO_GROUP, dtype=np.int64)
        self._lay_out(max(_FIRST_CAPACITY, len(held)))
        for term, place in held:
            after[place] = self._put(term, int(numbers[place]), int(groups[place]))
        moved(after)

    def picking(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> Mask:
        size = len(self._terms)
        picked: Mask = self._by_labels.unmet(labels, size) == 0
        is_theirs: Mask = self._by_namespace_labels.unmet(namespace_labels, size) == 0
        listed = self._by_namespace.get(namespace)
        if listed is not None:
            is_theirs[listed.places] = True
        picked &= is_theirs
        return picked

    def terms_at(self, picked: Mask) -> list[PodTerm]:
        return [term for term, here in zip(self._terms, picked, strict=True) if term and here]

    def groups_at(self, places: Numbers) -> list[Group]:
        """Return the groups of the terms in some places whose key was seen on a node."""
        return self.groups.seen_among(self.group_at.take(places))

    def weights(self, places: Numbers, numbers: Numbers, group: Group) -> Numbers:
        """Return the weight of each place's term; 0 unless it is of the group and the numbers.

        The numbers are ascending.
        """
        wanted = self.groups.id_of(group)
        if wanted is None or not len(numbers):
            return np.zeros(len(places), dtype=np.int64)
        own = self.number_at.take(places)
        among = numbers.take(np.searchsorted(numbers, own), mode="clip") == own
        is_counted = among & (self.group_at.take(places) == wanted)
        return np.where(is_counted, self.weight_at.take(places), 0)

    @property
    def places(self) -> Numbers:
        """All places there are, those of no term included."""
        return np.arange(len(self._terms))

    def _put(self, term: PodTerm, number: int, group: int) -> int:
        if self._free:
            place = self._free.pop()
            self._terms[place] = term
        else:
            place = len(self._terms)
            self._terms.append(term)
            self._reserve(place + 1)
        self._places[term] = place
        self.number_at[place] = number
        self.group_at[place] = group
        self.weight_at[place] = term.weight if term.kind in _WEIGHTED else 1
        self._by_labels.put(place, term.labels)
        self._by_namespace_labels.put(place, term.namespace_labels)
        for namespace in term.namespaces:
            self._by_namespace.setdefault(namespace, Differences()).add(place, 1)
        return place

    def _reserve(self, size: int) -> None:
        if size > len(self.number_at):
            more = max(size - len(self.number_at), len(self.number_at))
            nothing = np.zeros(more, dtype=np.int64)
            self.number_at = np.append(self.number_at, nothing)
            self.group_at = np.append(self.group_at, nothing + _NO_GROUP)
            self.weight_at = np.append(self.weight_at, nothing)


def _count(where: dict[str, int], key: str, difference: int) -> None:
    """Count more or less of a key; one that there is none of goes."""
    left = where.get(key, 0) + difference
    if left:
        where[key] = left
    else:
        del where[key]
