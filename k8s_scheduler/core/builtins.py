"""The plugins that come with the scheduler."""

from collections.abc import Mapping

from k8s_scheduler.api.config.profiles.defaults import upstream_plugins
from k8s_scheduler.api.config.profiles.node_ownership import NODE_OWNERSHIP
from k8s_scheduler.api.config.profiles.own_plugins import OWN_PLUGINS
from k8s_scheduler.api.config.types import PluginFacts
from k8s_scheduler.core.framework.registry import Registration, without_arguments
from k8s_scheduler.core.plugins.default_binder import DefaultBinder
from k8s_scheduler.core.plugins.default_preemption import DefaultPreemption
from k8s_scheduler.core.plugins.dynamic_resources import DynamicResources
from k8s_scheduler.core.plugins.image_locality import ImageLocality
from k8s_scheduler.core.plugins.inter_pod_affinity import InterPodAffinity
from k8s_scheduler.core.plugins.node_affinity import NodeAffinity
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

BUILT_INS: Mapping[str, Registration] = {
    kind.name: Registration(kind, without_arguments(kind))
    for kind in (
        SchedulingGates,
        PrioritySort,
        NodeName,
        NodeUnschedulable,
        TaintToleration,
        NodePorts,
        ImageLocality,
        NodeDeclaredFeatures,
        DynamicResources,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeZone,
        DefaultBinder,
    )
} | {
    kind.name: Registration(kind, kind)
    for kind in (
        NodeAffinity,
        NodeResourcesFit,
        NodeResourcesBalancedAllocation,
        PodTopologySpread,
        InterPodAffinity,
        VolumeBinding,
        DefaultPreemption,
        SmallRequestFirst,
        NodeOwnership,
    )
}


def known_plugins() -> Mapping[str, PluginFacts]:
    """Return every plugin name configuration may use, and which of them exist here.

    NodeOwnership is none: it is the scheduler's and not a profile's to use.
    """
    own = {*OWN_PLUGINS, NODE_OWNERSHIP}
    upstream = upstream_plugins(name for name in BUILT_INS if name not in own)
    return {**upstream, **OWN_PLUGINS}
