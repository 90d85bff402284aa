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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.names import is_extended_resource_name
from k8s_scheduler.api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Requests,
    is_scalar,
)
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.dry_run_plugins import LARGEST_EXACT
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.framework.views.values import (
    FEW_RESOURCES,
    OFFERED_AND_TAKEN,
    TAKEN_IN_SCORES,
    Block,
)
from k8s_scheduler.core.plugins.resource_arguments import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ScoringStrategy,
    along_shape,
)
from k8s_scheduler.core.plugins.scoring import (
    PerResource,
    Strategy,
    divided,
    least_allocated,
    most_allocated,
    weighted_mean,
)
from k8s_scheduler.core.plugins.shortages import ManyShortages, codes_of_few

TOO_MANY_PODS = Reason(code="NodeResourcesFit/TooManyPods", text="Too many pods")
INSUFFICIENT_CPU = Reason(code="NodeResourcesFit/InsufficientCpu", text="Insufficient cpu")
INSUFFICIENT_MEMORY = Reason(code="NodeResourcesFit/InsufficientMemory", text="Insufficient memory")
INSUFFICIENT_EPHEMERAL_STORAGE = Reason(
    code="NodeResourcesFit/InsufficientEphemeralStorage", text="Insufficient ephemeral-storage"
)
_REASONS = {
    PODS: TOO_MANY_PODS,
    CPU: INSUFFICIENT_CPU,
    MEMORY: INSUFFICIENT_MEMORY,
    EPHEMERAL_STORAGE: INSUFFICIENT_EPHEMERAL_STORAGE,
}


def insufficient(resource: str) -> Reason:
    """Return the reason for a lack of any resource, pod slots and extended ones included."""
    return _REASONS.get(resource) or Reason(
        code=f"NodeResourcesFit/Insufficient:{resource}", text=f"Insufficient {resource}"
    )


def insufficient_more(count: int) -> Reason:
    """Return the reason for so many resources more that lack, where there are too many to name."""
    return Reason(
        code="NodeResourcesFit/InsufficientMore", text=f"Insufficient {count} more resources"
    )


# No amount that is free is less.
_NOT_ASKED_FOR = -(2**63)
# All that every node has, in the order in which it lies there, so that nothing has to be gathered.
_A_POD_SLOT = dict.fromkeys(_REASONS, _NOT_ASKED_FOR) | {PODS: 1}


# Terms are made for every pod; frozen ones would take three times as long to make.


@dataclass(slots=True, unsafe_hash=True)
class FitTerm:
    """What has to be free: a pod slot, and how much of which resources."""

    resources: tuple[str, ...]
    asked: PerResource
    # Where they are many.
    _shortages: ManyShortages | None = field(default=None, compare=False, repr=False)

    def shortages(self) -> ManyShortages:
        """Return what finds out what lacks of many resources."""
        if self._shortages is None:
            asked = dict(zip(self.resources, self.asked.numbers, strict=True))
            self._shortages = ManyShortages(asked, reason=insufficient, more=insufficient_more)
        return self._shortages

    @staticmethod
    def of(requested: Iterable[tuple[str, int]]) -> "FitTerm":
        """Return the term of a pod that requests so much."""
        asked = _A_POD_SLOT | dict(requested)
        while next(reversed(asked.values())) == _NOT_ASKED_FOR:
            asked.popitem()
        return FitTerm(tuple(asked), PerResource(tuple(asked.values())))


@dataclass(slots=True, unsafe_hash=True)
class ScoreTerm:
    """What the pod adds to each scored resource; those it can't use are left out."""

    resources: tuple[str, ...]
    weights: tuple[int, ...]
    added: PerResource


