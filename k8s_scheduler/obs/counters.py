"""Counters and gauges that cost next to nothing to feed: every message and every tick feeds some.

One thread counts, so there is no lock; another may read a page at the same time and gets what was
counted up to then. On the page they look as those of the client library do.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

Child = TypeVar("Child", "Count", "Level")
Family = CounterMetricFamily | GaugeMetricFamily


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


class _Metric(Collector, Generic[Child]):
    """Children by label values."""

    def __init__(
        self,
        name: str,
        text: str,
        label_names: Sequence[str] = (),
        *,
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._text = text
        self.label_names = tuple(label_names)
        self._children: dict[tuple[str, ...], Child] = {}
        if not self.label_names:
            # One that needs no label is on the page from the start.
            self.labels()
        registry.register(self)

    def labels(self, *values: str, **by_name: str) -> Child:
        """Return the child of these label values; keep it, looking it up costs."""
        child = self._children.get(values)
        return self._find(values, by_name) if child is None or by_name else child

    def _find(self, values: tuple[str, ...], by_name: dict[str, str]) -> Child:
        if by_name and not values and by_name.keys() == set(self.label_names):
            values = tuple(by_name[name] for name in self.label_names)
        elif by_name or len(values) != len(self.label_names):
            given = (*values, *by_name)
            raise ValueError(f"{self._name} has the labels {self.label_names}, not {given}")
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._make()
        return child

    def _make(self) -> Child:
        raise NotImplementedError

    def _family(self) -> Family:
        raise NotImplementedError

    def describe(self) -> Iterable[Family]:
        """Return the family without samples; by its name the registry finds duplicates."""
        return [self._family()]

    def collect(self) -> Iterable[Family]:
        """Return the family with its samples."""
        family = self._family()
        for values, child in list(self._children.items()):
            family.add_metric(values, child.shown())
        return [family]


class Counter(_Metric[Count]):
    """Counts by label values."""

    def inc(self, amount: float = 1.0) -> None:
        """Count so many more, where there are no labels."""
        self.labels().inc(amount)

    def _make(self) -> Count:
        return Count()

    def _family(self) -> Family:
        return CounterMetricFamily(self._name, self._text, labels=self.label_names)


class Gauge(_Metric[Level]):
    """Levels by label values."""

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

    def _make(self) -> Level:
        return Level()

    def _family(self) -> Family:
        return GaugeMetricFamily(self._name, self._text, labels=self.label_names)
