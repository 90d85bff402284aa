"""SchedulerExtras as types: what this scheduler has beyond kube-scheduler's configuration.

A second document in the same file, of this project's own kind, so that kube-scheduler's document
stays kube-scheduler's. Without it everything has its default.
"""

from typing import Annotated, Final

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.field_errors import FieldError, duplicate, invalid, required
from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.node_selector import Selector
from k8s_scheduler.api.config.rules import RULE, Choice, Configured, Int32, Range
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.api.names import is_namespace

EXTRAS_API_VERSION = "k8s-scheduler.io/v1alpha1"
EXTRAS_KIND = "SchedulerExtras"

_MAX_PODS: Final = Range(1, 10_000, "must be between 1 and 10000")
# Nothing may hold the event loop for longer than 20 ms: leases and health checks wait behind it.
_MAX_MILLISECONDS: Final = Range(1, 20, "must be between 1 and 20")
_MAX_PER_SECOND: Final = Range(0, 1000, "must be between 0 and 1000")

_MAX_VICTIMS: Final = Range(0, 1_000_000, "must be between 0 and 1000000")

WARN, REFUSE, IGNORE = "Warn", "Refuse", "Ignore"
_ACTIONS: Final = Choice((WARN, REFUSE, IGNORE))
_MOST_NAMESPACES: Final = 32


class BatchSettings(Configured, frozen=True):
    """How much is decided before anything else gets its turn: whichever limit comes first."""

    max_pods: Annotated[Int32, msgspec.Meta(extra={RULE: _MAX_PODS})] = 16
    max_milliseconds: Annotated[Int32, msgspec.Meta(extra={RULE: _MAX_MILLISECONDS})] = 10


class PreemptionSettings(Configured, frozen=True):
    """How fast pods may be evicted for others, in all profiles together; 0 is no limit."""

    max_victims_per_minute: Annotated[Int32, msgspec.Meta(extra={RULE: _MAX_VICTIMS})] = 0


class Reasons(Configured, frozen=True):
    """How often pods that wait are told, without an attempt, that something else holds them back.

    Each telling is an event and a condition. 0: they are told at attempts only.
    """

    max_per_second: Annotated[Int32, msgspec.Meta(extra={RULE: _MAX_PER_SECOND})] = 20


class NodeOwnershipSettings(PluginArgs, frozen=True):
    """The nodes that are candidates at all, for every profile; without a selector, all are."""

    node_selector: Selector | None = None


class LastGood(Configured, frozen=True):
    """Where the configuration in force is written, to be started with if the file is bad."""

    config_map: str = ""


class Rivals(Configured, frozen=True):
    """What to do about other Leases whose holders serve a schedulerName of ours.

    A tenant who may write Leases in a namespace can make one that says so. With action Refuse the
    trusted namespaces therefore have to be named.
    """

    action: Annotated[str, msgspec.Meta(extra={RULE: _ACTIONS})] = WARN
    # Those that are looked into; all, if there are none.
    namespaces: tuple[str, ...] = ()


class SchedulerExtras(Configured, frozen=True):
    """The whole document."""

    api_version: str = EXTRAS_API_VERSION
    kind: str = EXTRAS_KIND
    batch: BatchSettings = BatchSettings()
    preemption: PreemptionSettings = PreemptionSettings()
    reasons: Reasons = Reasons()
    node_ownership: NodeOwnershipSettings = NodeOwnershipSettings()
    last_good: LastGood = LastGood()
    rivals: Rivals = Rivals()
    pod_limits: PodLimits = PodLimits()
    node_limits: NodeLimits = NodeLimits()


def extras_errors(extras: SchedulerExtras) -> list[FieldError]:
    """Return what is wrong with the values that types alone cannot judge."""
    return [*_last_good_errors(extras.last_good), *_rivals_errors(extras.rivals)]


def _last_good_errors(last_good: LastGood) -> list[FieldError]:
    if not last_good.config_map:
        return []
    try:
        ConfigMapName.parse(last_good.config_map)
    except ValueError as error:
        return [FieldError(("lastGood", "configMap"), f"Invalid value: {error}")]
    return []


def _rivals_errors(rivals: Rivals) -> list[FieldError]:
    at = ("rivals", "namespaces")
    errors: list[FieldError] = []
    if not rivals.action:
        errors.append(required(("rivals", "action")))
    if rivals.action == REFUSE and not rivals.namespaces:
        detail = (
            "with action Refuse, because who may write Leases in a namespace could keep this "
            "scheduler from leading"
        )
        errors.append(required(at, detail))
    if len(rivals.namespaces) > _MOST_NAMESPACES:
        detail = f"Too many: {len(rivals.namespaces)}: must have at most {_MOST_NAMESPACES} items"
        return [*errors, FieldError(at, detail)]
    first: dict[str, int] = {}
    for i, name in enumerate(rivals.namespaces):
        if not is_namespace(name):
            errors.append(invalid((*at, i), name, "must be the name of a namespace"))
        elif name in first:
            errors.append(duplicate((*at, i), name, first=(*at, first[name])))
        first.setdefault(name, i)
    return errors
