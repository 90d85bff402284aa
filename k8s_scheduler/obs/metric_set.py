"""Metrics that are declared together, on one registry."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from k8s_scheduler.obs.counters import Counter, Gauge
from k8s_scheduler.obs.histograms import Histogram


class MetricSet:
    """Its subclasses say which metrics there are."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def _histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the bucket bounds that Prometheus' Go client calls ExponentialBuckets."""
    bounds = []
    bound = start
    for _ in range(count):
        # Multiplied step by step, not by powers: the last digits of a bound are part of its name.
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)
