"""Arithmetic of scores: the default normalisation, and the strategies of NodeResourcesFit.

A strategy is given columns of what is requested (the pod included) and of what is allocatable, and
returns 0..100 per row, in integers as kube-scheduler computes them.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views import Scores


def default_normalize(scores: Scores, *, reverse: bool) -> Scores:
    """Scale so that the largest score becomes 100, or 0 when reversed; the minimum is no anchor."""
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled


_EXACT = 2**46

Strategy = Callable[[Scores, Scores], Scores]


def least_allocated(requested: Scores, allocatable: Scores) -> Scores:
    """Return how much is left; nothing where more is requested than there is."""
    return _percent(np.maximum(allocatable - requested, 0), np.maximum(allocatable, 1))


def most_allocated(requested: Scores, allocatable: Scores) -> Scores:
    """Return how much is used; all where more is requested than there is."""
    return _percent(np.minimum(requested, allocatable), np.maximum(allocatable, 1))


def _percent(part: Scores, whole: Scores) -> Scores:
    """Return part * 100 / whole, rounded down, for 0 <= part <= whole.

    Division of floats is three times as fast as that of integers, and exact for wholes below 2^46:
    the product fits into a float, and the quotient is rounded correctly.
    """
    if int(whole.max(initial=0)) < _EXACT:
        shares = part * float(MAX_SCORE)
        shares /= whole
        return shares.astype(np.int64)
    return part * MAX_SCORE // whole


def broken_linear(points: Sequence[tuple[int, int]]) -> Strategy:
    """Return a strategy that follows straight lines between (utilisation, score) points."""

    def score(requested: Scores, allocatable: Scores) -> Scores:
        used = np.where(
            requested > allocatable,
            MAX_SCORE,
            requested * MAX_SCORE // np.maximum(allocatable, 1),
        )
        scores = np.full_like(used, points[-1][1])
        for (u0, s0), (u1, s1) in reversed(list(itertools.pairwise(points))):
            rise = (s1 - s0) * (used - u0)
            # Go divides towards zero.
            step = np.sign(rise) * (np.abs(rise) // (u1 - u0))
            scores = np.where(used <= u1, s0 + step, scores)
        return np.where(used <= points[0][0], points[0][1], scores)

    return score