class NodeResourcesFit:
    """Rejects nodes that lack a pod slot or any requested resource, and says all that is lacking.

    Prefers empty nodes, full ones or a given shape, as `scoringStrategy` says.
    """

    name: ClassVar[str] = "NodeResourcesFit"
    arguments: ClassVar[type[PluginArgs]] = NodeResourcesFitArgs
    reasons: ClassVar[tuple[Reason, ...]] = tuple(_REASONS.values())
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("allocatable/"),
        Row("requested/"),
        Row("non_zero/"),
        Row("pod_count"),
    )

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        """Take what is ignored, and how nodes are scored."""
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        strategy = args.strategy
        self._scored = tuple(resource.name for resource in strategy.resources)
        self._weights = tuple(resource.weight for resource in strategy.resources)
        self._has_scalars = any(is_scalar(name) for name in self._scored)
        # This one leaves resources out that score nothing, and rounds where the others cut.
        self._rounds = strategy.type == REQUESTED_TO_CAPACITY_RATIO
        self._strategy = _strategy(strategy)

    # Filter

    def prepare(self, pod: PodView, rows: RowsView) -> FitTerm:
        """Take what counts of the pod's requests. Never skips: every pod needs a pod slot."""
        requested = pod.requests.amounts
        if len(requested) > FEW_RESOURCES:
            # It takes long to make, and is made again whenever something may have helped the pod.
            return pod.remembered(self, lambda: self._term(requested))
        return self._term(requested)

    def _term(self, requested: tuple[tuple[str, int], ...]) -> FitTerm:
        if self._ignored or self._ignored_groups:
            return FitTerm.of(asked for asked in requested if not self._ignores(asked[0]))
        return FitTerm.of(requested)

    def filter(self, term: FitTerm, rows: RowsView) -> Codes:
        if len(term.resources) > FEW_RESOURCES:
            return term.shortages().codes(rows)
        block = rows.block(OFFERED_AND_TAKEN, term.resources)
        offered, taken = block[0], block[1]
        if offered.shape[1] == 1 and _has_room(term.asked.numbers, block):
            return rows.passed()
        numbers = term.asked.like(block)
        short = numbers > offered - taken
        if not np.count_nonzero(short):
            return rows.passed()
        hopeless = np.logical_or.reduce(np.greater(numbers[1:], offered[1:]))
        reasons = [insufficient(resource) for resource in term.resources]
        return codes_of_few(rows, short, hopeless, reasons)

    def room(self, term: FitTerm, rows: RowsView) -> Sequence[Mapping[str, int]] | None:
        """Return what is left of each resource that the pod asks for, once it is there."""
        if len(term.resources) > FEW_RESOURCES:
            return None
        block = rows.block(OFFERED_AND_TAKEN, term.resources, exact=True)
        if max(abs(int(block.max())), abs(int(block.min()))) > LARGEST_EXACT:
            # Sums wrap around.
            return None
        free = (block[0] - block[1]).T.tolist()
        asked = [
            (place, resource, number)
            for place, (resource, number) in enumerate(
                zip(term.resources, term.asked.numbers, strict=True)
            )
            if number != _NOT_ASKED_FOR
        ]
        return [
            {resource: here[place] - number for place, resource, number in asked} for here in free
        ]

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
        amounts = tuple([_amount_in_scores(requests, name) for name in self._scored])
        if not self._has_scalars:
            return ScoreTerm(self._scored, self._weights, PerResource(amounts))
        counted = [
            (name, weight, amount)
            for name, weight, amount in zip(self._scored, self._weights, amounts, strict=True)
            if amount or not is_scalar(name)
        ]
        return ScoreTerm(
            resources=tuple(name for name, _, _ in counted),
            weights=tuple(weight for _, weight, _ in counted),
            added=PerResource(tuple(amount for _, _, amount in counted)),
        )

    def score(self, term: ScoreTerm, rows: RowsView) -> Scores:
        """Return the weighted mean of the strategy's score of each resource."""
        if not term.resources:
            return np.zeros(len(rows), dtype=np.int64)
        block = rows.block(TAKEN_IN_SCORES, term.resources, exact=self._rounds)
        before, offered = block[0], block[1]
        taken = before + term.added.like(block)
        if not self._rounds and rows.is_everywhere(term.resources):
            return weighted_mean(self._strategy(taken, offered), term.weights)
        scores = self._strategy(taken, np.maximum(offered, 1))
        if scores.dtype.kind == "f":
            np.trunc(scores, out=scores)
        counts = offered > 0
        if self._rounds:
            counts &= scores > 0
        counted = np.where(counts, np.array(term.weights)[:, np.newaxis], 0)
        total = (scores * counted).sum(axis=0)
        weights = np.maximum(counted.sum(axis=0), 1)
        if self._rounds:
            # Half a one more: halves are rounded away from zero, and nothing here is negative.
            mean = total / weights + 0.5
        elif total.dtype.kind == "f":
            mean = total / weights
        else:
            mean = divided(total, weights)
        found: Scores = mean.astype(np.int64)
        return found


def _amount_in_scores(requests: Requests, resource: str) -> int:
    """Return what a pod adds to a resource, with defaults where there are any."""
    if resource == CPU:
        return requests.non_zero_milli_cpu
    if resource == MEMORY:
        return requests.non_zero_memory_bytes
    return requests.amount(resource)


def _strategy(strategy: ScoringStrategy) -> Strategy:
    if strategy.requested_to_capacity_ratio is not None:
        return along_shape(strategy.requested_to_capacity_ratio.shape)
    return most_allocated if strategy.type == MOST_ALLOCATED else least_allocated


def _has_room(asked: tuple[int, ...], block: Block) -> bool:
    """Return whether a single row has room for all that is asked for; faster than with arrays."""
    offered, taken = block.tolist()
    for number, (most,), (less,) in zip(asked, offered, taken, strict=True):
        if number > most - less:
            return False
    return True
