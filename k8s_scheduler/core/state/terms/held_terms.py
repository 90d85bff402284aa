"""Affinity terms that placed pods hold: what they say about pods that come later.

Mostly distinct terms are few, one per workload, and a newcomer is selected by few of them. But
nothing stops a tenant from placing thousands that select all pods, so the work for a newcomer must
not be work for each of them: all are matched at once (`term_table`), and those that pick it are one
thing with one number (`picked_terms`). Which pods hold which terms is one id per pod (its
`holder`).
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import msgspec
import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.state.terms.holder_pairs import HolderPairs
from k8s_scheduler.core.state.terms.picked_terms import NOT_PICKED, Group, PickedTerms, Purpose
from k8s_scheduler.core.state.terms.pod_terms import (
    PodTerm,
    TermKind,
    readable_terms_of,
    terms_of,
)
from k8s_scheduler.core.state.terms.term_table import TermTable
from k8s_scheduler.lib.seats import Seats

__all__ = ["NO_TERMS", "HeldTerms", "PodTerm", "TermKind", "readable_terms_of", "terms_of"]

NO_TERMS: Final = 0
Numbers = npt.NDArray[np.int64]

_encode = msgspec.msgpack.Encoder().encode
# So many ways to write the terms of one holder are remembered.
_SPELLINGS: Final = 8
# So many looks of newcomers are remembered.
_LOOKS: Final = 1024
_Look: TypeAlias = tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
# Told of a holder with its first pod.
Born: TypeAlias = Callable[[int], None]


class HeldTerms:
    """The distinct terms of placed pods, and which pods hold them.

    A holder is a tuple of terms that some pods have in common; id 0 holds none, and is not
    counted. Ids are used again once their last pod is gone.
    """

    def __init__(self, has_key: Callable[[str], bool] = lambda _: True) -> None:
        """Hold nothing; `has_key` says whether some node has a label with a key."""
        self._holder_ids: dict[tuple[PodTerm, ...], int] = {(): NO_TERMS}
        self._holders: list[tuple[PodTerm, ...]] = [()]
        self._uses: list[int] = [0]
        self._seats = Seats()
        # That of no terms.
        self._seats.take()
        # Another number with every change in which terms are held, and in which of their topology
        # keys nodes have.
        self.version = 0
        # How pods that are a holder write its terms.
        self._by_spelling: dict[bytes, int] = {}
        self._spellings: dict[int, list[bytes]] = {}
        self._table = TermTable(has_key)
        # How many holders each term has; and which holder has which.
        self._held: dict[PodTerm, int] = {}
        self._pairs = HolderPairs()
        self._born: Born | None = None
        # The terms that pick newcomers, as of a version: by what these look like, and by places.
        # And all that are in use, by their terms.
        self._looks: dict[_Look, PickedTerms] = {}
        self._by_places: dict[bytes, PickedTerms] = {}
        self._looks_version = 0
        self._picked: WeakValueDictionary[bytes, PickedTerms] = WeakValueDictionary()
        self._picked_count = 0

    def listen(self, born: Born) -> None:
        self._born = born

    def meet_key(self, key: str) -> None:
        """Take note that a node has a key that none had, and may be near to holders by it."""
        if self._table.groups.meet_key(key):
            self.version += 1

    # Holders

    def acquire_for(self, pod: Pod) -> int:
        """Return the holder of a pod's readable terms and count one more pod.

        Replicas spell their terms alike, so the terms of all but the first need not be read.
        """
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_affinity is affinity.pod_anti_affinity is None:
            return NO_TERMS
        parts = (pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity)
        spelling = _encode(parts)
        found = self._by_spelling.get(spelling)
        if found is not None:
            self._uses[found] += 1
            return found
        found = self.acquire(readable_terms_of(pod))
        if found == NO_TERMS:
            return found
        spellings = self._spellings.setdefault(found, [])
        if len(spellings) < _SPELLINGS:
            spellings.append(spelling)
            self._by_spelling[spelling] = found
        return found

    def acquire(self, terms: tuple[PodTerm, ...]) -> int:
        if not terms:
            return NO_TERMS
        found = self._holder_ids.get(terms)
        if found is None:
            return self._lay_out(terms)
        self._uses[found] += 1
        return found

    def release(self, holder: int) -> None:
        if holder == NO_TERMS:
            return
        uses = self._uses[holder] = self._uses[holder] - 1
        if uses:
            return
        terms = self._holders[holder]
        del self._holder_ids[terms]
        self._holders[holder] = ()
        self._seats.leave(holder)
        size = len(self._seats)
        del self._holders[size:], self._uses[size:]
        for spelling in self._spellings.pop(holder, ()):
            del self._by_spelling[spelling]
        self._pairs.remove(holder)
        for term in dict.fromkeys(terms):
            left = self._held[term] - 1
            if left:
                self._held[term] = left
            else:
                del self._held[term]
                self._table.drop(term)
                self.version += 1
        self._table.tidy(self._give_back)

    def _give_back(self, places: Numbers) -> None:
        """Take over the places that terms have now, and give back what tables were grown to."""
        self._pairs.move(places)
        self._held = dict(self._held)
        self._holder_ids = dict(self._holder_ids)
        self._by_spelling, self._spellings = dict(self._by_spelling), dict(self._spellings)

    def holders_of(self, term: PodTerm) -> Mapping[int, int]:
        place = self._table.place_of(term)
        return {} if place is None else self._pairs.holders_of(place)

    @property
    def id_count(self) -> int:
        return len(self._holders)

    def _lay_out(self, terms: tuple[PodTerm, ...]) -> int:
        found = self._seats.take()
        if found < len(self._holders):
            self._holders[found] = terms
            self._uses[found] = 1
        else:
            self._holders.append(terms)
            self._uses.append(1)
        self._holder_ids[terms] = found
        times: dict[PodTerm, int] = {}
        for term in terms:
            times[term] = times.get(term, 0) + 1
        places: dict[int, int] = {}
        for term, count in times.items():
            place = self._table.place_of(term)
            if place is None:
                self.version += 1
                place = self._table.put(term, self.version)
            self._held[term] = self._held.get(term, 0) + 1
            places[place] = count
        self._pairs.add(found, places)
        if self._born is not None:
            self._born(found)
        return found

    # Newcomers

    def look(self, labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the labels that held terms look at: pods alike in these are picked alike."""
        looked_at = self._table.label_keys
        if not looked_at:
            return ()
        return tuple([pair for pair in labels.items() if pair[0] in looked_at])

    def picked(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> PickedTerms:
        if not len(self._table):
            return NOT_PICKED
        if self._looks_version != self.version or len(self._looks) >= _LOOKS:
            self._looks.clear()
            self._by_places.clear()
            self._looks_version = self.version
        look = namespace, tuple(namespace_labels.items()), self.look(labels)
        found = self._looks.get(look)
        if found is None:
            found = self._looks[look] = self._find(namespace, namespace_labels, labels)
        return found

    def _find(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> PickedTerms:
        picked = self._table.picking(namespace, namespace_labels, labels)
        # As of one version, the same places are the same terms: newcomers differ more often.
        here = np.packbits(picked).tobytes()
        found = self._by_places.get(here)
        if found is None:
            found = self._by_places[here] = self._interned(np.flatnonzero(picked))
        return found

    def picking(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[PodTerm]:
        """Return the same terms, one by one."""
        table = self._table
        return table.terms_at(table.picking(namespace, namespace_labels, labels))

    def times(self, picked: PickedTerms, group: Group) -> Numbers:
        """Return, by holder id, how much its terms of a group weigh that are among the picked."""
        weights = self._table.weights(self._table.places, picked.terms, group)
        return self._pairs.sums(weights, self.id_count)

    def times_of(self, holder: int, picked: PickedTerms, group: Group) -> int:
        places, times = self._pairs.of(holder)
        return int((times * self._table.weights(places, picked.terms, group)).sum())

    def _interned(self, places: Numbers) -> PickedTerms:
        if not len(places):
            return NOT_PICKED
        numbers = self._table.number_at.take(places)
        listed: dict[Purpose, list[str]] = {}
        for purpose, key in self._table.groups_at(places):
            listed.setdefault(purpose, []).append(key)
        keys = {purpose: tuple(sorted(known)) for purpose, known in listed.items()}
        # Which keys nodes have is part of it.
        named = _encode(sorted(keys.items()))
        content = hashlib.blake2b(numbers.tobytes() + named, digest_size=16).digest()
        found = self._picked.get(content)
        if found is None:
            self._picked_count += 1
            found = PickedTerms(self._picked_count, np.sort(numbers), keys)
            self._picked[content] = found
        return found
