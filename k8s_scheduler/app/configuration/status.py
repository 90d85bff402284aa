"""Which configuration is in force, since when, and what was refused: for operators."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.extenders import shown_address
from k8s_scheduler.api.config.types import KubeSchedulerConfiguration, SchedulerConfiguration
from k8s_scheduler.app.configuration.offered import RefusedOffer
from k8s_scheduler.obs.config_metrics import ConfigMetrics, ReloadResult

# What is decided by it is built once, at start.
FIXED: Final = ("leader_election", "client_connection")
_ALONE: Final = "delay_cache_until_active"
_SECRET: Final = "keyData"  # noqa: S105  the name of a field
_ADDRESS: Final = "urlPrefix"


def settle(
    started: SchedulerConfiguration, offered: SchedulerConfiguration
) -> tuple[SchedulerConfiguration, tuple[str, ...]]:
    """Return what of a configuration can be in force without a restart, and what needs one."""
    before, after = started.settings, offered.settings
    waiting = []
    for section in FIXED:
        old, new = getattr(before, section), getattr(after, section)
        path = _encoded_name(KubeSchedulerConfiguration, section)
        waiting += [
            f"{path}.{field.encode_name}"
            for field in msgspec.structs.fields(type(new))
            if getattr(old, field.name) != getattr(new, field.name)
        ]
    if getattr(before, _ALONE) != getattr(after, _ALONE):
        waiting.append(_encoded_name(KubeSchedulerConfiguration, _ALONE))
    kept = {name: getattr(before, name) for name in (*FIXED, _ALONE)}
    settings = msgspec.structs.replace(after, **kept)
    in_force = SchedulerConfiguration(
        settings=settings,
        profiles=offered.profiles,
        extras=offered.extras,
        warnings=offered.warnings,
        source=offered.source,
    )
    return in_force, tuple(waiting)


def mean_the_same(one: SchedulerConfiguration, other: SchedulerConfiguration) -> bool:
    """Return whether nothing follows from the difference of two configurations."""
    return (one.settings, one.profiles, one.extras) == (
        other.settings,
        other.profiles,
        other.extras,
    )


class ConfigStatus:
    """What is in force now, and what came of the last change."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        name: str,
        *,
        metrics: ConfigMetrics,
        refused: RefusedOffer | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`name` is the hash of its text; `refused`, what was to be started with instead."""
        self._metrics = metrics
        self._wall_clock = wall_clock
        self.in_force = configuration
        self.hash = name
        self.since = wall_clock()
        self.restart_needed: tuple[str, ...] = ()
        self.refused = refused
        self.is_last_refused = refused is not None
        metrics.in_force(name)
        if refused is not None:
            metrics.offered(ReloadResult.REFUSED)

    def applied(
        self, configuration: SchedulerConfiguration, name: str, restart_needed: tuple[str, ...]
    ) -> None:
        self.since = self._wall_clock()
        self._metrics.offered(ReloadResult.APPLIED)
        self._accepted(configuration, name, restart_needed)

    def unchanged(
        self, configuration: SchedulerConfiguration, name: str, restart_needed: tuple[str, ...]
    ) -> None:
        """Take note of one that means what is in force already, but may come from elsewhere."""
        self._metrics.offered(ReloadResult.UNCHANGED)
        self._accepted(configuration, name, restart_needed)

    def _accepted(
        self, configuration: SchedulerConfiguration, name: str, restart_needed: tuple[str, ...]
    ) -> None:
        self.in_force = configuration
        self.hash = name
        self.is_last_refused = False
        self.restart_needed = restart_needed
        self._metrics.in_force(name)
        self._metrics.restart_needed.set(1 if restart_needed else 0)

    def refuse(self, refusal: RefusedOffer) -> None:
        self.refused = refusal
        self.is_last_refused = True
        self._metrics.offered(ReloadResult.REFUSED)

    def refuse_again(self, refusal: RefusedOffer) -> None:
        """Take note of what is wrong by now with one that was counted as refused before."""
        self.refused = refusal

    def page(self) -> dict[str, Any]:
        """Return what `/configz` shows: kube-scheduler's part, and ours. No secrets."""
        ours: dict[str, Any] = {
            "hash": self.hash,
            "since": _time(self.since),
            "source": self.in_force.source,
            "restartNeeded": list(self.restart_needed),
            "lastReloadSuccessful": not self.is_last_refused,
            "extras": encode(self.in_force.extras),
        }
        if self.refused is not None:
            ours["refused"] = {
                "hash": self.refused.hash,
                "source": self.refused.source,
                "time": _time(self.refused.at),
                "errors": list(self.refused.errors),
            }
        settings = _without_secrets(encode(self.in_force.settings))
        return {"kubescheduler.config.k8s.io": settings, "k8s-scheduler.io": ours}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shown(key, found) for key, found in value.items()}
    if isinstance(value, list):
        return [_without_secrets(found) for found in value]
    return value


def _shown(key: str, value: Any) -> Any:
    if key == _SECRET and value:
        return "REDACTED"
    if key == _ADDRESS and isinstance(value, str):
        return shown_address(value)
    return _without_secrets(value)


def _encoded_name(kind: type[msgspec.Struct], name: str) -> str:
    return next(f.encode_name for f in msgspec.structs.fields(kind) if f.name == name)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
