"""KubeSchedulerConfiguration as types: what a file may say, and what it comes to mean.

The wire types are kube-scheduler's `kubescheduler.config.k8s.io/v1`, field for field, with its
defaults; what differs is said at the field. `load` turns a file into a
`SchedulerConfiguration`, the only thing the rest of the program sees. Nothing here does I/O or
knows a plugin: the plugins that exist come in as `PluginFacts`, because their registry lives in
the core, and this package may not import it.

Invariants: everything is frozen; a field that exists is either acted on, or refused, or warned
about (`support`), never silently ignored. Rules that concern one field stand at its type
(`rules`); the decoder and the JSON schema read them there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.extras import SchedulerExtras
from k8s_scheduler.api.config.rules import (
    DURATION,
    FORMAT,
    RULE,
    Configured,
    Duration,
    Int32,
    Int64,
    Range,
)

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

_PERCENTAGE: Final = Range(0, 100, "not in valid range [0-100]")
_PARALLELISM: Final = Range(1, None, "should be an integer value greater than zero")
# Writes that pods wait for run on so many workers at the most: each has a connection.
MOST_PARALLELISM: Final = 64
_INITIAL_BACKOFF: Final = Range(1, None, "must be greater than 0")
_HTTP_TIMEOUT: Final = Range(0, None, "must be zero or positive")

Percentage: TypeAlias = Annotated[Int32, msgspec.Meta(extra={RULE: _PERCENTAGE})]


class LeaderElection(Configured, frozen=True):
    """How replicas agree on the one that schedules."""

    leader_elect: bool = True
    lease_duration_seconds: Duration = msgspec.field(default=15.0, name="leaseDuration")
    renew_deadline_seconds: Duration = msgspec.field(default=10.0, name="renewDeadline")
    retry_period_seconds: Duration = msgspec.field(default=2.0, name="retryPeriod")
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Configured, frozen=True):
    """How the API server is reached.

    Unlike kube-scheduler's 50 per second there is no limit unless `qps` is set: the API server's
    own priority and fairness protects it. `qps` of 0 or less means no limit; `burst` counts only
    together with `qps`. Only JSON is spoken.
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/json"
    qps: float = 0.0
    burst: Int32 = 100


class PluginEntry(Configured, frozen=True):
    """A plugin named at an extension point; the weight counts for scores only."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(Configured, frozen=True):
    """What a profile adds to and takes from the defaults at one point."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(Configured, frozen=True):
    """All extension points; `multi_point` stands for every point a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()


class PluginConfig(Configured, frozen=True):
    """The arguments of one plugin; their form is the plugin's business."""

    name: str = ""
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class KubeSchedulerProfile(Configured, frozen=True):
    """One schedulerName and how its pods are placed."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderTLSConfig(Configured, frozen=True):
    """How an extender is trusted, and how it trusts us."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ManagedResource(Configured, frozen=True):
    """A resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderSettings(Configured, frozen=True):
    """An HTTP service that takes part in decisions."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_seconds: Annotated[
        float, msgspec.Meta(extra={FORMAT: DURATION, RULE: _HTTP_TIMEOUT})
    ] = msgspec.field(default=5.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(Configured, frozen=True):
    """The whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Annotated[Int32, msgspec.Meta(extra={RULE: _PARALLELISM})] = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Percentage = 0
    pod_initial_backoff_seconds: Annotated[Int64, msgspec.Meta(extra={RULE: _INITIAL_BACKOFF})] = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[ExtenderSettings, ...] = ()
    delay_cache_until_active: bool = False


# What comes of it.


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFacts:
    """What configuration must know of a plugin; the core's `Registration` says it.

    `points` are named as in the file (`preFilter`). `needs`: at which point it must run as well,
    to be able to run at a point. `arguments` None: takes none. `by_default`: the default profile
    has it, at its place among the plugins that are known. `supported` False: kube-scheduler has it
    and this version does not, so it can be left out of the defaults but not asked for.
    """

    points: frozenset[str]
    default_weight: int | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    arguments: type[PluginArgs] | None = None
    by_default: bool = False
    supported: bool = True


@dataclass(frozen=True, slots=True)
class PluginUse:
    """A plugin at its place at a point; the weight is 0 where scores have no say."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """A profile with defaults, multiPoint and `*` worked out: point → plugins in their order.

    Every point is a key. `plugin_args` has an entry for each plugin that runs and takes arguments:
    checked, in the names of the file, with every default filled in. `left_out` names plugins of
    the default set that this version does not have. `percentage_of_nodes_to_score` is the
    profile's own or else the one for all; 0 means every node.
    """

    scheduler_name: str
    points: Mapping[str, tuple[PluginUse, ...]]
    plugin_args: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    percentage_of_nodes_to_score: int = 0


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """A configuration that passed every check, with flags applied and profiles resolved.

    `warnings` are whole sentences with file and line, to be logged once at start. `source` is
    the file's name, empty for the defaults.
    """

    settings: KubeSchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    extras: SchedulerExtras = field(default_factory=SchedulerExtras)
    warnings: tuple[str, ...] = ()
    source: str = ""
