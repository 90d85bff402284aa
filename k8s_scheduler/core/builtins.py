"""The plugins that come with the scheduler."""

from collections.abc import Mapping

from k8s_scheduler.api.config import ArgsValidator, PluginFacts
from k8s_scheduler.api.config_added_affinity import validate_node_affinity
from k8s_scheduler.api.config_defaults import upstream_plugins
from k8s_scheduler.api.config_plugin_args import (
    validate_balanced_allocation,
    validate_node_resources_fit,
)
from k8s_scheduler.core.framework.registry import Registration, without_arguments
from k8s_scheduler.core.plugins.default_binder import DefaultBinder
from k8s_scheduler.core.plugins.image_locality import ImageLocality
from k8s_scheduler.core.plugins.node_affinity import NodeAffinity
from k8s_scheduler.core.plugins.node_name import NodeName
from k8s_scheduler.core.plugins.node_ports import NodePorts
from k8s_scheduler.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from k8s_scheduler.core.plugins.node_resources_fit import NodeResourcesFit
from k8s_scheduler.core.plugins.node_unschedulable import NodeUnschedulable
from k8s_scheduler.core.plugins.priority_sort import PrioritySort
from k8s_scheduler.core.plugins.scheduling_gates import SchedulingGates
from k8s_scheduler.core.plugins.taint_toleration import TaintToleration

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
        DefaultBinder,
    )
} | {
    kind.name: Registration(kind, kind)
    for kind in (NodeAffinity, NodeResourcesFit, NodeResourcesBalancedAllocation)
}

_ARGUMENTS: Mapping[str, ArgsValidator] = {
    NodeAffinity.name: validate_node_affinity,
    NodeResourcesFit.name: validate_node_resources_fit,
    NodeResourcesBalancedAllocation.name: validate_balanced_allocation,
}


def known_plugins() -> Mapping[str, PluginFacts]:
    """Return every plugin name configuration may use, and which of them exist here."""
    return upstream_plugins({name: _ARGUMENTS.get(name) for name in BUILT_INS})
