"""Counters and gauges that cost next to nothing to feed: every message and tick feeds some."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from k8s_scheduler.obs.families import Family

Child = TypeVar("Child", "Count", "Level")


class Count:
    """What was counted under one set of label values."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Count so many more."""
        if amount < 0:
            raise ValueError("counters never go down")
        self.value += amount

    def shown(self) -> float:
        """Return what the page shows."""
        return self.value


class Level:
    """What a gauge says under one set of label values."""

    __slots__ = ("_ask", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self._ask: Callable[[], float] | None = None

    def set(self, value: float) -> None:
        """Say this from now on."""
        self.value = value

    def inc(self, amount: float = 1.0) -> None:
        """Say so much more."""
        self.value += amount

    def dec(self, amount: float = 1.0) -> None:
        """Say so much less."""
        self.value -= amount

    def set_function(self, ask: Callable[[], float]) -> None:
        """Say, whenever somebody reads the page, what the function says then."""
        self._ask = ask

    def shown(self) -> float:
        """Return what the page shows."""
        return float(self.value if self._ask is None else self._ask())


class _Plain(Family[Child]):
    """One number for each set of label values."""

    # What it is on the page.
    _shown_as: ClassVar[type[CounterMetricFamily] | type[GaugeMetricFamily]]

    def describe(self) -> Iterable[Metric]:
        """Return the family without samples; by its name the registry finds duplicates."""
        return [self._shown_as(self._name, self._text, labels=self.label_names)]

    def collect(self) -> Iterable[Metric]:
        """Return the family with its samples."""
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
        """Count so many more, where there are no labels."""
        self.labels().inc(amount)


class Gauge(_Plain[Level]):
    """Levels by label values."""

    _shown_as = GaugeMetricFamily

    def __init__(
        self, name: str, text: str, label_names: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        super().__init__(name, text, label_names, make=Level, registry=registry)

    def reset(self) -> None:
        """Say 0 under all label values: what is counted is counted from the start."""
        for child in self._children.values():
            child.set(0)

    def set(self, value: float) -> None:
        """Say this from now on, where there are no labels."""
        self.labels().set(value)

    def inc(self, amount: float = 1.0) -> None:
        """Say so much more, where there are no labels."""
        self.labels().inc(amount)

    def dec(self, amount: float = 1.0) -> None:
        """Say so much less, where there are no labels."""
        self.labels().dec(amount)

    def set_function(self, ask: Callable[[], float]) -> None:
        """Say what the function says, where there are no labels."""
        self.labels().set_function(ask)
