"""The rules a configuration must keep: kube-scheduler's own, all checked, all reported.

Works on decoded settings with defaults filled in and flags applied, as kube-scheduler does, so a
flag can break a rule that the file kept. Every function returns errors; none raises. Rules about
plugins are in `config_profiles`; what is valid but not built is in `config_support`.
"""

import math

from k8s_scheduler.api.config import (
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    Profile,
)
from k8s_scheduler.api.durations import format_duration
from k8s_scheduler.api.field_errors import FieldError, FieldPath, duplicate, invalid, required
from k8s_scheduler.api.names import (
    QUALIFIED_NAME_RULE,
    is_extended_resource_name,
    is_qualified_name,
)

# Retries are stretched by up to this factor, and one must fit before the deadline.
_RETRY_JITTER = 1.2


def validate(settings: KubeSchedulerConfiguration) -> list[FieldError]:
    """Return every rule that the settings break, plugins aside."""
    errors = []
    if settings.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(invalid(("parallelism",), settings.parallelism, detail))
    errors += _client_connection(settings.client_connection)
    errors += _leader_election(settings.leader_election)
    errors += _percentage(settings.percentage_of_nodes_to_score, ("percentageOfNodesToScore",))
    errors += _backoff(settings)
    errors += _profiles(settings.profiles)
    errors += _extenders(settings.extenders)
    return errors


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
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }
    errors += [required((path, name)) for name, value in names.items() if not value]
    return errors


def _lease_times(election: LeaderElection) -> list[FieldError]:
    """Check how the three times relate: a leader must give up before its lease can be taken."""
    errors = []
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


def _percentage(value: int | None, path: FieldPath) -> list[FieldError]:
    if value is None or 0 <= value <= 100:
        return []
    return [invalid(path, value, "not in valid range [0-100]")]


def _backoff(settings: KubeSchedulerConfiguration) -> list[FieldError]:
    initial, maximum = settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds
    errors = []
    if initial <= 0:
        errors.append(invalid(("podInitialBackoffSeconds",), initial, "must be greater than 0"))
    if maximum < initial:
        detail = f"must be greater than or equal to PodInitialBackoffSeconds ({initial})"
        errors.append(invalid(("podMaxBackoffSeconds",), maximum, detail))
    return errors


def _profiles(profiles: tuple[Profile, ...]) -> list[FieldError]:
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
        errors += _percentage(
            profile.percentage_of_nodes_to_score, (*path, "percentageOfNodesToScore")
        )
        errors += _common_queue_sort(profiles[0], profile, path)
    return errors


def _common_queue_sort(canon: Profile, profile: Profile, path: FieldPath) -> list[FieldError]:
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


def _extenders(extenders: tuple[Extender, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    managed: dict[str, FieldPath] = {}
    for i, extender in enumerate(extenders):
        path: FieldPath = ("extenders", i)
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.append(invalid((*path, "weight"), extender.weight, detail))
        for j, resource in enumerate(extender.managed_resources):
            at = (*path, "managedResources", j, "name")
            errors += _managed_resource(resource.name, at, managed)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        errors.append(invalid(("extenders",), found, "only one extender can implement bind"))
    return errors


def _managed_resource(name: str, path: FieldPath, seen: dict[str, FieldPath]) -> list[FieldError]:
    if not is_qualified_name(name):
        return [invalid(path, name, QUALIFIED_NAME_RULE)]
    if name in seen:
        return [invalid(path, name, "duplicate extender managed resource name")]
    seen[name] = path
    if not is_extended_resource_name(name):
        return [invalid(path, name, "is an invalid extended resource name")]
    return []
