"""Arithmetic of scores: the default normalisation, and the strategies of NodeResourcesFit.

A strategy is given columns of what is requested (the pod included) and of what is allocatable, and
returns 0..100 per row, in integers as kube-scheduler computes them.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views.rows_view import Scores
from k8s_scheduler.core.framework.views.values import Block


def default_normalize(scores: Scores, *, reverse: bool) -> Scores:
    """Scale so that the largest score becomes 100, or 0 when reversed; the minimum is no anchor."""
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled


# The kind of numbers (`dtype.char`) in which amounts are exact unless they are very large.
FLOATS: Final = np.dtype(np.float64).char


@dataclass(slots=True, unsafe_hash=True)
class PerResource:
    """One number for each of some resources, to be compared with or added to blocks of amounts.

    Floats do for numbers of any size: what is too large for them to be exact is more than any node
    offers whose amounts they show.
    """

    numbers: tuple[int, ...]
    _floats: npt.NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    _integers: npt.NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    def like(self, block: Block) -> Block:
        """Return them as [resource][0], in integers or floats as a block has them."""
        if block.dtype.char == FLOATS:
            if self._floats is None:
                self._floats = np.array(self.numbers, dtype=np.float64)[:, np.newaxis]
            return self._floats
        if self._integers is None:
            self._integers = np.array(self.numbers, dtype=np.int64)[:, np.newaxis]
        return self._integers


# Both are given in integers, or both in floats that are exact (`RowsView.block`). What comes back
# may be in the place of what was requested. Of floats, only what is before the point counts.
Strategy = Callable[[Block, Block], Block]


def least_allocated(requested: Block, allocatable: Block) -> Block:
    """Return how much is left; nothing where more is requested than there is."""
    left = np.subtract(allocatable, requested, out=requested)
    np.maximum(left, 0, out=left)
    return _percent(left, allocatable)


def most_allocated(requested: Block, allocatable: Block) -> Block:
    """Return how much is used; all where more is requested than there is."""
    return _percent(np.minimum(requested, allocatable, out=requested), allocatable)


def _percent(part: Block, whole: Block) -> Block:
    """Make part * 100 / whole of `part`, for 0 <= part <= whole and 0 < whole.

    Division of floats is several times as fast as that of integers, and as exact for dividends
    below 2^53: the quotient is rounded correctly, so what is before the point is right.
    """
    np.multiply(part, MAX_SCORE, out=part)
    if part.dtype.kind == "f":
        return np.divide(part, whole, out=part)
    return divided(part, whole)


def weighted_mean(scores: Block, weights: tuple[int, ...]) -> Scores:
    """Return the mean of [resource][row] scores, everything rounded down; uses up the scores."""
    weight = sum(weights)
    if scores.dtype.kind != "f":
        return divided(_weighed(scores, weights), weight).astype(np.int64)
    # Cuts off what is behind the point. Half as long numbers take half the time.
    whole = scores.astype(np.int32 if weight < _SMALL_WEIGHT else np.int64)
    total = _weighed(whole, weights)
    if weight & (weight - 1) == 0:
        np.right_shift(total, weight.bit_length() - 1, out=total)
    else:
        np.floor_divide(total, weight, out=total)
    return total.astype(np.int64)


def _weighed(scores: Block, weights: tuple[int, ...]) -> Block:
    """Return the weighted sum, in the place of the first column."""
    total: Block = scores[0]
    for number, weight in enumerate(weights):
        column = scores[number]
        if weight != 1:
            np.multiply(column, weight, out=column)
        if number:
            np.add(total, column, out=total)
    return total


# Scores times less than this are far from what 32 bits hold.
_SMALL_WEIGHT: Final = 2**20


def divided(dividend: Block, divisor: Block | int) -> Block:
    """Divide integers, in place, by what is above 0; towards zero, as Go divides.

    A product of integers that was too large for 64 bits may be negative.
    """
    np.subtract(dividend, np.fmod(dividend, divisor), out=dividend)
    return np.floor_divide(dividend, divisor, out=dividend)


def broken_linear(points: Sequence[tuple[int, int]]) -> Strategy:
    """Return a strategy that follows straight lines between (utilisation, score) points."""

    def score(requested: Scores, allocatable: Scores) -> Scores:
        used = np.where(
            requested > allocatable,
            MAX_SCORE,
            divided(requested * MAX_SCORE, np.maximum(allocatable, 1)),
        )
        scores = np.full_like(used, points[-1][1])
        for (u0, s0), (u1, s1) in reversed(list(itertools.pairwise(points))):
            rise = (s1 - s0) * (used - u0)
            # Go divides towards zero.
            step = np.sign(rise) * (np.abs(rise) // (u1 - u0))
            scores = np.where(used <= u1, s0 + step, scores)
        return np.where(used <= points[0][0], points[0][1], scores)

    return score
