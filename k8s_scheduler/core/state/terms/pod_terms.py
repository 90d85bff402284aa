"""Affinity terms of pods, ready to be asked: selectors read, namespaces filled in."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from k8s_scheduler.api.pod import Pod, PodAffinity, PodAffinityTerm
from k8s_scheduler.api.selectors.labels import (
    Requirements,
    SelectorError,
    matches,
    requirements_of,
)
from k8s_scheduler.api.selectors.problems import together


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


def term_count(pod: Pod) -> int:
    """Return how many affinity terms a pod has, without reading them."""
    affinity, found = pod.spec.affinity, 0
    if affinity is not None:
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if part is not None:
                found += len(part.required or ()) + len(part.preferred or ())
    return found
