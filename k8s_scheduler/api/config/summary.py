"""What a configuration was understood to say, for people: the answer of `config check`."""

from collections.abc import Iterator
from typing import Any, Final

from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.extenders import shown_address
from k8s_scheduler.api.config.extras import IGNORE, Rivals, SchedulerExtras
from k8s_scheduler.api.config.field_errors import render_value
from k8s_scheduler.api.config.limits import NODE_LIMITS, POD_LIMITS
from k8s_scheduler.api.config.profiles.points import WEIGHTED_POINTS
from k8s_scheduler.api.config.types import (
    ExtenderSettings,
    KubeSchedulerConfiguration,
    ResolvedProfile,
    SchedulerConfiguration,
)
from k8s_scheduler.api.durations import format_duration

_VERBS: Final = {
    "filter": "filter_verb",
    "prioritize": "prioritize_verb",
    "preempt": "preempt_verb",
    "bind": "bind_verb",
}


def summary(configuration: SchedulerConfiguration) -> str:
    lines = [*_settings(configuration.settings), *_extras(configuration.extras)]
    for profile in configuration.profiles:
        lines += ["", *_profile(profile)]
    return "\n".join(lines)


def _settings(settings: KubeSchedulerConfiguration) -> Iterator[str]:
    election, connection = settings.leader_election, settings.client_connection
    if election.leader_elect:
        yield (
            f"leader election: lease {election.resource_namespace}/{election.resource_name}, "
            f"{format_duration(election.lease_duration_seconds)} long, "
            f"renewed within {format_duration(election.renew_deadline_seconds)}, "
            f"tried every {format_duration(election.retry_period_seconds)}"
        )
    else:
        yield "leader election: none"
    limit = "no limit" if connection.qps <= 0 else f"{connection.qps:g}/s, burst {connection.burst}"
    yield f"API server: {connection.kubeconfig or 'credentials of the pod'}, {limit}"
    initial, maximum = settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds
    yield f"backoff of pods: {initial}s to {maximum}s"
    yield f"calls at once: {settings.parallelism}"
    if settings.delay_cache_until_active:
        yield "caches: filled only while leading"
    for extender in settings.extenders:
        yield _extender(extender)


def _extras(extras: SchedulerExtras) -> Iterator[str]:
    batch = extras.batch
    yield f"decisions in a row: {batch.max_pods}, for {batch.max_milliseconds}ms at most"
    if extras.preemption.max_victims_per_minute:
        yield f"victims of preemption: {extras.preemption.max_victims_per_minute} a minute at most"
    most = extras.reasons.max_per_second
    told = f"{most} pods per second at most" if most else "never"
    yield f"reasons renewed without an attempt: {told}"
    if extras.node_ownership.node_selector is not None:
        yield f"own nodes: {render_value(encode(extras.node_ownership)['nodeSelector'])}"
    for limits, fields in ((extras.pod_limits, POD_LIMITS), (extras.node_limits, NODE_LIMITS)):
        for limit in fields:
            if (value := getattr(limits, limit.name)) != limit.default:
                yield f"{limit.limit}: {value} {limit.what}, instead of {limit.default}"
    if extras.rivals != Rivals():
        where = ", ".join(extras.rivals.namespaces) or "all"
        seen = "not looked for" if extras.rivals.action == IGNORE else f"looked for in {where}"
        yield f"rivals: {extras.rivals.action}, {seen}"
    if extras.last_good.config_map:
        yield f"last good configuration: kept in ConfigMap {extras.last_good.config_map}"


def _extender(extender: ExtenderSettings) -> str:
    verbs = [name for name, field in _VERBS.items() if getattr(extender, field)]
    asked = ", ".join(verbs) or "nothing"
    ignorable = ", ignorable" if extender.ignorable else ""
    return f"extender {shown_address(extender.url_prefix)}: {asked}{ignorable}"


def _profile(profile: ResolvedProfile) -> Iterator[str]:
    yield f"profile {profile.scheduler_name}"
    percentage = profile.percentage_of_nodes_to_score
    yield f"  nodes to score: {'all' if percentage in (0, 100) else f'{percentage}%'}"
    for point, uses in profile.points.items():
        if uses:
            shown = [
                f"{use.name}*{use.weight}" if point in WEIGHTED_POINTS else use.name for use in uses
            ]
            yield f"  {point}: {', '.join(shown)}"
    for name, args in profile.plugin_args.items():
        if shown_args := _arguments(args):
            yield f"  {name}: {shown_args}"
    if profile.left_out:
        yield f"  not supported yet, left out: {', '.join(profile.left_out)}"


def _arguments(args: dict[str, Any]) -> str:
    return ", ".join(f"{name} {render_value(value)}" for name, value in args.items() if value != [])
