"""The arguments of built-in plugins: their types and their checks.

One section per plugin: the type as kube-scheduler has it, then `validate_…`, which returns every
error with its full path. The plugin itself gets the plain mapping that passed, and applies the
defaults. A check never looks at another plugin's arguments.
"""

from typing import Any, Final

from k8s_scheduler.api.config import Configured, Int32, Int64
from k8s_scheduler.api.config_decode import decode
from k8s_scheduler.api.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_covered,
    required,
    unsupported,
)
from k8s_scheduler.api.names import QUALIFIED_NAME_RULE, is_qualified_name

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SCORING_STRATEGIES: Final = frozenset(
    {LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO}
)


class ResourceSpec(Configured, frozen=True):
    """A resource that counts for a score; weight 0 stands for the default, 1."""

    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Configured, frozen=True):
    """A point of the function from utilization (percent) to score (0 to 10)."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(Configured, frozen=True):
    """The function that RequestedToCapacityRatio scores by."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Configured, frozen=True):
    """How NodeResourcesFit prefers nodes. No resources: cpu and memory, weight 1 each."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(Configured, frozen=True):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None


def validate_node_resources_fit(args: dict[str, Any], path: FieldPath) -> list[FieldError]:
    """Return what is wrong with the arguments of NodeResourcesFit."""
    fit, wrong = decode(NodeResourcesFitArgs, args, path)
    errors: list[FieldError] = []
    for i, resource in enumerate(fit.ignored_resources):
        if not is_qualified_name(resource):
            at = (*path, "ignoredResources", i)
            errors.append(invalid(at, resource, QUALIFIED_NAME_RULE))
    for i, group in enumerate(fit.ignored_resource_groups):
        at = (*path, "ignoredResourceGroups", i)
        if "/" in group:
            errors.append(invalid(at, group, "resource group name can't contain '/'"))
        elif not is_qualified_name(group):
            errors.append(invalid(at, group, QUALIFIED_NAME_RULE))
    if fit.scoring_strategy is not None:
        errors += _scoring_strategy(fit.scoring_strategy, (*path, "scoringStrategy"))
    return wrong + not_covered(errors, wrong)


def _scoring_strategy(strategy: ScoringStrategy, path: FieldPath) -> list[FieldError]:
    errors = []
    if strategy.type not in SCORING_STRATEGIES:
        errors.append(unsupported((*path, "type"), strategy.type, SCORING_STRATEGIES))
    for i, resource in enumerate(strategy.resources):
        at = (*path, "resources", i)
        if not resource.name:
            errors.append(required((*at, "name")))
        if not 0 <= resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.append(invalid((*at, "weight"), resource.weight, detail))
    at = (*path, "requestedToCapacityRatio")
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            detail = "must be specified when type is RequestedToCapacityRatio"
            errors.append(required(at, detail))
        else:
            errors += validate_shape(ratio.shape, (*at, "shape"))
    elif ratio is not None:
        errors.append(forbidden(at, "must be nil when type is not RequestedToCapacityRatio"))
    return errors


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: FieldPath) -> list[FieldError]:
    """Return what is wrong with a function from utilization to score."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            detail = "values must be sorted in increasing order"
            errors.append(invalid((*path, i, "utilization"), shape[i].utilization, detail))
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            detail = "not in valid range [0, 100]"
            errors.append(invalid((*path, i, "utilization"), point.utilization, detail))
        if not 0 <= point.score <= 10:
            errors.append(invalid((*path, i, "score"), point.score, "not in valid range [0, 10]"))
    return errors


class NodeResourcesBalancedAllocationArgs(Configured, frozen=True):
    """Arguments of NodeResourcesBalancedAllocation. No resources: cpu and memory."""

    resources: tuple[ResourceSpec, ...] = ()


def validate_balanced_allocation(args: dict[str, Any], path: FieldPath) -> list[FieldError]:
    """Return what is wrong with the arguments of NodeResourcesBalancedAllocation."""
    balanced, wrong = decode(NodeResourcesBalancedAllocationArgs, args, path)
    errors: list[FieldError] = []
    seen: list[str] = []
    for i, resource in enumerate(balanced.resources):
        at = (*path, "resources", i)
        if not resource.name:
            errors.append(required((*at, "name")))
        elif resource.name in seen:
            first = (*path, "resources", seen.index(resource.name), "name")
            errors.append(duplicate((*at, "name"), resource.name, first=first))
        if resource.weight not in (0, 1):
            detail = f"resource weight of {resource.name} should be 1"
            errors.append(invalid((*at, "weight"), resource.weight, detail))
        seen.append(resource.name)
    return wrong + not_covered(errors, wrong)
