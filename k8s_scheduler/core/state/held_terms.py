"""Affinity terms that placed pods hold: what they say about pods that come later.

Distinct terms are few, one per workload, and a newcomer is selected by few of them. Terms are
found through one label pair that they demand, so a newcomer asks only for its own labels' terms
and for those that demand no pair. Which pods hold which terms is one id per pod (its `holder`).
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from k8s_scheduler.api.label_selectors import (
    IN,
    Requirements,
    SelectorError,
    matches,
    requirements_of,
)
from k8s_scheduler.api.pod import Pod, PodAffinity, PodAffinityTerm
from k8s_scheduler.api.selector_problems import together

NO_TERMS = 0
_Pair = tuple[str, str]

_encode = msgspec.msgpack.Encoder().encode
# So many ways to write the terms of one holder are remembered.
_SPELLINGS = 8


class TermKind(enum.StrEnum):
    """How a term is meant."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term: the pods it picks, and the topology in which they are near.

    `namespaces` are listed ones, sorted; `namespace_labels` picks further ones by their labels.
    `weight` is 0 for required terms.
    """

    kind: TermKind
    topology_key: str
    namespaces: tuple[str, ...]
    namespace_labels: Requirements | None
    labels: Requirements | None
    weight: int = 0

    def picks(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> bool:
        """Return whether a pod in a namespace with these labels is picked."""
        if namespace not in self.namespaces and not matches(
            self.namespace_labels, namespace_labels
        ):
            return False
        return matches(self.labels, labels)


def terms_of(pod: Pod) -> tuple[PodTerm, ...]:
    """Return all terms of a pod; raises SelectorError, naming the lists that can't be parsed."""
    terms, problems = _parsed(pod)
    if problems:
        raise SelectorError(together(problems))
    return terms


def readable_terms_of(pod: Pod) -> tuple[PodTerm, ...]:
    """Return the terms of a placed pod; a list with one that can't be parsed counts for nothing."""
    return _parsed(pod)[0]


def _parsed(pod: Pod) -> tuple[tuple[PodTerm, ...], list[str]]:
    """Return the terms in upstream's four lists, and what is wrong with the others."""
    affinity = pod.spec.affinity
    if affinity is None:
        return (), []
    near, far = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    lists = (
        ("requiredAffinityTerms", TermKind.REQUIRED_AFFINITY, _unweighted(near)),
        ("requiredAntiAffinityTerms", TermKind.REQUIRED_ANTI_AFFINITY, _unweighted(far)),
        ("preferredAffinityTerms", TermKind.PREFERRED_AFFINITY, _weighted(near)),
        ("preferredAntiAffinityTerms", TermKind.PREFERRED_ANTI_AFFINITY, _weighted(far)),
    )
    found: list[PodTerm] = []
    problems: list[str] = []
    for name, kind, terms in lists:
        try:
            found += [_term(t, pod.metadata.namespace, kind, weight=weight) for weight, t in terms]
        except SelectorError as error:
            problems.append(f"{name}: {error}")
    return tuple(found), problems


def _unweighted(affinity: PodAffinity) -> list[tuple[int, PodAffinityTerm]]:
    return [(0, term) for term in affinity.required or ()]


def _weighted(affinity: PodAffinity) -> list[tuple[int, PodAffinityTerm]]:
    return [(wish.weight, wish.pod_affinity_term) for wish in affinity.preferred or ()]


def _term(term: PodAffinityTerm, namespace: str, kind: TermKind, *, weight: int) -> PodTerm:
    listed = tuple(sorted(term.namespaces or ()))
    own = not listed and term.namespace_selector is None
    return PodTerm(
        kind=kind,
        topology_key=term.topology_key,
        namespaces=(namespace,) if own else listed,
        namespace_labels=requirements_of(term.namespace_selector),
        labels=requirements_of(term.label_selector),
        weight=weight,
    )


# Told of a holder with its first pod: (id, terms).
Born: TypeAlias = Callable[[int, tuple[PodTerm, ...]], None]
# Told of a holder without pods.
Gone: TypeAlias = Callable[[int], None]


