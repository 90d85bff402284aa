"""Plugins that kube-scheduler does not have: at which points they run, and their arguments."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from k8s_scheduler.api.config.arguments.base import PluginArguments
from k8s_scheduler.api.config.rules import RULE, Int64, Range
from k8s_scheduler.api.config.struct import Configured
from k8s_scheduler.api.config.types import PluginFacts

_SECONDS: Final = Range(0, None, "not in valid range [0, inf)")


class SmallRequestFirstArgs(Configured, frozen=True):
    """Arguments of SmallRequestFirst: how long a large pod may wait behind small ones."""

    ageing_seconds: Annotated[Int64, msgspec.Meta(extra={RULE: _SECONDS})] = 60


OWN_PLUGINS: Final[Mapping[str, PluginFacts]] = {
    "SmallRequestFirst": PluginFacts(
        points=frozenset({"queueSort"}), arguments=PluginArguments(SmallRequestFirstArgs)
    ),
}
