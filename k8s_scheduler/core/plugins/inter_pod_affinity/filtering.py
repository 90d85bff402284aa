"""Who may not be where: required affinity and anti-affinity, of the pod and of those in place.

Three counts by domain decide, as kube-scheduler has them: `near` counts the placed pods that all
required affinity terms pick at once, for each term's topology; `far` those that a required
anti-affinity term picks; `refusing` the required anti-affinity terms of placed pods that pick the
newcomer. Terminating pods count like others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView
from k8s_scheduler.core.framework.views.values import Crowd, Purpose, TermKind
from k8s_scheduler.core.plugins.inter_pod_affinity.domains import NO_COUNTS, DomainCounts
from k8s_scheduler.core.plugins.inter_pod_affinity.newcomer import (
    NewcomerTerms,
    Selection,
    counter_of,
    counters_of,
    selections,
)


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """What a node is judged by."""

    newcomer: NewcomerTerms
    affinity: tuple[Selection, ...]
    anti_affinity: tuple[Selection, ...]
    # Whether all affinity terms pick the newcomer itself.
    picks_itself: bool
    near: DomainCounts
    far: DomainCounts
    refusing: DomainCounts

    @classmethod
    def of(cls, pod: PodView, rows: RowsView) -> "RequiredTerm":
        """Find out what counts for a pod; raises SelectorError if its terms can't be parsed."""
        terms = pod.terms
        newcomer = NewcomerTerms.of(pod, rows)
        affinity = selections(terms, TermKind.REQUIRED_AFFINITY, rows)
        anti_affinity = selections(terms, TermKind.REQUIRED_ANTI_AFFINITY, rows)
        return cls(
            newcomer,
            affinity,
            anti_affinity,
            picks_itself=all(term.picks(pod) for term in affinity),
            near=_near(affinity, rows),
            far=DomainCounts.of((key, found) for key, found, _ in counters_of(anti_affinity, rows)),
            refusing=DomainCounts.of(newcomer.held_for(Purpose.REFUSING, rows)),
        )

    def rejects_nothing(self, rows: RowsView) -> bool:
        """Return whether the pod has no required terms and no term keeps it off."""
        return not self.affinity and not self.anti_affinity and self.refusing.is_empty(rows)

    # Nodes

    def too_far(self, rows: RowsView) -> Mask | None:
        """Return where the pod would not be near to the pods it needs; None if nowhere.

        The first of a group that needs its own kind goes wherever the topologies exist.
        """
        if not self.affinity:
            return None
        lonely: Mask | None = None
        meets_any = False
        for key in self.near.by_key:
            counts = self.near.at(key, rows)
            alone: Mask = counts <= 0
            if np.count_nonzero(alone):
                lonely = alone if lonely is None else lonely | alone
            # A pod near one of the rows is a pod somewhere: no need to look further.
            meets_any = meets_any or not alone.all()
        if lonely is None:
            return None
        if meets_any or not self.picks_itself or not self.near.is_empty(rows):
            return lonely
        homeless = np.zeros(len(rows), dtype=np.bool_)
        for key in self.near.by_key:
            homeless |= ~rows.has_label(key)
        return homeless if np.count_nonzero(homeless) else None

    def too_near(self, rows: RowsView) -> Mask | None:
        """Return where the pod would be near to a pod that it avoids; None if nowhere."""
        return _any_counted(self.far, rows)

    def refused(self, rows: RowsView) -> Mask | None:
        """Return where the pod would be near to a pod that avoids it; None if nowhere."""
        return _any_counted(self.refusing, rows)

    # Pods more or less

    def with_pod(self, pod: PodView, rows: RowsView, sign: int) -> "RequiredTerm":
        """Return the counts with a pod more or less on the one row in view."""
        near, far, refusing = self.near, self.far, self.refusing
        for held in pod.readable_terms:
            if held.kind is TermKind.REQUIRED_ANTI_AFFINITY and self.newcomer.is_picked_by(held):
                refusing = refusing.plus(held.topology_key, rows, sign)
        if self.affinity and all(term.picks(pod) for term in self.affinity):
            for term in self.affinity:
                near = near.plus(term.topology_key, rows, sign)
        for term in self.anti_affinity:
            if term.picks(pod):
                far = far.plus(term.topology_key, rows, sign)
        return self._with(near, far, refusing)

    def without(self, pods: Crowd, rows: RowsView) -> tuple["RequiredTerm", Sequence[int]]:
        """Return the counts without pods on the one row in view, and who of them is in the way.

        Where the pod may be, it avoids no pod of these domains and none avoids it. So one that it
        avoids, or that avoids it, is in the way; and one more of those that it needs is not.
        """
        near, _ = self.near.without(pods, rows)
        far, avoided = self.far.without(pods, rows)
        refusing, avoiding = self.refusing.without(pods, rows)
        found = avoided if avoiding is None else avoiding
        if avoided is not None and avoiding is not None:
            found = avoided | avoiding
        in_the_way = () if found is None else np.flatnonzero(found).tolist()
        return self._with(near, far, refusing), in_the_way

    def _with(
        self, near: DomainCounts, far: DomainCounts, refusing: DomainCounts
    ) -> "RequiredTerm":
        """Return the term with these counts; itself if they are its own."""
        if near is self.near and far is self.far and refusing is self.refusing:
            return self
        return replace(self, near=near, far=far, refusing=refusing)


def _near(affinity: tuple[Selection, ...], rows: RowsView) -> DomainCounts:
    if not affinity:
        return NO_COUNTS
    counter = counter_of(affinity, rows)
    return DomainCounts.of((term.topology_key, counter) for term in affinity)


def _any_counted(counts: DomainCounts, rows: RowsView) -> Mask | None:
    if counts is NO_COUNTS:
        return None
    found: Mask | None = None
    for key in counts.topology_keys():
        here: Mask = counts.at(key, rows) > 0
        if np.count_nonzero(here):
            found = here if found is None else found | here
    return found
