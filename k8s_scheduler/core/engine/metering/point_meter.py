"""Times one profile's extension points and counts which plugins it asked."""

from collections.abc import Callable

from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.obs.histograms import Observations
from k8s_scheduler.obs.metrics import SchedulerMetrics


class PointMeter(Watch):
    """A watch that keeps the metrics of one profile.

    Children are bound when they are first needed. Who was asked is kept in plain numbers until
    the next `flush`: a decision asks some thirty times, and so many counters would cost more than
    some of the plugins.
    """

    def __init__(self, metrics: SchedulerMetrics, profile: str, perf: Callable[[], float]) -> None:
        self._durations = metrics.framework_extension_point_duration_seconds
        self._evaluations = metrics.plugin_evaluation
        self._profile = profile
        self._bound: dict[tuple[str, str], Observations] = {}
        self._asked: dict[tuple[str, str], int] = {}
        self.now = perf

    def ended(self, point: str, status: str, since: float) -> float:
        now = self.now()
        child = self._bound.get((point, status)) or self._bind(point, status)
        child.observe(now - since)
        return now

    def took(self, point: str, status: str, seconds: float) -> None:
        child = self._bound.get((point, status)) or self._bind(point, status)
        child.observe(seconds)

    def _bind(self, point: str, status: str) -> Observations:
        child = self._durations.labels(point, status, self._profile)
        self._bound[point, status] = child
        return child

    def asked(self, point: str, plugin: str, times: int = 1) -> None:
        key = (point, plugin)
        self._asked[key] = self._asked.get(key, 0) + times

    def flush(self) -> None:
        asked, self._asked = self._asked, {}
        for (point, plugin), times in asked.items():
            self._evaluations.labels(plugin, point, self._profile).inc(times)
