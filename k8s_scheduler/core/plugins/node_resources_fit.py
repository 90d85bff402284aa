"""NodeResourcesFit: a pod goes only where what it requests is free, and rather where much is.

Filter. A node is rejected if it has no pod slot left or lacks any requested resource; all
shortages are reported together. A shortage that even the empty node would have can't be resolved
by preemption. `ignoredResources` and `ignoredResourceGroups` leave extended resources out.

Score. Assumptions: the pod runs on the node, containers without requests count 100m and 200Mi.
Formula: per resource the strategy's score (LeastAllocated: the share that is left; MostAllocated:
the share that is used; RequestedToCapacityRatio: the used share through a shape), weighted mean,
in integers rounded down (the last one: to the nearest); a resource the node does not offer is left
out with its weight. Ties are left to the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.names import is_extended_resource_name
from k8s_scheduler.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_scalar,
)
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Codes, RowsView, Scores
from k8s_scheduler.core.plugins.scoring import (
    Strategy,
    broken_linear,
    least_allocated,
    most_allocated,
)

TOO_MANY_PODS = Reason(code="NodeResourcesFit/TooManyPods", text="Too many pods")
INSUFFICIENT_CPU = Reason(code="NodeResourcesFit/InsufficientCpu", text="Insufficient cpu")
INSUFFICIENT_MEMORY = Reason(code="NodeResourcesFit/InsufficientMemory", text="Insufficient memory")
INSUFFICIENT_EPHEMERAL_STORAGE = Reason(
    code="NodeResourcesFit/InsufficientEphemeralStorage", text="Insufficient ephemeral-storage"
)
_NATIVE = {
    CPU: INSUFFICIENT_CPU,
    MEMORY: INSUFFICIENT_MEMORY,
    EPHEMERAL_STORAGE: INSUFFICIENT_EPHEMERAL_STORAGE,
}

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
# Configuration gives scores of 0..10 at the points of a shape.
_SHAPE_SCALE = 10


def insufficient(resource: str) -> Reason:
    """Return the reason for a lack of any resource, extended ones included."""
    return _NATIVE.get(resource) or Reason(
        code=f"NodeResourcesFit/Insufficient:{resource}", text=f"Insufficient {resource}"
    )


@dataclass(frozen=True, slots=True)
class FitTerm:
    """What has to be free."""

    amounts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """What the pod adds to each scored resource; those it can't use are left out."""

    resources: tuple[tuple[str, int, int], ...]  # (name, weight, amount)


