"""How well a node's storage suits a pod: utilisation by class, through the configured shape."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.views.rows_view import Mask, Scores
from k8s_scheduler.core.plugins.scoring import Strategy
from k8s_scheduler.core.plugins.volume_binding.findings import Findings
from k8s_scheduler.core.plugins.volume_binding.ranking import NONE
from k8s_scheduler.core.plugins.volume_binding.term import BindingTerm

Bytes = npt.NDArray[np.int64]


class ClassScorer:
    """Scores rows by their classes' utilisation."""

    def __init__(self, follow: Strategy) -> None:
        self._follow = follow

    def score(self, term: BindingTerm, found: Findings) -> Scores:
        """Return the mean of the classes' scores; 0 where there is nothing to weigh."""
        size = len(found.no_volume)
        static = _Classes(size)
        bound = np.zeros(size, dtype=np.bool_)
        for matching, ranks in zip(term.matchings, found.matched, strict=True):
            there = ranks != NONE
            if matching.stock is None or not there.any():
                continue
            bound |= there
            at = np.where(there, ranks, 0)
            capacity = matching.stock.capacity_bytes[at]
            for name, of_class in matching.stock.by_written_class(at):
                static.add(name, there & of_class, matching.requested_bytes, capacity)
        dynamic = _Classes(size)
        for provisioning, needed, ranks in zip(
            term.provisionings, found.provisioned, found.capacity, strict=True
        ):
            stock = None if provisioning.capacity is None else provisioning.capacity.stock
            if stock is None:
                continue
            there = needed & ~bound & (ranks != NONE)
            capacity = stock.capacity_bytes[np.where(there, ranks, 0)]
            requested = provisioning.requested_bytes
            dynamic.add(provisioning.class_name, there, requested, capacity, shared=True)
        return np.where(bound, static.mean(self._utilised), dynamic.mean(self._utilised))

    def _utilised(self, requested: Bytes, capacity: Bytes) -> Scores:
        # No capacity is as bad as more requested than there is.
        return self._follow(np.where(capacity == 0, 1, requested), capacity)


@dataclass(slots=True)
class _Class:
    """One class on each row: whether it is used there, and what of how much."""

    used: Mask
    requested: Bytes
    capacity: Bytes


class _Classes:
    """What is requested of which capacity, by class and row."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes: dict[str, _Class] = {}

    def add(
        self, name: str, where: Mask, requested: int, capacity: Bytes, *, shared: bool = False
    ) -> None:
        """Add a volume; capacities add up too, unless all volumes share one."""
        found = self._classes.get(name)
        if found is None:
            found = self._classes[name] = _Class(
                np.zeros(self._size, dtype=np.bool_),
                np.zeros(self._size, dtype=np.int64),
                np.zeros(self._size, dtype=np.int64),
            )
        found.used |= where
        found.requested[where] += requested
        if shared:
            found.capacity[where] = capacity[where]
        else:
            found.capacity[where] += capacity[where]

    def mean(self, utilised: Callable[[Bytes, Bytes], Scores]) -> Scores:
        """Return the mean of the scores of the classes used, rounded; 0 where none is."""
        total = np.zeros(self._size, dtype=np.int64)
        count = np.zeros(self._size, dtype=np.int64)
        for found in self._classes.values():
            total += np.where(found.used, utilised(found.requested, found.capacity), 0)
            count += found.used
        return np.floor(total / np.maximum(count, 1) + 0.5).astype(np.int64)
