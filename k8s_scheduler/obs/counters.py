"""Counters and gauges that cost next to nothing to feed: every message and tick feeds some."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from k8s_scheduler.obs.families import MetricFamily

Child = TypeVar("Child", "Count", "Level")


class Count:
    """The value of a counter under one set of label values."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        if amount < 0:
            raise ValueError("counters never go down")
        self.value += amount

    def shown(self) -> float:
        return self.value


class Level:
    """The value of a gauge under one set of label values."""

    __slots__ = ("_ask", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self._ask: Callable[[], float] | None = None

    def set(self, value: float) -> None:
        self.value = value

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def dec(self, amount: float = 1.0) -> None:
        self.value -= amount

    def set_function(self, ask: Callable[[], float]) -> None:
        self._ask = ask

    def shown(self) -> float:
        return float(self.value if self._ask is None else self._ask())


class _Plain(MetricFamily[Child]):
    """One number for each set of label values."""

    # What it is on the page.
    _shown_as: ClassVar[type[CounterMetricFamily] | type[GaugeMetricFamily]]

    def describe(self) -> Iterable[Metric]:
        """Return the family without samples; by its name the registry finds duplicates."""
        return [self._shown_as(self._name, self._text, labels=self.label_names)]

    def collect(self) -> Iterable[Metric]:
        family = self._shown_as(self._name, self._text, labels=self.label_names)
        for values, child in list(self._children.items()):
            family.add_metric(values, child.shown())
        return [family]


class Counter(_Plain[Count]):
    """Counts by label values."""

    _shown_as = CounterMetricFamily

    def __init__(
        self, name: str, text: str, label_names: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        super().__init__(name, text, label_names, make=Count, registry=registry)

    def inc(self, amount: float = 1.0) -> None:
        self.labels().inc(amount)


class Gauge(_Plain[Level]):
    """Levels by label values."""

    _shown_as = GaugeMetricFamily

    def __init__(
        self, name: str, text: str, label_names: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        super().__init__(name, text, label_names, make=Level, registry=registry)

    def reset(self) -> None:
        """Show 0 under all label values, so that every series exists from the start."""
        for child in self._children.values():
            child.set(0)

    def set(self, value: float) -> None:
        self.labels().set(value)

    def inc(self, amount: float = 1.0) -> None:
        self.labels().inc(amount)

    def dec(self, amount: float = 1.0) -> None:
        self.labels().dec(amount)

    def set_function(self, ask: Callable[[], float]) -> None:
        self.labels().set_function(ask)
