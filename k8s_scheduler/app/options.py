"""What a run of the daemon was asked to do: the command line and the configuration, resolved.

The command line only fills these in; tests and the demo, which start the daemon another way, fill
them in directly. Nothing here is read from the environment.
"""

import enum
from dataclasses import dataclass
from pathlib import Path

from k8s_scheduler.api.config.load import FlagOverride
from k8s_scheduler.api.config.types import SchedulerConfiguration
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.offered import RefusedOffer
from k8s_scheduler.console.open_paths import HEALTH_PATHS
from k8s_scheduler.console.tls_settings import DEFAULT_TLS, TlsSettings

DEFAULT_SECURE_PORT = 10259
DEFAULT_REVIEW_TTL_SECONDS = 10.0
DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS_SECONDS = 300.0
DEFAULT_CACHE_COMPARISON_SECONDS = 1800.0
DEFAULT_HANG_SECONDS = 60.0
DEFAULT_RECORD_MAX_BYTES = 256 * 1024 * 1024


class EvaluationMode(enum.StrEnum):
    """How decisions are worked out; what comes out is the same."""

    INCREMENTAL = "incremental"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationFlags:
    """The flags that decide the configuration; kept so that the file can be loaded again.

    None means "not given": only flags that were given override anything.
    """

    config_file: Path | None = None
    config_map: ConfigMapName | None = None
    # Where the last good configuration is kept, whatever the file says.
    last_good: ConfigMapName | None = None
    # Which pod we are, if we are one and were told.
    pod_name: str = ""
    pod_namespace: str = ""
    kubeconfig: str | None = None
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    leader_election: tuple[FlagOverride, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """Which clients may see what is served. Without kubeconfigs the daemon's own login asks."""

    authentication_kubeconfig: str | None = None
    authorization_kubeconfig: str | None = None
    client_ca_file: Path | None = None
    always_allow_paths: tuple[str, ...] = HEALTH_PATHS
    token_ttl_seconds: float = DEFAULT_REVIEW_TTL_SECONDS
    authorized_ttl_seconds: float = DEFAULT_REVIEW_TTL_SECONDS
    unauthorized_ttl_seconds: float = DEFAULT_REVIEW_TTL_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Everything `lifecycle.run` needs to know.

    `configuration` already holds what flags override: the kubeconfig to use is
    `configuration.settings.client_connection.kubeconfig`, empty for in-cluster credentials.
    `cache_comparison_seconds` 0 means only on SIGUSR2, `hang_seconds` 0 no watchdog,
    `memory_limit_bytes` 0 no limit, `secure_port` 0 that nothing is served, `record_file` None no
    recording.
    """

    configuration: SchedulerConfiguration
    configuration_flags: ConfigurationFlags = ConfigurationFlags()
    # What the configuration was read from; None: from nothing. And what was refused for it.
    configuration_text: str | None = None
    configuration_refused: RefusedOffer | None = None
    bind_address: str = "0.0.0.0"  # noqa: S104  kube-scheduler's default: probes and scrapers come from outside
    secure_port: int = DEFAULT_SECURE_PORT
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    tls: TlsSettings = DEFAULT_TLS
    access: AccessOptions = AccessOptions()
    verbosity: int = 0
    logging_format: str = "text"
    pod_max_in_unschedulable_pods_seconds: float = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS_SECONDS
    pod_max_attempts: int | None = None
    evaluation: EvaluationMode = EvaluationMode.INCREMENTAL
    verified_share: float = 0.0
    cache_comparison_seconds: float = DEFAULT_CACHE_COMPARISON_SECONDS
    hang_seconds: float = DEFAULT_HANG_SECONDS
    memory_limit_bytes: int = 0
    record_file: Path | None = None
    record_max_bytes: int = DEFAULT_RECORD_MAX_BYTES
