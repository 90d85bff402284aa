"""Who may not be where: required affinity and anti-affinity, of the pod and of those in place.

Three counts by domain decide, as kube-scheduler has them: `near` counts the placed pods that all
required affinity terms pick at once, for each term's topology; `far` those that a required
anti-affinity term picks; `refusing` the required anti-affinity terms of placed pods that pick the
newcomer. Terminating pods count like others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.views import Counts, Mask, RowsView
from k8s_scheduler.core.plugins.inter_pod_affinity.domains import NO_COUNTS, DomainCounts
from k8s_scheduler.core.plugins.inter_pod_affinity.newcomer import Newcomer, Selection, selections
from k8s_scheduler.core.state.held_terms import PodTerm, TermKind


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """What a node is judged by."""

    newcomer: Newcomer
    affinity: tuple[Selection, ...]
    anti_affinity: tuple[Selection, ...]
    near: DomainCounts
    far: DomainCounts
    refusing: DomainCounts

    @classmethod
    def of(cls, pod: PodView, rows: RowsView) -> "RequiredTerm":
        """Count for a pod; raises SelectorError if its terms can't be parsed."""
        terms = pod.terms
        newcomer = Newcomer.of(pod, rows)
        affinity = selections(terms, TermKind.REQUIRED_AFFINITY, rows)
        anti_affinity = selections(terms, TermKind.REQUIRED_ANTI_AFFINITY, rows)
        return cls(
            newcomer,
            affinity,
            anti_affinity,
            near=_count_near(affinity, rows),
            far=_count_far(anti_affinity, rows),
            refusing=_count_refusing(newcomer, rows),
        )

    @property
    def rejects_nothing(self) -> bool:
        """Whether the pod demands nothing and nobody refuses it."""
        return not self.affinity and not self.anti_affinity and self.refusing is NO_COUNTS

    # Nodes

    def too_far(self, rows: RowsView) -> Mask:
        """Return where the pod would not be near to the pods it needs.

        The first of a group that needs its own kind goes wherever the topologies exist.
        """
        lonely = np.zeros(len(rows), dtype=np.bool_)
        for key in _keys_of(self.affinity):
            lonely |= self.near.at(key, rows) <= 0
        if not lonely.any() or not self.near.is_empty or not self._picks_itself:
            return lonely
        homeless = np.zeros(len(rows), dtype=np.bool_)
        for key in _keys_of(self.affinity):
            homeless |= rows.label(key) < 0
        return homeless

    def too_near(self, rows: RowsView) -> Mask:
        """Return where the pod would be near to a pod that it avoids."""
        return _any_counted(self.far, rows)

    def refused(self, rows: RowsView) -> Mask:
        """Return where the pod would be near to a pod that avoids it."""
        return _any_counted(self.refusing, rows)

    @property
    def _picks_itself(self) -> bool:
        newcomer = self.newcomer
        return all(term.picks(newcomer.namespace, newcomer.labels) for term in self.affinity)

    # One pod more or less

    def with_pod(self, pod: PodView, rows: RowsView, sign: int) -> "RequiredTerm":
        """Return the counts with a pod more or less on the one row in view."""
        namespace, labels = pod.namespace, pod.labels
        near, far, refusing = self.near, self.far, self.refusing
        for held in pod.readable_terms:
            if held.kind is TermKind.REQUIRED_ANTI_AFFINITY and self.newcomer.is_picked_by(held):
                refusing = refusing.plus(held.topology_key, rows, sign)
        if self.affinity and all(term.picks(namespace, labels) for term in self.affinity):
            for term in self.affinity:
                near = near.plus(term.topology_key, rows, sign)
        for term in self.anti_affinity:
            if term.picks(namespace, labels):
                far = far.plus(term.topology_key, rows, sign)
        if near is self.near and far is self.far and refusing is self.refusing:
            return self
        return RequiredTerm(self.newcomer, self.affinity, self.anti_affinity, near, far, refusing)


def _count_near(affinity: tuple[Selection, ...], rows: RowsView) -> DomainCounts:
    if not affinity:
        return NO_COUNTS
    picked = affinity[0].among(rows)
    for term in affinity[1:]:
        picked &= term.among(rows)
    times = [term.topology_key for term in affinity]
    return DomainCounts(
        {key: rows.pods_by_domain(picked, key) * times.count(key) for key in _keys_of(affinity)}
    )


def _count_far(anti_affinity: tuple[Selection, ...], rows: RowsView) -> DomainCounts:
    if not anti_affinity:
        return NO_COUNTS
    by_key: dict[str, Counts] = {}
    for term in anti_affinity:
        # A pod counts once for every term that picks it.
        times = term.among(rows).astype(np.int64)
        by_key[term.topology_key] = by_key.get(term.topology_key, 0) + times
    return DomainCounts({key: rows.pods_by_domain(times, key) for key, times in by_key.items()})


def _count_refusing(newcomer: Newcomer, rows: RowsView) -> DomainCounts:
    by_key: dict[str, dict[PodTerm, int]] = {}
    for term in newcomer.terms_picking_it(rows):
        if term.kind is TermKind.REQUIRED_ANTI_AFFINITY:
            by_key.setdefault(term.topology_key, {})[term] = 1
    counts = {key: rows.holders_by_domain(weights, key) for key, weights in by_key.items()}
    counted = {key: found for key, found in counts.items() if found.any()}
    return DomainCounts(counted) if counted else NO_COUNTS


def _any_counted(counts: DomainCounts, rows: RowsView) -> Mask:
    found = np.zeros(len(rows), dtype=np.bool_)
    for key in counts.topology_keys():
        found |= counts.at(key, rows) > 0
    return found


def _keys_of(terms: tuple[Selection, ...]) -> Mapping[str, None]:
    return dict.fromkeys(term.topology_key for term in terms)
