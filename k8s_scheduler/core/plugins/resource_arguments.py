"""The arguments of NodeResourcesFit and NodeResourcesBalancedAllocation.

With them the function from utilization to score, which VolumeBinding takes as well.
"""

from typing import Annotated, Final, Self

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from k8s_scheduler.api.config.rules import RULE, Choice, Configured, Int32, Int64, Range
from k8s_scheduler.api.names import QUALIFIED_NAME_RULE, is_qualified_name
from k8s_scheduler.core.framework.plugin import MAX_SCORE
from k8s_scheduler.core.plugins.scoring import Strategy, broken_linear

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SCORING_STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)

_UTILIZATION: Final = Range(0, 100, "not in valid range [0, 100]")
_SHAPE_MAX: Final = 10
_SCORE: Final = Range(0, _SHAPE_MAX, "not in valid range [0, 10]")


class ResourceSpec(Configured, frozen=True):
    """A resource that counts for a score; weight 0 stands for the default, 1."""

    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Configured, frozen=True):
    """A point of the function from utilization (percent) to score (0 to 10)."""

    utilization: Annotated[Int32, msgspec.Meta(extra={RULE: _UTILIZATION})] = 0
    score: Annotated[Int32, msgspec.Meta(extra={RULE: _SCORE})] = 0


class RequestedToCapacityRatioParam(Configured, frozen=True):
    """The function that RequestedToCapacityRatio scores by."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Configured, frozen=True):
    """How NodeResourcesFit prefers nodes. No resources: cpu and memory, weight 1 each."""

    type: Annotated[str, msgspec.Meta(extra={RULE: Choice(SCORING_STRATEGIES)})] = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


_DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None

    def completed(self) -> Self:
        """Score by what is left of cpu and memory where nothing else is said."""
        strategy = self.strategy
        strategy = msgspec.structs.replace(strategy, resources=_with_weights(strategy.resources))
        return msgspec.structs.replace(self, scoring_strategy=strategy)

    @property
    def strategy(self) -> ScoringStrategy:
        """The strategy given, or the default one."""
        return self.scoring_strategy or ScoringStrategy(LEAST_ALLOCATED)

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        """Check the names of what is ignored, and the strategy."""
        errors: list[FieldError] = []
        for i, resource in enumerate(self.ignored_resources):
            if not is_qualified_name(resource):
                at = (*path, "ignoredResources", i)
                errors.append(invalid(at, resource, QUALIFIED_NAME_RULE))
        for i, group in enumerate(self.ignored_resource_groups):
            at = (*path, "ignoredResourceGroups", i)
            if "/" in group:
                errors.append(invalid(at, group, "resource group name can't contain '/'"))
            elif not is_qualified_name(group):
                errors.append(invalid(at, group, QUALIFIED_NAME_RULE))
        return errors + _scoring_strategy(self.strategy, (*path, "scoringStrategy"))


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """Arguments of NodeResourcesBalancedAllocation. No resources: cpu and memory."""

    resources: tuple[ResourceSpec, ...] = ()

    def completed(self) -> Self:
        """Balance cpu and memory where nothing else is said."""
        return msgspec.structs.replace(self, resources=_with_weights(self.resources))

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        """Check that names differ and weights are 1."""
        errors: list[FieldError] = []
        seen: list[str] = []
        for i, resource in enumerate(self.resources):
            at = (*path, "resources", i)
            if not resource.name:
                errors.append(required((*at, "name")))
            elif resource.name in seen:
                first = (*path, "resources", seen.index(resource.name), "name")
                errors.append(duplicate((*at, "name"), resource.name, first=first))
            if resource.weight != 1:
                errors.append(invalid((*at, "weight"), resource.weight, "must be 1"))
            seen.append(resource.name)
        return errors


def _with_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    if not resources:
        return _DEFAULT_RESOURCES
    return tuple(ResourceSpec(resource.name, resource.weight or 1) for resource in resources)


def _scoring_strategy(strategy: ScoringStrategy, path: FieldPath) -> list[FieldError]:
    errors = []
    if not strategy.type:
        errors.append(unsupported((*path, "type"), strategy.type, SCORING_STRATEGIES))
    for i, resource in enumerate(strategy.resources):
        at = (*path, "resources", i)
        if not resource.name:
            errors.append(required((*at, "name")))
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.append(invalid((*at, "weight"), resource.weight, detail))
    at = (*path, "requestedToCapacityRatio")
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            detail = "must be specified when type is RequestedToCapacityRatio"
            errors.append(required(at, detail))
        else:
            errors += shape_rules(ratio.shape, (*at, "shape"))
    elif ratio is not None:
        errors.append(forbidden(at, "must be nil when type is not RequestedToCapacityRatio"))
    return errors


def shape_rules(shape: tuple[UtilizationShapePoint, ...], path: FieldPath) -> list[FieldError]:
    """Return what is wrong with a function from utilization to score, its single points aside."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            detail = "values must be sorted in increasing order"
            return [invalid((*path, i, "utilization"), shape[i].utilization, detail)]
    return []


def along_shape(shape: tuple[UtilizationShapePoint, ...]) -> Strategy:
    scale = MAX_SCORE // _SHAPE_MAX
    return broken_linear([(point.utilization, point.score * scale) for point in shape])
