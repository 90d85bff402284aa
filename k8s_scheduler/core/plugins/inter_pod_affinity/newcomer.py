"""The pod that is to be placed, and the pods that its terms pick.

Upstream resolves the namespaces of a newcomer's terms beforehand, against the namespaces that
exist: a term that selects namespaces by label does not pick pods of a namespace that is not (yet)
known, however its selector reads. The terms of placed pods ask for the labels of the newcomer's
namespace instead, and take a namespace that is not known for one without labels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.selectors.labels import EVERYTHING, NOTHING, Requirements, matches
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.framework.views.values import (
    PickedTerms,
    PodCounter,
    PodTerm,
    Purpose,
    SelectedPods,
    TermHolders,
    TermKind,
    WeighedPods,
)

# Terms by one topology key that are counted each by itself.
FEW_TERMS: Final = 2
_REQUIRED: Final = (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY)


@dataclass(frozen=True, slots=True)
class Selection:
    """What one of the newcomer's terms picks: pods by labels in `namespaces`; None are all."""

    topology_key: str
    # Sorted, each once.
    namespaces: tuple[str, ...] | None
    labels: Requirements | None
    # How much each of them counts: the weight of a term that is only preferred.
    times: int = 1

    def picks(self, pod: PodView) -> bool:
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        return pod.is_selected_by(self.labels)


def counter_of(picked: tuple[Selection, ...], rows: RowsView) -> PodCounter:
    """Return what counts the placed pods that are picked by all; those on their way out, too."""
    selections = dict.fromkeys((term.namespaces, term.labels) for term in picked)
    return rows.counter(SelectedPods(tuple(selections), with_terminating=True))


def counters_of(
    terms: tuple[Selection, ...], rows: RowsView
) -> Iterator[tuple[str, PodCounter, int]]:
    """Yield (topology key, counter, how much one counts): the placed pods that each term picks.

    Pods with few terms share counters with others. Many terms are counted together: one tenant may
    have any number of them, and a counter for each would push out those of all others.
    """
    by_key: dict[str, list[Selection]] = {}
    for term in terms:
        by_key.setdefault(term.topology_key, []).append(term)
    for key, here in by_key.items():
        if len(here) > FEW_TERMS and all(term.times > 0 for term in here):
            selected = [((term.namespaces, term.labels), term.times) for term in here]
            yield key, rows.counter(WeighedPods(tuple(selected))), 1
            continue
        for term in here:
            yield key, counter_of((term,), rows), term.times


@dataclass(frozen=True, slots=True)
class NewcomerTerms:
    """The pod to be placed, as the terms of placed pods see it."""

    # Pods that give the same answers make the same newcomer.
    pod: PodView = field(compare=False)
    namespace_labels: Mapping[str, str]

    @classmethod
    def of(cls, pod: PodView, rows: RowsView) -> "NewcomerTerms":
        """Look up the labels of the pod's namespace; one that is not known has none."""
        found = rows.object(Kind.NAMESPACE, "", pod.namespace)
        labels = None if found is None else found.metadata.labels
        return cls(pod, labels or {})

    def is_picked_by(self, term: PodTerm) -> bool:
        """Return whether a placed pod's term picks this pod."""
        if self.pod.namespace not in term.namespaces and not matches(
            term.namespace_labels, self.namespace_labels
        ):
            return False
        return self.pod.is_selected_by(term.labels)

    def terms_picking_it(self, rows: RowsView) -> PickedTerms:
        """Return the terms of placed pods that pick this pod."""
        return rows.terms_picking(self.pod, self.namespace_labels)

    def held_for(self, purpose: Purpose, rows: RowsView) -> Iterator[tuple[str, PodCounter]]:
        """Yield what adds up terms of placed pods that pick this pod, by topology key."""
        picked = self.terms_picking_it(rows)
        for key in picked.keys.get(purpose, ()):
            yield key, rows.counter(TermHolders(picked, purpose, key))


def selections(terms: tuple[PodTerm, ...], kind: TermKind, rows: RowsView) -> tuple[Selection, ...]:
    """Return what the newcomer's terms of one kind pick."""
    return tuple(
        Selection(
            term.topology_key,
            _namespaces_of(term, rows),
            term.labels,
            times=1 if kind in _REQUIRED else term.weight,
        )
        for term in terms
        if term.kind is kind
    )


def _namespaces_of(term: PodTerm, rows: RowsView) -> tuple[str, ...] | None:
    if term.namespace_labels is NOTHING:
        return tuple(dict.fromkeys(term.namespaces))
    if term.namespace_labels == EVERYTHING:
        return None
    selected = (
        found.metadata.name
        for found in rows.all_objects(Kind.NAMESPACE)
        if matches(term.namespace_labels, found.metadata.labels or {})
    )
    return tuple(dict.fromkeys(sorted((*term.namespaces, *selected))))
