"""kube-scheduler's plugins as data: names, points, the default set and its order (v1.37.1).

All upstream names are known from the start, so that a file that asks for one this version lacks
is told `not supported yet` and not `does not exist`. Which ones are supported is not said here:
the registry in the core says so through `known_plugins`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from k8s_scheduler.api.config.arguments.plugin_args import PLUGIN_ARGUMENTS
from k8s_scheduler.api.config.types import PluginFacts

MULTI_POINT: Final = "multiPoint"

# The order in which kube-scheduler expands multiPoint; it decides which message comes first.
EXTENSION_POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
WEIGHTED_POINTS: Final = frozenset({"score", "placementScore"})

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})

# Order is execution order at every point. Plugins behind gates that are off are not in it.
DEFAULT_MULTI_POINT: Final = (
    "SchedulingGates",
    "PrioritySort",
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
)


def _facts(
    points: str, *, weight: int | None = None, needs: Mapping[str, str] = MappingProxyType({})
) -> PluginFacts:
    return PluginFacts(
        points=frozenset(points.split()), default_weight=weight, needs=needs, supported=False
    )


_FILTER: Final = "preFilter filter"
_FILTER_AND_SCORE: Final = "preFilter filter preScore score"
# Who works with what an earlier point left behind, and fails every pod if that did not run.
_FILTERS_BY: Final = {"filter": "preFilter"}
_SCORES_BY: Final = {"score": "preScore"}
_VOLUMES_BY: Final = dict.fromkeys(
    ("filter", "preScore", "score", "reserve", "preBind"), "preFilter"
)
_DEVICES_BY: Final = dict.fromkeys(
    ("filter", "postFilter", "score", "reserve", "preBind"), "preFilter"
)

UPSTREAM_PLUGINS: Final[Mapping[str, PluginFacts]] = {
    "SchedulingGates": _facts("preEnqueue"),
    "PrioritySort": _facts("queueSort"),
    "NodeName": _facts(_FILTER),
    "NodeUnschedulable": _facts(_FILTER),
    "TaintToleration": _facts(_FILTER_AND_SCORE, weight=3, needs=_SCORES_BY),
    "NodeAffinity": _facts(_FILTER_AND_SCORE, weight=2),
    "NodePorts": _facts(_FILTER, needs=_FILTERS_BY),
    "DeferredPodScheduling": _facts("preFilter filter permit"),
    "NodeResourcesFit": _facts(f"{_FILTER_AND_SCORE} placementScore", weight=1, needs=_FILTERS_BY),
    "VolumeRestrictions": _facts(_FILTER, needs=_FILTERS_BY),
    "NodeVolumeLimits": _facts(_FILTER),
    "VolumeBinding": _facts(f"{_FILTER_AND_SCORE} reserve preBind", needs=_VOLUMES_BY),
    "VolumeZone": _facts(_FILTER),
    "PodTopologySpread": _facts(_FILTER_AND_SCORE, weight=2, needs=_FILTERS_BY | _SCORES_BY),
    "InterPodAffinity": _facts(_FILTER_AND_SCORE, weight=2, needs=_FILTERS_BY | _SCORES_BY),
    "DynamicResources": _facts(
        "preEnqueue preFilter filter postFilter score reserve preBind podGroupPostFilter",
        weight=2,
        needs=_DEVICES_BY,
    ),
    "DefaultPreemption": _facts("preEnqueue postFilter podGroupPostFilter"),
    "NodeResourcesBalancedAllocation": _facts("preScore score", weight=1),
    "ImageLocality": _facts("score", weight=1),
    "DefaultBinder": _facts("bind"),
    "NodeDeclaredFeatures": _facts(_FILTER, needs=_FILTERS_BY),
    "GangScheduling": _facts("preEnqueue permit"),
    "TopologyPlacementGenerator": _facts("placementGenerate"),
    "PodGroupPodsCount": _facts("placementScore", weight=1),
}


def upstream_plugins(supported: Iterable[str]) -> dict[str, PluginFacts]:
    """Return the facts of all upstream plugins, with those that exist here marked as such."""
    facts = {
        name: replace(plugin, arguments=PLUGIN_ARGUMENTS.get(name))
        for name, plugin in UPSTREAM_PLUGINS.items()
    }
    return facts | {name: replace(facts[name], supported=True) for name in supported}
