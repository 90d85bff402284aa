"""Which plugins take arguments, and which.

A plugin that is not here takes none; giving it some is an error.
"""

from collections.abc import Mapping
from typing import Any, Final

from k8s_scheduler.api.config.arguments.added_affinity import NODE_AFFINITY
from k8s_scheduler.api.config.arguments.base import PluginArguments
from k8s_scheduler.api.config.arguments.default_constraints import POD_TOPOLOGY_SPREAD
from k8s_scheduler.api.config.arguments.number_args import (
    DEFAULT_PREEMPTION,
    DYNAMIC_RESOURCES,
    INTER_POD_AFFINITY,
    VOLUME_BINDING,
)
from k8s_scheduler.api.config.arguments.resource_args import (
    NODE_RESOURCES_BALANCED_ALLOCATION,
    NODE_RESOURCES_FIT,
)

PLUGIN_ARGUMENTS: Final[Mapping[str, PluginArguments[Any]]] = {
    "DefaultPreemption": DEFAULT_PREEMPTION,
    "DynamicResources": DYNAMIC_RESOURCES,
    "InterPodAffinity": INTER_POD_AFFINITY,
    "NodeAffinity": NODE_AFFINITY,
    "NodeResourcesBalancedAllocation": NODE_RESOURCES_BALANCED_ALLOCATION,
    "NodeResourcesFit": NODE_RESOURCES_FIT,
    "PodTopologySpread": POD_TOPOLOGY_SPREAD,
    "VolumeBinding": VOLUME_BINDING,
}
