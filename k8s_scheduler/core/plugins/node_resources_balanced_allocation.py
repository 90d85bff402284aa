"""NodeResourcesBalancedAllocation: rather a node whose resources end up evenly used.

Score. Assumptions: what counts is what pods request, without defaults; a pod that requests none
of the resources has no say. Formula: with b(x) = (1 - standard deviation of the used shares) * 100
rounded down, shares capped at 1, the score is 50 + (50 + b(with the pod) - b(without)) / 2: around
75 where the pod changes little, more where it evens things out. Ties are left to the engine.
"""

from dataclasses import dataclass
from operator import le
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.resources import is_scalar
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import MAX_SCORE, SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView, Scores
from k8s_scheduler.core.framework.views.values import OFFERED_AND_TAKEN, Block, RowFormula
from k8s_scheduler.core.plugins.resource_arguments import NodeResourcesBalancedAllocationArgs
from k8s_scheduler.core.plugins.scoring import PerResource

_Shares = npt.NDArray[np.float64]
_Percents = npt.NDArray[np.int32]


# Made for every pod; a frozen one would take three times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class BalanceTerm:
    """What the pod requests of the resources that are to be in balance."""

    resources: tuple[str, ...]
    added: PerResource


class NodeResourcesBalancedAllocation:
    """Prefers nodes whose resources end up evenly used."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    arguments: ClassVar[type[PluginArgs]] = NodeResourcesBalancedAllocationArgs
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("allocatable/"), Row("requested/"))

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        """Take the resources that are to be in balance."""
        self._resources = tuple(resource.name for resource in args.resources)
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
        if len(term.resources) == 2 and rows.is_everywhere(term.resources):
            kept = rows.kept(SHIFT, term.resources)
            if kept is not None:
                return _score_of_kept(rows.block(OFFERED_AND_TAKEN, term.resources), term, *kept)
        block = rows.block(OFFERED_AND_TAKEN, term.resources)
        added = term.added.like(block)
        offered, taken = block
        counts = offered > 0
        offered = np.maximum(offered, 1)
        without = _deviation(np.minimum(taken / offered, 1.0), counts)
        with_pod = _deviation(np.minimum((taken + added) / offered, 1.0), counts)
        gained = np.trunc(_balance(2 * with_pod)) - np.trunc(_balance(2 * without))
        # Cut off, and nothing here is negative.
        scores: Scores = ((gained + _SHIFT) * 0.5).astype(np.int64)
        return scores


# 50 + (50 + gained) / 2, rounded down, is (150 + gained) / 2, rounded down.
_SHIFT: Final = MAX_SCORE + MAX_SCORE // 2
# (2 - twice the deviation) * 50 is (1 - deviation) * 100: factors of two change no digit.
_HALF: Final = MAX_SCORE / 2


def _score_of_kept(
    block: Block, term: BalanceTerm, shift: Block, least_free: list[float]
) -> Scores:
    """Return the scores where every row has both resources, given the rows without the pod."""
    offered, taken = block[0], block[1]
    # Where the pod fits on every row, no share is more than 1.
    fits = all(map(le, term.added.numbers, least_free))
    twice = _balance_of_two(taken + term.added.like(block), offered, fits=fits)
    np.add(twice, shift[0], out=twice)
    np.right_shift(twice, 1, out=twice)
    scores: Scores = twice.astype(np.int64)
    return scores


def _balance_of_two(taken: _Shares, offered: _Shares, *, fits: bool = False) -> _Percents:
    """Return the balance of two resources, cut off; uses up what is taken.

    `fits` says that no more is taken than there is.
    """
    np.divide(taken, offered, out=taken)
    if not fits:
        np.minimum(taken, 1.0, out=taken)
    # Two shares are half their difference away from their mean.
    twice = np.subtract(taken[0], taken[1], out=taken[0])
    # Half as long numbers take half the time.
    return _balance(np.abs(twice, out=twice)).astype(np.int32)


def _shift_of_all(offered: Block, taken: Block) -> Block:
    return _SHIFT - _balance_of_two(taken.copy(), offered)[np.newaxis]


def _shift_of_one(offered: list[float], taken: list[float]) -> tuple[int]:
    first, second = taken[0] / offered[0], taken[1] / offered[1]
    balance = (2.0 - abs(min(first, 1.0) - min(second, 1.0))) * _HALF
    return (_SHIFT - int(balance),)


# 150 - the balance of nodes as they are.
SHIFT: Final = RowFormula(OFFERED_AND_TAKEN, _shift_of_all, _shift_of_one)


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
