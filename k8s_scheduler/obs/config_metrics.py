"""Metrics of the configuration: which one is in force, and how changes ended."""

import enum
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Info

from k8s_scheduler.obs.metric_set import MetricSet


class ReloadResult(enum.StrEnum):
    """How a change ended."""

    APPLIED = "applied"
    REFUSED = "refused"
    UNCHANGED = "unchanged"


class ConfigMetrics(MetricSet):
    """The metrics of the configuration."""

    def __init__(
        self, registry: CollectorRegistry, *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(registry)
        self._wall_clock = wall_clock
        reloads = self._counter(
            "k8s_scheduler_config_reloads",
            "Configurations that were offered since the start, by what became of them: in force "
            "(applied), wrong (refused), or meaning the same as before (unchanged).",
            ["result"],
        )
        self._reloads = {result: reloads.labels(result.value) for result in ReloadResult}
        self._info = Info(
            "k8s_scheduler_config",
            "The configuration in force, by the SHA-256 of its text.",
            registry=registry,
        )
        self._successful = self._gauge(
            "k8s_scheduler_config_last_reload_successful",
            "0 while the last configuration that was offered is refused and an older one is in "
            "force, 1 otherwise.",
        )
        self._success_time = self._gauge(
            "k8s_scheduler_config_last_reload_success_timestamp_seconds",
            "When the configuration in force was taken.",
        )
        self.restart_needed = self._gauge(
            "k8s_scheduler_config_restart_needed",
            "1 while the configuration asks for something that only a restart can change.",
        )
        self.last_good_saved = self._gauge(
            "k8s_scheduler_config_last_good_saved",
            "1 while the ConfigMap for the last good configuration holds the one in force, 0 "
            "while it does not, or where there is none.",
        )

    def in_force(self, name: str) -> None:
        self._info.info({"hash": name})
        self._success_time.set(self._wall_clock())
        self._successful.set(1)

    def offered(self, result: ReloadResult) -> None:
        self._reloads[result].inc()
        self._successful.set(0 if result is ReloadResult.REFUSED else 1)
