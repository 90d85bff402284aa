"""Counters that cost next to nothing to raise: a pod raises half a dozen on its way."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily

from k8s_scheduler.obs.families import Family


class Count:
    """What was counted under one set of label values."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Count so many more."""
        if amount < 0:
            raise ValueError("a counter never goes down")
        self.value += amount


class Counter(Family[Count]):
    """Counts by label values."""

    def __init__(
        self,
        name: str,
        text: str,
        label_names: Sequence[str] = (),
        *,
        registry: CollectorRegistry,
    ) -> None:
        super().__init__(name, text, label_names, registry)

    def inc(self, amount: float = 1.0) -> None:
        """Count so many more, where there are no labels."""
        self.labels().inc(amount)

    def describe(self) -> Iterable[CounterMetricFamily]:
        """Return the family without samples; by its name the registry finds duplicates."""
        return [CounterMetricFamily(self._name, self._text, labels=self.label_names)]

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Return the family with its samples."""
        (family,) = self.describe()
        for values, child in list(self._children.items()):
            family.add_metric(values, child.value)
        return [family]

    def _make(self) -> Count:
        return Count()
