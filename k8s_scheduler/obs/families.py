"""Metrics by label values, for what is counted many times per pod.

One thread counts, so there is no lock; another may read a page at the same time and gets what was
counted up to then. On the page they look like those of the client library, which cost several times
as much to feed.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

Child = TypeVar("Child")


class MetricFamily(Collector, Generic[Child]):
    """The children of one metric, each made when it is first asked for.

    A subclass says how they are shown: `collect` and `describe` of the client library.
    """

    def __init__(
        self,
        name: str,
        text: str,
        label_names: Sequence[str],
        *,
        make: Callable[[], Child],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._text = text
        self.label_names = tuple(label_names)
        self._make = make
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
