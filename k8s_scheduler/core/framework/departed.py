"""Pods that have left a row in a dry run, as filters see them that look at each of them alone.

One tenant may have put thousands of pods on a node. A plugin that wants to know which of them has a
port or a disk asks for an index, and that is made once for all dry runs on the row.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from k8s_scheduler.core.framework.views.pod_view import PodView

# What pods are to be found by; one function for all calls, because what it has found is kept by it.
KeysOf: TypeAlias = Callable[[PodView], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Quota:
    """How many of the pods in some places may come back."""

    most: int
    places: Collection[int]


class Departed:
    """Some pods, in an order."""

    __slots__ = ("_indexes", "pods")

    def __init__(self, pods: Sequence[PodView]) -> None:
        self.pods = pods
        self._indexes: dict[KeysOf, dict[Any, list[int]]] = {}

    def by(self, keys_of: KeysOf) -> Mapping[Any, Sequence[int]]:
        """Return the places of those who have a key, each as often as it has it. Do not write."""
        found = self._indexes.get(keys_of)
        if found is None:
            found = self._indexes[keys_of] = {}
            for place, pod in enumerate(self.pods):
                for key in keys_of(pod):
                    found.setdefault(key, []).append(place)
        return found
