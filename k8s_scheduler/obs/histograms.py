"""Histograms that cost next to nothing to feed: a decision makes more than a dozen observations."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.utils import INF, floatToGoString

from k8s_scheduler.obs.families import MetricFamily


class Observations:
    """What was observed under one set of label values."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * len(bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def shown(self) -> tuple[list[tuple[str, float]], float]:
        counts = accumulate(list(self._counts))
        names = map(floatToGoString, self._bounds)
        return list(zip(names, map(float, counts), strict=True)), self._sum


class Histogram(MetricFamily[Observations]):
    """Observations by label values."""

    def __init__(
        self,
        name: str,
        text: str,
        label_names: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self.buckets = tuple(buckets)
        bounds = (*self.buckets, INF)
        super().__init__(
            name, text, label_names, make=lambda: Observations(bounds), registry=registry
        )

    def observe(self, value: float) -> None:
        self.labels().observe(value)

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """Return the family without samples; by its name the registry finds duplicates."""
        return [HistogramMetricFamily(self._name, self._text, labels=self.label_names)]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        (family,) = self.describe()
        for values, child in list(self._children.items()):
            buckets, total = child.shown()
            family.add_metric(values, buckets, total)
        return [family]