class NodeResourcesFit:
    """Rejects full nodes, and prefers empty or full ones as the strategy says."""

    name: ClassVar[str] = "NodeResourcesFit"
    reasons: ClassVar[tuple[Reason, ...]] = (TOO_MANY_PODS, *_NATIVE.values())
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("allocatable/"),
        Row("requested/"),
        Row("non_zero/"),
        Row("pod_count"),
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        """Take kube-scheduler's NodeResourcesFitArgs, checked before."""
        self._ignored = frozenset(args.get("ignoredResources") or ())
        self._ignored_groups = frozenset(args.get("ignoredResourceGroups") or ())
        strategy = args.get("scoringStrategy") or {}
        scored = strategy.get("resources") or [{"name": CPU}, {"name": MEMORY}]
        self._scored = tuple((r["name"], int(r.get("weight") or 1)) for r in scored)
        kind = strategy.get("type") or LEAST_ALLOCATED
        # This one leaves resources out that score nothing, and rounds where the others cut.
        self._rounds = kind == REQUESTED_TO_CAPACITY_RATIO
        self._strategy = _strategy(kind, strategy)

    # Filter

    def prepare(self, pod: PodView, rows: RowsView) -> FitTerm:
        """Take what counts of the pod's requests. Never skips: every pod needs a pod slot."""
        return FitTerm(
            tuple((name, value) for name, value in pod.requests.amounts if not self._ignores(name))
        )

    def filter(self, term: FitTerm, rows: RowsView) -> Codes:
        """Reject by everything that is short."""
        short = [rows.column("pod_count") + 1 > rows.column(f"allocatable/{PODS}")]
        reasons = [TOO_MANY_PODS]
        hopeless = np.zeros(len(rows), dtype=np.bool_)
        for resource, amount in term.amounts:
            allocatable = rows.column(f"allocatable/{resource}")
            short.append(amount > allocatable - rows.column(f"requested/{resource}"))
            hopeless |= amount > allocatable
            reasons.append(insufficient(resource))
        return _codes(rows, short, hopeless, reasons)

    def _ignores(self, resource: str) -> bool:
        return is_extended_resource_name(resource) and (
            resource in self._ignored or resource.partition("/")[0] in self._ignored_groups
        )

    # Score

    def pre_score(self, pod: PodView, rows: RowsView) -> ScoreTerm:
        """Take what the pod adds; an extended resource it does not ask for is not scored.

        As upstream, requests of the pod as a whole do not count here, though they do in `filter`.
        """
        requests = pod.container_requests
        non_zero = {
            CPU: requests.non_zero_milli_cpu,
            MEMORY: requests.non_zero_memory_bytes,
        }
        resources = []
        for name, weight in self._scored:
            amount = non_zero.get(name, requests.amount(name))
            if amount or not is_scalar(name):
                resources.append((name, weight, amount))
        return ScoreTerm(tuple(resources))

    def score(self, term: ScoreTerm, rows: RowsView) -> Scores:
        """Return the weighted mean of the strategy's score of each resource."""
        total: Scores | int = 0
        # A number as long as every resource counts on every row.
        weights: Scores | int = 0
        for name, weight, amount in term.resources:
            allocatable = rows.column(f"allocatable/{name}")
            family = "non_zero" if name in (CPU, MEMORY) else "requested"
            scores = self._strategy(rows.column(f"{family}/{name}") + amount, allocatable)
            counts = allocatable > 0
            if self._rounds:
                counts &= scores > 0
            if counts.all():
                total = total + (scores if weight == 1 else scores * weight)
                weights = weights + weight
            else:
                total = total + np.where(counts, scores * weight, 0)
                weights = weights + np.where(counts, weight, 0)
        if isinstance(total, int):
            return np.zeros(len(rows), dtype=np.int64)
        if not self._rounds:
            # Sums of a few hundreds: the quotient of floats, cut off, is that of integers.
            return (total / np.maximum(weights, 1)).astype(np.int64)
        # Halves away from zero, and nothing here is negative.
        return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)


def _strategy(kind: str, strategy: Mapping[str, Any]) -> Strategy:
    if kind == MOST_ALLOCATED:
        return most_allocated
    if kind == REQUESTED_TO_CAPACITY_RATIO:
        shape = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
        return broken_linear(
            [
                (int(point.get("utilization") or 0), _SHAPE_SCALE * int(point.get("score") or 0))
                for point in shape
            ]
        )
    return least_allocated


def _codes(
    rows: RowsView,
    short: list[npt.NDArray[np.bool_]],
    hopeless: npt.NDArray[np.bool_],
    reasons: list[Reason],
) -> Codes:
    """Fold one mask per reason into one code per row; the sets of shortages are few."""
    codes = rows.passed()
    failing = np.flatnonzero(np.logical_or.reduce(short))
    if not len(failing):
        return codes
    # One byte string per row: a pod may ask for any number of resources.
    patterns = np.packbits(np.stack([*short, hopeless])[:, failing], axis=0)
    packed = np.ascontiguousarray(patterns.T).view(f"V{patterns.shape[0]}").ravel()
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    for number, position in enumerate(first.tolist()):
        row = failing[position]
        named = tuple(reason for mask, reason in zip(short, reasons, strict=True) if mask[row])
        code = rows.code(named, resolvable=not hopeless[row])
        codes[failing[which == number]] = code
    return codes
