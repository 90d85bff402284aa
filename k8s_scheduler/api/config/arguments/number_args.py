"""The arguments that are a few numbers each: weights, shares and times.

InterPodAffinity, VolumeBinding, DefaultPreemption, DynamicResources.
"""

from typing import Annotated, Final

import msgspec

from k8s_scheduler.api.config.arguments.base import PluginArguments
from k8s_scheduler.api.config.arguments.resource_args import UtilizationShapePoint, shape_rules
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, invalid
from k8s_scheduler.api.config.rules import DURATION, FORMAT, RULE, Int32, Int64, Range
from k8s_scheduler.api.config.struct import Configured

_PERCENTAGE: Final = Range(0, 100, "not in valid range [0, 100]")
_COUNT: Final = Range(0, None, "not in valid range [0, inf)")
_BIND_TIMEOUT: Final = Range(0, None, "invalid BindTimeoutSeconds, should not be a negative value")
_FILTER_TIMEOUT: Final = Range(0, None, "must be zero or positive")
_BINDING_TIMEOUT: Final = Range(1, None, "must be at least 1 second")


class InterPodAffinityArgs(Configured, frozen=True):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[Int32, msgspec.Meta(extra={RULE: _PERCENTAGE})] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class VolumeBindingArgs(Configured, frozen=True):
    """Arguments of VolumeBinding. No shape: 10 for an empty volume, 0 for a full one."""

    bind_timeout_seconds: Annotated[Int64, msgspec.Meta(extra={RULE: _BIND_TIMEOUT})] = 600
    shape: tuple[UtilizationShapePoint, ...] = ()


class DefaultPreemptionArgs(Configured, frozen=True):
    """Arguments of DefaultPreemption: on how many nodes victims are looked for."""

    min_candidate_nodes_percentage: Annotated[Int32, msgspec.Meta(extra={RULE: _PERCENTAGE})] = 10
    min_candidate_nodes_absolute: Annotated[Int32, msgspec.Meta(extra={RULE: _COUNT})] = 100


class DynamicResourcesArgs(Configured, frozen=True):
    """Arguments of DynamicResources; a filter timeout of 0 is none."""

    filter_timeout: Annotated[
        float, msgspec.Meta(extra={FORMAT: DURATION, RULE: _FILTER_TIMEOUT})
    ] = 10.0
    binding_timeout: Annotated[
        float, msgspec.Meta(extra={FORMAT: DURATION, RULE: _BINDING_TIMEOUT})
    ] = 600.0


def _completed_volumes(args: VolumeBindingArgs) -> VolumeBindingArgs:
    shape = args.shape or (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
    return msgspec.structs.replace(args, shape=shape)


def _volume_rules(args: VolumeBindingArgs, path: FieldPath) -> list[FieldError]:
    return shape_rules(args.shape, (*path, "shape"))


def _preemption_rules(args: DefaultPreemptionArgs, path: FieldPath) -> list[FieldError]:
    if args.min_candidate_nodes_percentage or args.min_candidate_nodes_absolute:
        return []
    both = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")
    return [
        invalid((*path, name), 0, f"cannot be zero at the same time as {other}")
        for name, other in (both, both[::-1])
    ]


INTER_POD_AFFINITY: Final = PluginArguments(InterPodAffinityArgs)
VOLUME_BINDING: Final = PluginArguments(VolumeBindingArgs, _completed_volumes, _volume_rules)
DEFAULT_PREEMPTION: Final = PluginArguments(DefaultPreemptionArgs, broken_rules=_preemption_rules)
DYNAMIC_RESOURCES: Final = PluginArguments(DynamicResourcesArgs)
