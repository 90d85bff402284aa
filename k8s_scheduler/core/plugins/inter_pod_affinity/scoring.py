"""Where a pod would rather be: preferred affinity and anti-affinity, of it and of those in place.

Assumptions: wishes count once for every placed pod they concern, and in every node of its domain.
Formula, for each topology key and domain: plus the weight for each placed pod that a preferred
affinity term of the newcomer picks, minus the weight for anti-affinity; and for each preferred
term of a placed pod that picks the newcomer likewise; and plus `hardPodAffinityWeight` for each
required affinity term of a placed pod that picks the newcomer. A node has the sum of its domains.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView, Scores, extremes
from k8s_scheduler.core.framework.views.values import PodCounter, PodTerm, Purpose, TermKind
from k8s_scheduler.core.plugins.inter_pod_affinity.newcomer import (
    NewcomerTerms,
    counters_of,
    selections,
)

# How a preferred term's weight counts.
_SIGNS = {TermKind.PREFERRED_AFFINITY: 1, TermKind.PREFERRED_ANTI_AFFINITY: -1}


@dataclass(frozen=True, slots=True)
class Wish:
    """So much for each that is counted in a node's domain."""

    topology_key: str
    counter: PodCounter
    weight: int


def has_preferences(terms: tuple[PodTerm, ...]) -> bool:
    return any(term.kind in _SIGNS for term in terms)


def wishes(pod: PodView, rows: RowsView, *, hard_pod_affinity_weight: int) -> tuple[Wish, ...]:
    """Return what counts for a pod, whether or not there is a pod that it concerns."""
    return (
        *_wishes_of_newcomer(pod, rows),
        *_wishes_of_placed(pod, rows, hard_pod_affinity_weight),
    )


def concern_anybody(found: tuple[Wish, ...], rows: RowsView) -> bool:
    """Return whether there is a pod in some domain to be counted."""
    # Wishes that outweigh each other are wishes, too.
    return any(rows.count_any(wish.counter, wish.topology_key) for wish in found)


def _wishes_of_newcomer(pod: PodView, rows: RowsView) -> Iterator[Wish]:
    terms = pod.terms
    for kind, sign in _SIGNS.items():
        for key, counter, times in counters_of(selections(terms, kind, rows), rows):
            yield Wish(key, counter, sign * times)


def _wishes_of_placed(
    pod: PodView, rows: RowsView, hard_pod_affinity_weight: int
) -> Iterator[Wish]:
    newcomer = NewcomerTerms.of(pod, rows)
    for purpose, weight in (
        # The weights of these are in the counts.
        (Purpose.ATTRACTING, 1),
        (Purpose.REPELLING, -1),
        (Purpose.NEEDING, hard_pod_affinity_weight),
    ):
        if weight:
            for key, counter in newcomer.held_for(purpose, rows):
                yield Wish(key, counter, weight)


def row_scores(found: tuple[Wish, ...], rows: RowsView) -> Scores:
    """Return the sum of each row's domains."""
    total: Scores | None = None
    for wish in found:
        counts = rows.count_near(wish.counter, wish.topology_key)
        if wish.weight != 1:
            counts *= wish.weight
        total = counts if total is None else total + counts
    return np.zeros(len(rows), dtype=np.int64) if total is None else total


def scaled_between_extremes(scores: Scores) -> Scores:
    """Return the scores so that the lowest is 0 and the highest 100; all 0 if they are equal."""
    low, high = extremes(scores)
    if low == high:
        return np.zeros(len(scores), dtype=np.int64)
    # In Go's order of operations: the fraction first, cut off at the end.
    span = float(high - low)
    share = (scores - low) / span
    scaled: Scores = (MAX_SCORE * share).astype(np.int64)
    return scaled
