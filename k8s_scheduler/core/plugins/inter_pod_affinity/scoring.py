"""Where a pod would rather be: preferred affinity and anti-affinity, of it and of those in place.

Assumptions: wishes count once for every placed pod they concern, and in every node of its domain.
Formula, for each topology key and domain: plus the weight for each placed pod that a preferred
affinity term of the newcomer picks, minus the weight for anti-affinity; and for each preferred
term of a placed pod that picks the newcomer likewise; and plus `hardPodAffinityWeight` for each
required affinity term of a placed pod that picks the newcomer. A node has the sum of its domains.
"""

from collections.abc import Iterator

import numpy as np

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.views import Counts, PodMask, RowsView, Scores
from k8s_scheduler.core.plugins.inter_pod_affinity.newcomer import Newcomer, selections
from k8s_scheduler.core.state.held_terms import PodTerm, TermKind

# How a preferred term's weight counts.
_SIGNS = {TermKind.PREFERRED_AFFINITY: 1, TermKind.PREFERRED_ANTI_AFFINITY: -1}

# (topology key, score of each of its domains); a key may be there more than once.
DomainScores = tuple[tuple[str, Counts], ...]


def has_wishes(terms: tuple[PodTerm, ...]) -> bool:
    """Return whether a pod prefers something."""
    return any(term.kind in _SIGNS for term in terms)


def domain_scores(pod: PodView, rows: RowsView, *, hard_pod_affinity_weight: int) -> DomainScores:
    """Return the scores by topology key and domain; none if there was nothing to add up."""
    return (
        *_wishes_of_newcomer(pod, rows),
        *_wishes_of_placed(pod, rows, hard_pod_affinity_weight),
    )


def _wishes_of_newcomer(pod: PodView, rows: RowsView) -> Iterator[tuple[str, Counts]]:
    by_key: dict[str, list[tuple[PodMask, int]]] = {}
    terms = pod.terms
    for kind, sign in _SIGNS.items():
        for wish in selections(terms, kind, rows):
            weighted = (wish.among(rows), sign * wish.weight)
            by_key.setdefault(wish.topology_key, []).append(weighted)
    for key, wishes in by_key.items():
        weights: Counts = np.sum([picked * weight for picked, weight in wishes], axis=0)
        scores = rows.pods_by_domain(weights, key)
        # Wishes that outweigh each other are wishes, too.
        if scores.any() or any(rows.pods_by_domain(picked, key).any() for picked, _ in wishes):
            yield key, scores


def _wishes_of_placed(
    pod: PodView, rows: RowsView, hard_pod_affinity_weight: int
) -> Iterator[tuple[str, Counts]]:
    by_key: dict[str, dict[PodTerm, int]] = {}
    for term in Newcomer.of(pod, rows).terms_picking_it(rows):
        if term.kind in _SIGNS:
            by_key.setdefault(term.topology_key, {})[term] = _SIGNS[term.kind] * term.weight
        elif term.kind is TermKind.REQUIRED_AFFINITY and hard_pod_affinity_weight:
            by_key.setdefault(term.topology_key, {})[term] = hard_pod_affinity_weight
    for key, weights in by_key.items():
        scores = rows.holders_by_domain(weights, key)
        if scores.any() or rows.holders_by_domain(dict.fromkeys(weights, 1), key).any():
            yield key, scores


def row_scores(scores: DomainScores, rows: RowsView) -> Scores:
    """Return the sum of each row's domains."""
    total = np.zeros(len(rows), dtype=np.int64)
    for key, by_domain in scores:
        total += by_domain[rows.label(key)]
    return total


def scaled_between_extremes(scores: Scores) -> Scores:
    """Return the scores so that the lowest is 0 and the highest 100; all 0 if they are equal."""
    low, high = int(scores.min()), int(scores.max())
    if low == high:
        return np.zeros_like(scores)
    # In Go's order of operations: the fraction first, cut off at the end.
    share = (scores - low).astype(np.float64) / float(high - low)
    scaled: Scores = (MAX_SCORE * share).astype(np.int64)
    return scaled