class HeldTerms:
    """The distinct terms of placed pods, and who holds them.

    A holder is a tuple of terms that some pods have in common; id 0 holds none, and is not
    counted. Ids are used again once their last pod is gone.
    """

    def __init__(self) -> None:
        self._holder_ids: dict[tuple[PodTerm, ...], int] = {(): NO_TERMS}
        self._holders: list[tuple[PodTerm, ...]] = [()]
        self._uses: list[int] = [0]
        self._free: list[int] = []
        # Another number with every change in which terms are held.
        self.version = 0
        # By term: a number that no other term ever has.
        self._numbers: dict[PodTerm, int] = {}
        # How pods that are a holder write its terms.
        self._by_spelling: dict[bytes, int] = {}
        self._spellings: dict[int, list[bytes]] = {}
        # By term: holder id -> how often the holder has the term.
        self._by_term: dict[PodTerm, dict[int, int]] = {}
        # By a pair every picked pod must have; None for terms that demand no pair.
        self._by_pair: dict[_Pair | None, dict[PodTerm, None]] = {}
        # As of a version.
        self._label_keys: tuple[int, tuple[str, ...]] = (0, ())
        self._born: Born | None = None
        self._gone: Gone | None = None

    def listen(self, born: Born, gone: Gone) -> None:
        """Tell somebody of holders that come and go from now on."""
        self._born, self._gone = born, gone

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
        """Return the holder of these terms and count one more pod."""
        if not terms:
            return NO_TERMS
        found = self._holder_ids.get(terms)
        if found is None:
            return self._lay_out(terms)
        self._uses[found] += 1
        return found

    def release(self, holder: int) -> None:
        """Count one pod less; the last one forgets the holder."""
        if holder == NO_TERMS:
            return
        uses = self._uses[holder] = self._uses[holder] - 1
        if uses:
            return
        terms = self._holders[holder]
        del self._holder_ids[terms]
        self._holders[holder] = ()
        self._free.append(holder)
        for spelling in self._spellings.pop(holder, ()):
            del self._by_spelling[spelling]
        for term in dict.fromkeys(terms):
            holders = self._by_term[term]
            if holders.pop(holder, None) is not None and not holders:
                del self._by_term[term]
                del self._numbers[term]
                self.version += 1
                pair = _pair_of(term)
                del self._by_pair[pair][term]
                if not self._by_pair[pair]:
                    del self._by_pair[pair]
        if self._gone is not None:
            self._gone(holder)

    def picking(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[PodTerm]:
        """Return the held terms that pick a pod in a namespace with these labels."""
        candidates = list(self._by_pair.get(None, ()))
        for pair in labels.items():
            candidates.extend(self._by_pair.get(pair, ()))
        return [term for term in candidates if term.picks(namespace, namespace_labels, labels)]

    @property
    def label_keys(self) -> tuple[str, ...]:
        """The labels that held terms look at: pods that are alike in these are picked alike."""
        version, keys = self._label_keys
        if version != self.version:
            every = (r.key for term in self._by_term for r in term.labels or ())
            keys = tuple(dict.fromkeys(every))
            self._label_keys = (self.version, keys)
        return keys

    def number_of(self, term: PodTerm) -> int:
        """Return the number of a held term."""
        return self._numbers[term]

    def holders_of(self, term: PodTerm) -> Mapping[int, int]:
        """Return holder -> how often it has the term, for the holders that have it."""
        return self._by_term.get(term, {})

    @property
    def id_count(self) -> int:
        """Return how many ids there are, unused ones included."""
        return len(self._holders)

    def _lay_out(self, terms: tuple[PodTerm, ...]) -> int:
        """Give an id to a holder and count its first pod."""
        if self._free:
            found = self._free.pop()
            self._holders[found] = terms
            self._uses[found] = 1
        else:
            found = len(self._holders)
            self._holders.append(terms)
            self._uses.append(1)
        self._holder_ids[terms] = found
        for term in terms:
            if term not in self._by_term:
                self.version += 1
                self._numbers[term] = self.version
            holders = self._by_term.setdefault(term, {})
            holders[found] = holders.get(found, 0) + 1
            self._by_pair.setdefault(_pair_of(term), {})[term] = None
        if self._born is not None:
            self._born(found, terms)
        return found


def _pair_of(term: PodTerm) -> _Pair | None:
    """Return a label pair that every pod picked by the term has, if it demands one."""
    for requirement in term.labels or ():
        if requirement.operator == IN and len(requirement.values) == 1:
            return requirement.key, requirement.values[0]
    return None
