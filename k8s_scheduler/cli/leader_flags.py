"""The `--leader-elect*` flags: the ones that override the configuration file when given."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from k8s_scheduler.api.config.load import FlagOverride
from k8s_scheduler.cli.flags import GoDuration, go_bool_option

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

_SECTION: Final = "leaderElection"
# Parameter name → the field of the file that the flag replaces.
_FIELDS: Final = {
    "leader_elect": "leaderElect",
    "leader_elect_lease_duration": "leaseDuration",
    "leader_elect_renew_deadline": "renewDeadline",
    "leader_elect_retry_period": "retryPeriod",
    "leader_elect_resource_lock": "resourceLock",
    "leader_elect_resource_name": "resourceName",
    "leader_elect_resource_namespace": "resourceNamespace",
}


def leader_election_options(function: _Decorated) -> _Decorated:
    seconds = GoDuration()
    options = (
        go_bool_option(
            "--leader-elect",
            "Schedule only while holding the lease; the other replicas stand by.",
            default_text="true",
        ),
        click.option(
            "--leader-elect-lease-duration",
            type=seconds,
            show_default="15s",
            help="How long others wait after the last renewal before they take the lease.",
        ),
        click.option(
            "--leader-elect-renew-deadline",
            type=seconds,
            show_default="10s",
            help="How long the leader tries to renew before it stops leading.",
        ),
        click.option(
            "--leader-elect-retry-period",
            type=seconds,
            show_default="2s",
            help="Pause between attempts to take or renew the lease.",
        ),
        click.option(
            "--leader-elect-resource-lock",
            show_default="leases",
            help="Kind of the lock; only leases.",
        ),
        click.option(
            "--leader-elect-resource-name",
            show_default="kube-scheduler",
            help="Name of the Lease.",
        ),
        click.option(
            "--leader-elect-resource-namespace",
            show_default="kube-system",
            help="Namespace of the Lease.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def take_leader_election(parameters: dict[str, Any]) -> tuple[FlagOverride, ...]:
    given: Mapping[str, Any] = {name: parameters.pop(name) for name in _FIELDS}
    return tuple(
        FlagOverride(f"--{name.replace('_', '-')}", (_SECTION, _FIELDS[name]), value)
        for name, value in given.items()
        if value is not None
    )
