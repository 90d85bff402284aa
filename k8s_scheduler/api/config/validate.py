"""The rules a configuration must keep: kube-scheduler's own, all checked, all reported.

Works on decoded settings with defaults filled in and flags applied, as kube-scheduler does, so a
flag can break a rule that the file kept. Every function returns errors; none raises. Rules about
plugins are in `profiles`, about extenders in `extenders`, about one field alone at
its type; what is valid but not built is in `support`.
"""

import math

from k8s_scheduler.api.config.extenders import validate_extenders
from k8s_scheduler.api.config.field_errors import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    required,
)
from k8s_scheduler.api.config.types import (
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
)
from k8s_scheduler.api.durations import format_duration
from k8s_scheduler.api.names import is_namespace, is_subdomain

# Retries are stretched by up to this factor, and one must fit before the deadline.
_RETRY_JITTER = 1.2
# What a Lease can say in its leaseDurationSeconds, a number of 32 bits.
_LONGEST_LEASE_SECONDS = 2**31 - 1


def validate(settings: KubeSchedulerConfiguration) -> list[FieldError]:
    return [
        *_client_connection(settings.client_connection),
        *_leader_election(settings.leader_election),
        *_backoff(settings),
        *_profiles(settings.profiles),
        *validate_extenders(settings.extenders),
    ]


def _client_connection(connection: ClientConnection) -> list[FieldError]:
    errors = []
    if not math.isfinite(connection.qps):
        at = ("clientConnection", "qps")
        errors.append(invalid(at, connection.qps, "must be a finite number"))
    at = ("clientConnection", "burst")
    if connection.burst < 0:
        errors.append(invalid(at, connection.burst, "must be non-negative"))
    elif connection.burst == 0 and connection.qps > 0:
        errors.append(invalid(at, connection.burst, "must be greater than zero with qps"))
    return errors


def _leader_election(election: LeaderElection) -> list[FieldError]:
    if not election.leader_elect:
        return []
    path = "leaderElection"
    errors = []
    durations = {
        "leaseDuration": election.lease_duration_seconds,
        "renewDeadline": election.renew_deadline_seconds,
        "retryPeriod": election.retry_period_seconds,
    }
    for name, seconds in durations.items():
        if seconds <= 0:
            text = format_duration(seconds)
            errors.append(invalid((path, name), text, "must be greater than zero"))
    if not errors:
        errors += _lease_times(election)
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        errors.append(invalid((path, "resourceLock"), election.resource_lock, detail))
    names = {
        "resourceName": (election.resource_name, is_subdomain, "cannot be the name of a Lease"),
        "resourceNamespace": (election.resource_namespace, is_namespace, "cannot be a namespace"),
    }
    for name, (value, can_be, detail) in names.items():
        if not value:
            errors.append(required((path, name)))
        elif not can_be(value):
            errors.append(invalid((path, name), value, detail))
    return errors


def _lease_times(election: LeaderElection) -> list[FieldError]:
    """Check how the three times relate: a leader must give up before its lease can be taken."""
    errors = []
    if election.lease_duration_seconds > _LONGEST_LEASE_SECONDS:
        lease = format_duration(election.lease_duration_seconds)
        detail = f"must be at most {format_duration(_LONGEST_LEASE_SECONDS)}"
        return [invalid(("leaderElection", "leaseDuration"), lease, detail)]
    renew = format_duration(election.renew_deadline_seconds)
    retry = format_duration(election.retry_period_seconds)
    if election.lease_duration_seconds <= election.renew_deadline_seconds:
        lease = format_duration(election.lease_duration_seconds)
        detail = f"must be greater than `RenewDeadline` ({renew})"
        errors.append(invalid(("leaderElection", "leaseDuration"), lease, detail))
    if election.renew_deadline_seconds <= _RETRY_JITTER * election.retry_period_seconds:
        detail = f"must be greater than retryPeriod*JitterFactor ({retry} * {_RETRY_JITTER})"
        errors.append(invalid(("leaderElection", "renewDeadline"), renew, detail))
    return errors


def _backoff(settings: KubeSchedulerConfiguration) -> list[FieldError]:
    initial, maximum = settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds
    if maximum >= initial:
        return []
    detail = f"must be greater than or equal to PodInitialBackoffSeconds ({initial})"
    return [invalid(("podMaxBackoffSeconds",), maximum, detail)]


def _profiles(profiles: tuple[KubeSchedulerProfile, ...]) -> list[FieldError]:
    errors = []
    seen: dict[str, FieldPath] = {}
    for i, profile in enumerate(profiles):
        path: FieldPath = ("profiles", i)
        at = (*path, "schedulerName")
        if not profile.scheduler_name:
            detail = "every profile needs a name" if len(profiles) > 1 else ""
            errors.append(required(at, detail))
        elif profile.scheduler_name in seen:
            first = seen[profile.scheduler_name]
            errors.append(duplicate(at, profile.scheduler_name, first=first))
        else:
            seen[profile.scheduler_name] = at
        errors += _common_queue_sort(profiles[0], profile, path)
    return errors


def _common_queue_sort(
    canon: KubeSchedulerProfile, profile: KubeSchedulerProfile, path: FieldPath
) -> list[FieldError]:
    """Check that a profile sorts as the first one does: all profiles share one queue."""
    if profile is canon:
        return []
    errors = []
    same = "must be the same for all profiles"
    if profile.plugins.queue_sort != canon.plugins.queue_sort:
        enabled = [plugin.name for plugin in profile.plugins.queue_sort.enabled]
        errors.append(invalid((*path, "plugins", "queueSort"), enabled, same))
    sorters = {plugin.name for plugin in canon.plugins.queue_sort.enabled}
    canon_args = {config.name: config.args for config in canon.plugin_config}
    for i, config in enumerate(profile.plugin_config):
        if config.name in sorters and config.args != canon_args.get(config.name, {}):
            at = (*path, "pluginConfig", i, "args")
            errors.append(invalid(at, config.args, f"queueSort {same}"))
    return errors
