"""The plugins that come with the scheduler: one entry each.

Names, points, weights and the order are those of kube-scheduler's default profile (v1.37.1). The
plugins that only kube-scheduler has are known by name, so that a file that asks for one is told
`not supported yet` and not `does not exist`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from k8s_scheduler.api.config.types import PluginFacts
from k8s_scheduler.core.framework.registry import ProfilePlace, Registration, facts_of
from k8s_scheduler.core.plugins.default_binder import DefaultBinder
from k8s_scheduler.core.plugins.default_preemption import DefaultPreemption
from k8s_scheduler.core.plugins.dynamic_resources import DynamicResources
from k8s_scheduler.core.plugins.image_locality import ImageLocality
from k8s_scheduler.core.plugins.inter_pod_affinity import InterPodAffinity
from k8s_scheduler.core.plugins.node_affinity import NodeAffinityPlugin
from k8s_scheduler.core.plugins.node_declared_features import NodeDeclaredFeatures
from k8s_scheduler.core.plugins.node_name import NodeName
from k8s_scheduler.core.plugins.node_ownership import NodeOwnership
from k8s_scheduler.core.plugins.node_ports import NodePorts
from k8s_scheduler.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from k8s_scheduler.core.plugins.node_resources_fit import NodeResourcesFit
from k8s_scheduler.core.plugins.node_unschedulable import NodeUnschedulable
from k8s_scheduler.core.plugins.node_volume_limits import NodeVolumeLimits
from k8s_scheduler.core.plugins.pod_topology_spread import PodTopologySpread
from k8s_scheduler.core.plugins.priority_sort import PrioritySort
from k8s_scheduler.core.plugins.scheduling_gates import SchedulingGates
from k8s_scheduler.core.plugins.small_request_first import SmallRequestFirst
from k8s_scheduler.core.plugins.taint_toleration import TaintToleration
from k8s_scheduler.core.plugins.volume_binding import VolumeBinding
from k8s_scheduler.core.plugins.volume_restrictions import VolumeRestrictions
from k8s_scheduler.core.plugins.volume_zone import VolumeZone

# Plugins that work with what an earlier point left behind fail every pod if that did not run.
_FILTERS_BY: Final = {"filter": "preFilter"}
_SCORES_BY: Final = {"score": "preScore"}
_VOLUMES_BY: Final = dict.fromkeys(
    ("filter", "preScore", "score", "reserve", "preBind"), "preFilter"
)
_DEVICES_BY: Final = dict.fromkeys(
    ("filter", "postFilter", "score", "reserve", "preBind"), "preFilter"
)


def _by_name(registrations: Iterable[Registration]) -> dict[str, Registration]:
    return {registration.kind.name: registration for registration in registrations}


# The order is that of execution at every point.
BUILT_INS: dict[str, Registration] = _by_name(
    (
        Registration(SchedulingGates),
        Registration(PrioritySort),
        Registration(NodeName),
        Registration(NodeUnschedulable),
        Registration(TaintToleration, weight=3, needs=_SCORES_BY),
        Registration(NodeAffinityPlugin, weight=2),
        Registration(NodePorts, needs=_FILTERS_BY),
        Registration(
            NodeResourcesFit,
            weight=1,
            needs=_FILTERS_BY,
            upstream_points="preFilter filter preScore score placementScore",
        ),
        Registration(VolumeRestrictions, needs=_FILTERS_BY),
        Registration(NodeVolumeLimits),
        Registration(VolumeBinding, needs=_VOLUMES_BY),
        Registration(VolumeZone),
        Registration(PodTopologySpread, weight=2, needs=_FILTERS_BY | _SCORES_BY),
        Registration(InterPodAffinity, weight=2, needs=_FILTERS_BY | _SCORES_BY),
        Registration(
            DynamicResources,
            weight=2,
            needs=_DEVICES_BY,
            upstream_points=(
                "preEnqueue preFilter filter postFilter score reserve preBind podGroupPostFilter"
            ),
        ),
        Registration(DefaultPreemption, upstream_points="preEnqueue postFilter podGroupPostFilter"),
        Registration(NodeResourcesBalancedAllocation, weight=1),
        Registration(ImageLocality, weight=1, upstream_points="score"),
        Registration(DefaultBinder),
        Registration(NodeDeclaredFeatures, needs=_FILTERS_BY),
        Registration(SmallRequestFirst, place=ProfilePlace.NAMED),
        Registration(NodeOwnership, place=ProfilePlace.SCHEDULER),
    )
)

# Behind gates that are off unless set, so none is in the default profile.
_UNSUPPORTED: Final[Mapping[str, PluginFacts]] = {
    name: PluginFacts(points=frozenset(points.split()), supported=False)
    for name, points in {
        "DeferredPodScheduling": "preFilter filter permit",
        "GangScheduling": "preEnqueue permit",
        "TopologyPlacementGenerator": "placementGenerate",
        "PodGroupPodsCount": "placementScore",
    }.items()
}


def known_plugins() -> Mapping[str, PluginFacts]:
    """Return every plugin name configuration may use, and which of them exist here."""
    return {**facts_of(BUILT_INS), **_UNSUPPORTED}
