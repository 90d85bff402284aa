"""The questions to counters: which placed pods count, and how much each of them does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from k8s_scheduler.api.selectors.labels import Requirements, matches
from k8s_scheduler.core.state.terms.picked_terms import Group, PickedTerms, Purpose

# The namespaces, sorted; None are all. And what their pods' labels must be; None is never met.
Selection: TypeAlias = tuple[tuple[str, ...] | None, Requirements | None]

# A requirement with its key, and its places in the tables that find counters by it; a name.
_REQUIREMENT_BYTES: Final = 800
_NAME_BYTES: Final = 120


@dataclass(frozen=True, slots=True)
class SelectedPods:
    """The pods that all selections pick."""

    selections: tuple[Selection, ...]
    with_terminating: bool

    def picks(self, namespace: str, labels: Mapping[str, str]) -> bool:
        for namespaces, requirements in self.selections:
            if namespaces is not None and namespace not in namespaces:
                return False
            if not matches(requirements, labels):
                return False
        return True

    @property
    def nbytes(self) -> int:
        """About how much memory the question takes: pods at the limits ask long ones."""
        return sum(map(_nbytes, self.selections))


@dataclass(frozen=True, slots=True)
class WeighedPods:
    """The pods that any selection picks: each counts by the weights of all that pick it.

    One question for a pod with many terms, which would otherwise be as many.
    """

    selections: tuple[tuple[Selection, int], ...]

    def weight_of(self, namespace: str, labels: Mapping[str, str]) -> int:
        found = 0
        for (namespaces, requirements), weight in self.selections:
            if (namespaces is None or namespace in namespaces) and matches(requirements, labels):
                found += weight
        return found

    @property
    def nbytes(self) -> int:
        return sum(_nbytes(selection) for selection, _ in self.selections)


def _nbytes(selection: Selection) -> int:
    namespaces, requirements = selection
    values = sum(_REQUIREMENT_BYTES + _NAME_BYTES * len(r.values) for r in requirements or ())
    return _NAME_BYTES * len(namespaces or ()) + values


@dataclass(frozen=True, slots=True)
class TermHolders:
    """The pods that hold terms which pick a newcomer, and serve a purpose by a topology key.

    Each counts as often as it holds one; where a purpose has weights, by their sum.
    """

    picked: PickedTerms
    purpose: Purpose
    topology_key: str

    @property
    def group(self) -> Group:
        return self.purpose, self.topology_key

    @property
    def nbytes(self) -> int:
        return self.picked.terms.nbytes


Counted: TypeAlias = SelectedPods | WeighedPods | TermHolders


def breadth(counted: Counted) -> int:
    """Return how much more than others it costs a counter to find out which pods it counts."""
    return 1 + len(counted.selections) // 8 if isinstance(counted, WeighedPods) else 1
