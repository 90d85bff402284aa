"""NodeResourcesBalancedAllocation: rather a node whose resources end up evenly used.

Score. Assumptions: what counts is what pods request, without defaults; a pod that requests none
of the resources has no say. Formula: with b(x) = (1 - standard deviation of the used shares) * 100
rounded down, shares capped at 1, the score is 50 + (50 + b(with the pod) - b(without)) / 2: around
75 where the pod changes little, more where it evens things out. Ties are left to the engine.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.resources import CPU, MEMORY, is_scalar
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import MAX_SCORE, SKIP, Skip
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Mask, RowsView, Scores

BalanceTerm = tuple[tuple[str, int], ...]
_Shares = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocation:
    """Prefers nodes that the pod brings into balance."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("allocatable/"), Row("requested/"))

    def __init__(self, args: Mapping[str, Any]) -> None:
        """Take kube-scheduler's NodeResourcesBalancedAllocationArgs, checked before."""
        listed = args.get("resources") or [{"name": CPU}, {"name": MEMORY}]
        self._resources = tuple(str(resource["name"]) for resource in listed)

    def pre_score(self, pod: PodView, rows: RowsView) -> BalanceTerm | Skip:
        """Take what the pod requests; one that requests nothing is left out."""
        amounts = tuple((name, pod.requests.amount(name)) for name in self._resources)
        return amounts if any(amount for _, amount in amounts) else SKIP

    def score(self, term: BalanceTerm, rows: RowsView) -> Scores:
        """Compare the balance with the pod to the one without it."""
        before: list[_Shares] = []
        after: list[_Shares] = []
        counts: list[Mask] = []
        for name, amount in term:
            allocatable = rows.column(f"allocatable/{name}")
            requested = rows.column(f"requested/{name}")
            if not amount and is_scalar(name):
                # An extended resource that the pod does not ask for is not looked at.
                continue
            counted = allocatable > 0
            # As floats once: they hold every amount below 2^53 exactly.
            offered = np.maximum(allocatable, 1).astype(np.float64)
            used = requested.astype(np.float64)
            before.append(_capped(used / offered))
            used += amount
            after.append(_capped(used / offered))
            counts.append(counted)
        gained = _balance(after, counts) - _balance(before, counts)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + gained) // 2


def _balance(shares: list[_Shares], counts: list[Mask]) -> Scores:
    """Return (1 - standard deviation) * 100, over the resources that count on each row."""
    if len(shares) == 2 and all(counted.all() for counted in counts):
        deviation = np.abs(shares[0] - shares[1])
        deviation /= 2
    else:
        deviation = _deviation(np.array(shares), np.array(counts))
    np.subtract(1, deviation, out=deviation)
    deviation *= MAX_SCORE
    return deviation.astype(np.int64)


def _capped(shares: _Shares) -> _Shares:
    return np.minimum(shares, 1.0, out=shares)


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
