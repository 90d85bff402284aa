"""Arithmetic of scores: the default normalisation, and the strategies of NodeResourcesFit.

A strategy is given columns of what is requested (the pod included) and of what is allocatable, and
returns 0..100 per row, in integers as kube-scheduler computes them.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import le
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.framework.views.rows_view import Scores
from k8s_scheduler.core.framework.views.values import TAKEN_IN_SCORES, Block, Work


def default_normalize(scores: Scores, *, reverse: bool) -> Scores:
    """Scale so that the largest score becomes 100, or 0 when reversed; the minimum is no anchor."""
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled


# Kinds of numbers (`dtype.char`).
FLOATS: Final = np.dtype(np.float64).char
SHORT: Final = np.dtype(np.int32).char
MASKS: Final = np.dtype(np.bool_).char


class Scratch:
    """Memory for what is worked out on the way, used again and again.

    A new piece for every decision would be new to the machine, too: it takes longer to get the
    pages of a large one than to fill it. And it would lie across the lines that the machine reads
    and writes at once, which takes twice as long. Never returned to a caller: the next call writes
    over it.

    Bounded: a piece that is larger than any that are asked for often is not kept, and memory of
    which less than half was needed for a while is given back.
    """

    # Of numbers; smaller pieces cost nothing to get, and larger ones are not kept.
    _LARGE: Final = 4096
    _MOST: Final = 1 << 20
    # Pieces that were asked for, ready to be handed out again.
    _PIECES: Final = 16
    # After so many pieces it is looked at how much memory they needed.
    _PERIOD: Final = 1024

    def __init__(self) -> None:
        self._pieces: dict[tuple[str, int, int], Block] = {}
        # By kind of numbers. What is of another kind is elsewhere.
        self._memory: dict[str, Block] = {}
        # How many numbers of each kind were needed at once in this period, and what is left of it.
        self._needed: dict[str, int] = {}
        self._left = self._PERIOD

    @property
    def nbytes(self) -> int:
        return sum(memory.nbytes for memory in self._memory.values())

    def room(self, kind: str, width: int, length: int) -> Block:
        """Return room for so many columns of numbers of a kind (`dtype.char`), of any content."""
        if width * length <= self._LARGE:
            return np.empty((width, length), dtype=kind)
        self._left -= 1
        if not self._left:
            self._start_over()
        piece = kind, width, length
        found = self._pieces.get(piece)
        if found is None:
            size = width * _stride(kind, length)
            if size > self._MOST:
                return aligned_columns(kind, width, length)
            self._needed[kind] = max(size, self._needed.get(kind, 0))
            found = self._cut(kind, width, length)
            self._pieces[piece] = found
        return found

    def _start_over(self) -> None:
        """Give memory back of which less than half was needed since the last time.

        All pieces are cut anew, so what is needed from now on is seen.
        """
        for kind in [k for k, m in self._memory.items() if 2 * self._needed.get(k, 0) < len(m)]:
            del self._memory[kind]
        self._pieces.clear()
        self._needed.clear()
        self._left = self._PERIOD

    def _cut(self, kind: str, width: int, length: int) -> Block:
        stride = _stride(kind, length)
        memory = self._memory.get(kind)
        if memory is None or width * stride > len(memory):
            memory = self._memory[kind] = aligned(width * stride, kind)
            self._pieces.clear()
        elif len(self._pieces) >= self._PIECES:
            self._pieces.clear()
        return _columns(memory, width, stride, length)


# How many bytes the machine reads or writes at once.
_LINE: Final = 64


def aligned(size: int, kind: str = FLOATS) -> Block:
    """Return room for so many numbers that begins where a line of memory does."""
    width = np.dtype(kind).itemsize
    memory = np.empty(size * width + _LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size * width].view(kind)


def aligned_columns(kind: str, width: int, length: int) -> Block:
    """Return room for so many columns, each of which begins where a line of memory does."""
    stride = _stride(kind, length)
    return _columns(aligned(width * stride, kind), width, stride, length)


def _columns(memory: Block, width: int, stride: int, length: int) -> Block:
    return memory[: width * stride].reshape(width, stride)[:, :length]


def _stride(kind: str, length: int) -> int:
    """Return from where to where it is to the next column that begins where a line does."""
    line = _LINE // np.dtype(kind).itemsize
    return -(-length // line) * line


@dataclass(slots=True, unsafe_hash=True)
class PerResource:
    """One number for each of some resources, to be compared with or added to blocks of amounts.

    Floats do for numbers of any size: what is too large for them to be exact is more than any node
    offers whose amounts they show.
    """

    numbers: tuple[int, ...]
    _floats: npt.NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    _integers: npt.NDArray[np.int64] | None = field(default=None, compare=False, repr=False)
    _hundredfold: npt.NDArray[np.float64] | None = field(default=None, compare=False, repr=False)

    def like(self, block: Block) -> Block:
        """Return them as [resource][0], in integers or floats as a block has them."""
        if block.dtype.char == FLOATS:
            if self._floats is None:
                self._floats = np.array(self.numbers, dtype=np.float64)[:, np.newaxis]
            return self._floats
        if self._integers is None:
            self._integers = np.array(self.numbers, dtype=np.int64)[:, np.newaxis]
        return self._integers

    def hundredfold(self) -> Block:
        """Return a hundred times as much, as [resource][0], in floats."""
        if self._hundredfold is None:
            hundredfold = [MAX_SCORE * number for number in self.numbers]
            self._hundredfold = np.array(hundredfold, dtype=np.float64)[:, np.newaxis]
        return self._hundredfold


# Both are given in integers, or both in floats that are exact (`RowsView.block`). What comes back
# may be in the place of what was requested. Of floats, only what is before the point counts.
Strategy = Callable[[Block, Block], Block]


def least_allocated(requested: Block, allocatable: Block) -> Block:
    """Return how much is left; nothing where more is requested than there is."""
    left = np.subtract(allocatable, requested, out=requested)
    np.maximum(left, 0, out=left)
    return _percent(left, allocatable)


def _left_of_all(offered: Block, taken: Block) -> Block:
    width, length = offered.shape
    found = aligned_columns(FLOATS, 2 * width, length)
    left = np.subtract(offered, taken, out=found[:width])
    np.multiply(left, MAX_SCORE, out=left)
    np.add(left, _A_HALF, out=left)
    np.divide(1.0, offered, out=found[width:])
    return found


def _left_of_one(offered: list[float], taken: list[float]) -> list[float]:
    left = [MAX_SCORE * (most - less) + _A_HALF for most, less in zip(offered, taken, strict=True)]
    return left + [1.0 / most for most in offered]


_A_HALF: Final = 0.5
# A hundred times what is left of each resource without the pod, and a half; and one divided by how
# much there is of it. Multiplied, after what the pod adds was taken off, they give a percentage:
# multiplication is several times as fast as division. Before the point it is right, though both
# factors and the product are rounded: by less than 2^-45 in all, where the half keeps the exact
# number away from the next whole one by 1 / (2 * offered) at least, both below and above.
LEFT: Final = Work(TAKEN_IN_SCORES, _left_of_all, _left_of_one, limit=2**44)


def have_room(least_free: list[float], asked: tuple[int, ...]) -> bool:
    """Return whether so much is free on every row, going by what is free at least."""
    return all(map(le, asked, least_free))


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


def weighted_mean(scores: Block, weights: tuple[int, ...], scratch: Scratch) -> Scores:
    """Return the mean of [resource][row] scores, everything rounded down; uses up the scores."""
    weight = sum(weights)
    if scores.dtype.kind != "f":
        return divided(_weighed(scores, weights), weight).astype(np.int64)
    if weight < _SMALL_WEIGHT:
        # Half as long numbers take half the time.
        whole = scratch.room(SHORT, *scores.shape)
        # Cuts off what is behind the point.
        np.copyto(whole, scores, casting="unsafe")
    else:
        whole = scores.astype(np.int64)
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
