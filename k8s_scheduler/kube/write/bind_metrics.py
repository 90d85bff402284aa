"""Counts how binds ended, with their counters looked up once."""

from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome
from k8s_scheduler.obs.metrics import KubeMetrics


class BindMetrics:
    """The counters of the binding lane."""

    def __init__(self, metrics: KubeMetrics) -> None:
        attempts = metrics.bind_attempts
        self.unknown = attempts.labels(result="unknown")
        self._succeeded = attempts.labels(result="success")
        self._failed = attempts.labels(result="failure")
        self._failures = {
            reason: metrics.bind_failures.labels(_label(reason)) for reason in BindFailure
        }
        self._doubts = {
            outcome: metrics.doubtful_binds_ended.labels(outcome)
            for outcome in ("bound", *map(_label, BindFailure))
        }
        self._duration = metrics.bind_duration_seconds.labels()

    def ended(self, outcome: BindOutcome, *, was_in_doubt: bool, seconds: float) -> None:
        reason = outcome.reason
        if was_in_doubt:
            self._doubts["bound" if reason is None else _label(reason)].inc()
        (self._succeeded if outcome.bound else self._failed).inc()
        if reason is not None:
            self._failures[reason].inc()
        self._duration.observe(seconds)


def _label(reason: BindFailure) -> str:
    return reason.value.replace(" ", "_")
