"""Arithmetic of scores: the default normalisation, and the strategies of NodeResourcesFit.

A strategy is given columns of what is requested (the pod included) and of what is allocatable, and
returns 0..100 per row, in integers as kube-scheduler computes them.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views import Scores
from k8s_scheduler.core.state.amounts import Block


def default_normalize(scores: Scores, *, reverse: bool) -> Scores:
    """Scale so that the largest score becomes 100, or 0 when reversed; the minimum is no anchor."""
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled


class Scratch:
    """Memory for what is worked out on the way, used again and again.

    A new piece for every decision would be new to the machine, too: it takes longer to get the
    pages of a large one than to fill it. Never returned to anybody: the next call writes over it.
    """

    # Of numbers; smaller pieces cost nothing to get.
    _LARGE: Final = 4096

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def like(self, numbers: Block, *shape: int) -> Block:
        """Return room for numbers of the same kind, of any content."""
        size = math.prod(shape)
        if size <= self._LARGE:
            return np.empty(shape, dtype=numbers.dtype)
        if size > len(self._memory):
            self._memory = np.empty(size)
        # Integers and floats are of one size.
        return self._memory[:size].view(numbers.dtype).reshape(shape)


@dataclass(frozen=True, slots=True)
class Addends:
    """What a pod adds to some resources: one number for each, or one for each case to compare.

    Also as [resource][0], or [resource][case][0], in integers and in floats.
    Floats do for amounts of any size: what is too large for them to be exact is more than any node
    offers whose amounts they show.
    """

    amounts: tuple[int | tuple[int, ...], ...]
    integers: npt.NDArray[np.int64] = field(compare=False, repr=False)
    floats: npt.NDArray[np.float64] = field(compare=False, repr=False)

    @staticmethod
    def of(amounts: Iterable[int | tuple[int, ...]]) -> "Addends":
        """Return the amounts of the resources, in this order."""
        listed = tuple(amounts)
        integers = np.array(listed, dtype=np.int64)[..., np.newaxis]
        return Addends(listed, integers, integers.astype(np.float64))

    def added_to(self, block: Block, out: Block) -> Block:
        """Write the sums of a block and these to `out`.

        Integers are added as such, whatever `out` makes of them.
        """
        addends = self.floats if block.dtype.kind == "f" else self.integers
        return np.add(block, addends, out=out)


# Both are given in integers, or both in floats that are exact (`RowsView.block`). What comes back
# may be in the place of what was requested.
Strategy = Callable[[Block, Block], Block]


def least_allocated(requested: Block, allocatable: Block) -> Block:
    """Return how much is left; nothing where more is requested than there is."""
    left = np.subtract(allocatable, requested, out=requested)
    return _percent(np.maximum(left, 0, out=left), allocatable)


def most_allocated(requested: Block, allocatable: Block) -> Block:
    """Return how much is used; all where more is requested than there is."""
    return _percent(np.minimum(requested, allocatable, out=requested), allocatable)


def _percent(part: Block, whole: Block) -> Block:
    """Make part * 100 / whole of `part`, rounded down, for 0 <= part <= whole and 0 < whole."""
    np.multiply(part, MAX_SCORE, out=part)
    return divided(part, whole)


def mean(totals: Block, weights: Block | int) -> Scores:
    """Divide sums of scores, in place, towards zero."""
    if totals.dtype.kind == "f":
        np.divide(totals, weights, out=totals)
    else:
        divided(totals, weights)
    # Cuts off what is behind the point.
    found: Scores = totals.astype(np.int64)
    return found


def divided(dividend: Block, divisor: Block | int) -> Block:
    """Divide `dividend`, in place, by what is above 0; towards zero, as Go divides.

    Division of floats is several times as fast as that of integers, and as exact for dividends
    below 2^53: the quotient is rounded correctly. A product of integers that was too large for 64
    bits may be negative.
    """
    if dividend.dtype.kind == "f":
        np.divide(dividend, divisor, out=dividend)
        return np.trunc(dividend, out=dividend)
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
