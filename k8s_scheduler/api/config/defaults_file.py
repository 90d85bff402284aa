"""The default configuration as a file: what holds where no file is given.

Loading it gives the same resolved configuration as having no file. Plugins stand in multiPoint,
where kube-scheduler has its defaults; what this version does not have is not listed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from k8s_scheduler.api.config.arguments import default_args
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.extras import SchedulerExtras
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.profiles.points import MULTI_POINT
from k8s_scheduler.api.config.profiles.resolve import plugin_sets
from k8s_scheduler.api.config.types import API_VERSION, PluginFacts, Plugins


def defaults_file(known: Mapping[str, PluginFacts]) -> str:
    settings = default_configuration(known).settings
    supported = [name for name, facts in known.items() if facts.by_default and facts.supported]
    encoded = encode(settings)
    encoded["profiles"] = [
        {
            "schedulerName": settings.profiles[0].scheduler_name,
            # Not set: a number here would win over the one for all profiles.
            "percentageOfNodesToScore": None,
            "plugins": _plugins(supported, known),
            "pluginConfig": _plugin_config(supported, known),
        }
    ]
    documents = [encoded, encode(SchedulerExtras())]
    return yaml.safe_dump_all(documents, sort_keys=False, width=100)


def _plugins(names: Sequence[str], known: Mapping[str, PluginFacts]) -> dict[str, Any]:
    enabled = []
    for name in names:
        weight = known[name].default_weight
        enabled.append({"name": name} if weight is None else {"name": name, "weight": weight})
    points: dict[str, Any] = {MULTI_POINT: {"enabled": enabled}}
    return points | {point: {} for point in plugin_sets(Plugins()) if point != MULTI_POINT}


def _plugin_config(names: Sequence[str], known: Mapping[str, PluginFacts]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "args": {"apiVersion": API_VERSION, "kind": f"{name}Args", **default_args(arguments)},
        }
        for name in sorted(names)
        if (arguments := known[name].arguments) is not None
    ]
