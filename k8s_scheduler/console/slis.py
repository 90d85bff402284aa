"""What health checks said, as kube-scheduler's `/metrics/slis` shows it.

A check is counted whenever a client asks for it; what no client asks about is not known.
"""

from collections.abc import Callable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from k8s_scheduler.console.health import Check

_SUCCESS: Final = "success"
_ERROR: Final = "error"


class HealthSlis:
    """The metrics of health checks, on a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._last = Gauge(
            "kubernetes_healthcheck",
            "Whether a health check passed when it was last asked.",
            ["name", "type"],
            registry=self.registry,
        )
        self._all = Counter(
            "kubernetes_healthchecks",
            "What health checks said, each time they were asked.",
            ["name", "type", "status"],
            registry=self.registry,
        )

    def watch(self, endpoint: str, checks: Sequence[Check]) -> tuple[Check, ...]:
        return tuple(Check(check.name, self._counted(endpoint, check)) for check in checks)

    def _counted(self, endpoint: str, check: Check) -> Callable[[], str | None]:
        def ask() -> str | None:
            status = _ERROR
            try:
                problem = check.ask()
                status = _SUCCESS if problem is None else _ERROR
            finally:
                self._last.labels(check.name, endpoint).set(status == _SUCCESS)
                self._all.labels(check.name, endpoint, status).inc()
            return problem

        return ask
