"""NodeResourcesBalancedAllocation: rather a node whose resources end up evenly used.

Score. Assumptions: what counts is what pods request, without defaults; a pod that requests none
of the resources has no say. Formula: with b(x) = (1 - standard deviation of the used shares) * 100
rounded down, shares capped at 1, the score is 50 + (50 + b(with the pod) - b(without)) / 2: around
75 where the pod changes little, more where it evens things out. Ties are left to the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.resources import CPU, MEMORY, is_scalar
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import MAX_SCORE, SKIP, Skip
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Mask, RowsView, Scores
from k8s_scheduler.core.plugins.scoring import FLOATS, SHORT, PerResource, Scratch, aligned, cap
from k8s_scheduler.core.state.amounts import OFFERED_AND_TAKEN, Block

_Shares = npt.NDArray[np.float64]
_Percents = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class BalanceTerm:
    """What the pod requests of the resources that are to be in balance."""

    resources: tuple[str, ...]
    added: PerResource


class NodeResourcesBalancedAllocation:
    """Prefers nodes that the pod brings into balance."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("allocatable/"), Row("requested/"))

    def __init__(self, args: Mapping[str, Any]) -> None:
        """Take kube-scheduler's NodeResourcesBalancedAllocationArgs, checked before."""
        self._scratch = Scratch()
        self._kept = KeptShift()
        listed = args.get("resources") or [{"name": CPU}, {"name": MEMORY}]
        self._resources = tuple(str(resource["name"]) for resource in listed)
        self._has_scalars = any(is_scalar(name) for name in self._resources)

    def pre_score(self, pod: PodView, rows: RowsView) -> BalanceTerm | Skip:
        """Take what the pod requests; one that requests nothing is left out."""
        requests = pod.requests
        amounts = tuple([requests.amount(name) for name in self._resources])
        if not any(amounts):
            return SKIP
        if not self._has_scalars:
            return BalanceTerm(self._resources, PerResource(amounts))
        # An extended resource that the pod does not ask for is not looked at.
        requested = zip(self._resources, amounts, strict=True)
        counted = {n: amount for n, amount in requested if amount or not is_scalar(n)}
        return BalanceTerm(tuple(counted), PerResource(tuple(counted.values())))

    def score(self, term: BalanceTerm, rows: RowsView) -> Scores:
        """Compare the balance with the pod to the one without it."""
        block = rows.block(OFFERED_AND_TAKEN, term.resources)
        added = term.added.like(block)
        if (
            len(term.resources) == 2
            and block.dtype.kind == "f"
            and rows.is_everywhere(term.resources)
        ):
            return self._score_of_two(block, added)
        offered, taken = block
        counts = offered > 0
        offered = np.maximum(offered, 1)
        without = _deviation(np.minimum(taken / offered, 1.0), counts)
        with_pod = _deviation(np.minimum((taken + added) / offered, 1.0), counts)
        gained = np.trunc(_balance(2 * with_pod)) - np.trunc(_balance(2 * without))
        # Cut off, and nothing here is negative.
        scores: Scores = ((gained + _SHIFT) * 0.5).astype(np.int64)
        return scores

    def _score_of_two(self, block: Block, added: Block) -> Scores:
        """Return the scores where every row has both resources, in floats that are exact."""
        offered, taken = block[0], block[1]
        if offered.shape[1] < _MANY:
            # [resource][with, without][row]
            shares = np.empty((2, 2, offered.shape[1]))
            np.add(taken, added, out=shares[:, 0])
            shares[:, 1] = taken
            both = np.empty((2, offered.shape[1]), dtype=np.int32)
            with_pod, without = _balance_of_two(shares, offered[:, np.newaxis], out=both)
            shift = np.subtract(_SHIFT, without, out=without)
        else:
            shift = self._kept.shift(block)
            shares = np.add(taken, added, out=self._scratch.room(FLOATS, *offered.shape))
            short = self._scratch.room(SHORT, 1, offered.shape[1])[0]
            with_pod = _balance_of_two(shares, offered, out=short)
        twice = np.add(with_pod, shift, out=with_pod)
        twice >>= 1
        scores: Scores = twice.astype(np.int64)
        return scores


