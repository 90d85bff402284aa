"""NodeResourcesBalancedAllocation: rather a node whose resources end up evenly used.

Score. Assumptions: what counts is what pods request, without defaults; a pod that requests none
of the resources has no say. Formula: with b(x) = (1 - standard deviation of the used shares) * 100
rounded down, shares capped at 1, the score is 50 + (50 + b(with the pod) - b(without)) / 2: around
75 where the pod changes little, more where it evens things out. Ties are left to the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.resources import CPU, MEMORY, is_scalar
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import MAX_SCORE, SKIP, Skip
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Mask, RowsView, Scores
from k8s_scheduler.core.plugins.scoring import Addends, Scratch
from k8s_scheduler.core.state.amounts import OFFERED_AND_TAKEN

_Shares = npt.NDArray[np.float64]
_FLOATS: _Shares = np.empty(0)


@dataclass(frozen=True, slots=True)
class BalanceTerm:
    """What the pod requests of the resources that are to be in balance."""

    resources: tuple[str, ...]
    # In two cases: without the pod, and with it.
    added: Addends


class NodeResourcesBalancedAllocation:
    """Prefers nodes that the pod brings into balance."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("allocatable/"), Row("requested/"))

    def __init__(self, args: Mapping[str, Any]) -> None:
        """Take kube-scheduler's NodeResourcesBalancedAllocationArgs, checked before."""
        self._scratch = Scratch()
        listed = args.get("resources") or [{"name": CPU}, {"name": MEMORY}]
        self._resources = tuple(str(resource["name"]) for resource in listed)

    def pre_score(self, pod: PodView, rows: RowsView) -> BalanceTerm | Skip:
        """Take what the pod requests; one that requests nothing is left out."""
        requested = {name: pod.requests.amount(name) for name in self._resources}
        if not any(requested.values()):
            return SKIP
        # An extended resource that the pod does not ask for is not looked at.
        counted = {n: amount for n, amount in requested.items() if amount or not is_scalar(n)}
        return BalanceTerm(tuple(counted), Addends.of((0, amount) for amount in counted.values()))

    def score(self, term: BalanceTerm, rows: RowsView) -> Scores:
        """Compare the balance with the pod to the one without it."""
        offered, taken = rows.block(OFFERED_AND_TAKEN, term.resources)
        counts = None
        if not rows.is_everywhere(term.resources):
            counts = offered > 0
            offered = np.maximum(offered, 1)
        # [resource][without, with][row]
        shares = self._scratch.like(_FLOATS, len(taken), 2, len(rows))
        term.added.added_to(taken[:, np.newaxis], shares)
        np.divide(shares, offered[:, np.newaxis], out=shares)
        np.minimum(shares, 1.0, out=shares)
        without, with_pod = _balance(shares, counts)
        gained = np.subtract(with_pod, without, out=with_pod)
        gained += _SHIFT
        gained *= 0.5
        # Cut off, and nothing here is negative.
        scores: Scores = gained.astype(np.int64)
        return scores


# 50 + (50 + gained) / 2, rounded down, is (150 + gained) / 2, rounded down.
_SHIFT = MAX_SCORE + MAX_SCORE // 2


def _balance(shares: _Shares, counts: Mask | None) -> _Shares:
    """Return (1 - standard deviation) * 100 of the resources that count on each row, cut off.

    Uses up the shares. Computed as (2 - twice the deviation) * 50: factors of two change no digit
    of a float.
    """
    if counts is None and len(shares) == 2:
        twice: _Shares = np.subtract(shares[0], shares[1], out=shares[0])
        np.abs(twice, out=twice)
    else:
        if counts is None:
            counts = np.ones((len(shares), shares.shape[2]), dtype=np.bool_)
        twice = np.stack([_deviation(shares[:, case], counts) for case in range(2)])
        twice *= 2
    np.subtract(2.0, twice, out=twice)
    twice *= MAX_SCORE / 2
    return np.trunc(twice, out=twice)


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