class KeptShift:
    """150 - the balance of nodes as they are, kept from one pod to the next.

    Kept together with the amounts it was worked out from, place by place, and right for every place
    that has the same ones now, whichever node that is: nobody has to say what has changed.
    """

    # If more than one in so many has changed, everything is worked out anew.
    _FEW: Final = 100

    def __init__(self) -> None:
        # As `RowsView.block` shows them.
        self._block: Block = np.empty((2, 2, 0))
        self._shift: _Percents = np.empty(0, dtype=np.int32)
        # Where they differ from what is shown now. The same memory twice: numpy fills it, and
        # Python finds the few ones in it faster.
        self._found = bytearray()
        self._differs: Mask = np.empty((2, 2, 0), dtype=np.bool_)

    def shift(self, block: Block) -> _Percents:
        """Return it for each place of a block of two resources. Do not write to it."""
        size = block.shape[2]
        if size != self._block.shape[2]:
            self._found = bytearray(block.size)
            self._differs = np.frombuffer(self._found, dtype=np.bool_).reshape(block.shape)
            self._block = aligned(block.size).reshape(block.shape)
            # What no node has: whatever happens, nothing is kept yet.
            self._block.fill(-1.0)
            return self._work_out(block)
        np.not_equal(block, self._block, out=self._differs)
        # Several amounts of a place may differ.
        done: dict[int, None] = {}
        at = self._found.find(1)
        while at >= 0:
            place = at % size
            if place not in done:
                done[place] = None
                if len(done) > size // self._FEW:
                    return self._work_out(block)
                now = block[:, :, place]
                self._shift[place] = _SHIFT - _balance_at(*now.tolist())
                self._block[:, :, place] = now
            at = self._found.find(1, at + 1)
        return self._shift

    def _work_out(self, block: Block) -> _Percents:
        without = np.empty(block.shape[2], dtype=np.int32)
        _balance_of_two(block[1].copy(), block[0], out=without)
        self._shift = np.subtract(_SHIFT, without, out=without)
        np.copyto(self._block, block)
        return self._shift


# From so many rows on, looking for those that have changed is cheaper than working all out.
_MANY: Final = 1000
# 50 + (50 + gained) / 2, rounded down, is (150 + gained) / 2, rounded down.
_SHIFT: Final = MAX_SCORE + MAX_SCORE // 2
# (2 - twice the deviation) * 50 is (1 - deviation) * 100: factors of two change no digit.
_HALF: Final = MAX_SCORE / 2


def _balance_of_two(taken: _Shares, offered: _Shares, *, out: _Percents) -> _Percents:
    """Write the balance of two resources, cut off, to `out`; uses up what is taken."""
    np.divide(taken, offered, out=taken)
    cap(taken, 1.0)
    # Two shares are half their difference away from their mean.
    twice = np.subtract(taken[0], taken[1], out=taken[0])
    # Half as long numbers take half the time.
    np.copyto(out, _balance(np.abs(twice, out=twice)), casting="unsafe")
    return out


def _balance_at(offered: list[float], taken: list[float]) -> int:
    """Return the same of one place."""
    first, second = taken[0] / offered[0], taken[1] / offered[1]
    return int((2.0 - abs(min(first, 1.0) - min(second, 1.0))) * _HALF)


def _balance(twice: _Shares) -> _Shares:
    """Make (1 - standard deviation) * 100 of twice the deviation, in place."""
    np.subtract(2.0, twice, out=twice)
    return np.multiply(twice, _HALF, out=twice)


def _deviation(shares: _Shares, counts: Mask) -> _Shares:
    """Return the deviation where not every row has the same two resources.

    Go adds in the order of the resources, so the operations are the same ones in the same order.
    """
    number = counts.sum(axis=0)
    total = np.zeros(shares.shape[1])
    for share, counted in zip(shares, counts, strict=True):
        total = total + np.where(counted, share, 0.0)
    mean = total / np.maximum(number, 1)
    squares = np.zeros(shares.shape[1])
    for share, counted in zip(shares, counts, strict=True):
        squares = squares + np.where(counted, (share - mean) * (share - mean), 0.0)
    several = np.sqrt(squares / np.maximum(number, 1))
    most = np.where(counts, shares, 0.0).max(axis=0)
    least = np.where(counts, shares, 1.0).min(axis=0)
    return np.where(number > 2, several, np.where(number == 2, (most - least) / 2, 0.0))
