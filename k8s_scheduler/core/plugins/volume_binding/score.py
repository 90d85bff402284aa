"""How well a node's storage suits a pod: utilisation by class, through the configured shape."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.views.offers import NONE
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView, Scores
from k8s_scheduler.core.plugins.scoring import Strategy
from k8s_scheduler.core.plugins.volume_binding.matching import find, match
from k8s_scheduler.core.plugins.volume_binding.term import BindingTerm

Bytes = npt.NDArray[np.int64]
# So many scores are remembered.
_REMEMBERED: Final = 1024


class ClassScorer:
    """Scores rows by their classes' utilisation."""

    def __init__(self, follow: Strategy) -> None:
        self._follow = follow
        # Of so much requested of so much: nothing else is asked for.
        self._of_one = lru_cache(maxsize=_REMEMBERED)(self._utilised_once)

    def score(self, term: BindingTerm, rows: RowsView) -> Scores:
        """Return the mean of the classes' scores for so many rows; 0 with nothing to weigh."""
        size = len(rows)
        if (score := self._same_everywhere(term, rows)) is not None:
            return np.full(size, score)
        found = find(term, rows)
        static = _Classes(size)
        bound = np.zeros(size, dtype=np.bool_)
        for matching, slots in zip(term.matchings, found.matched, strict=True):
            there = slots != NONE
            volumes = matching.volumes
            if volumes is None or not there.any():
                continue
            bound |= there
            capacity = volumes.capacity_bytes[slots]
            names = volumes.written_classes
            for name, number in names.items():
                of_class = there if len(names) == 1 else there & (volumes.written[slots] == number)
                static.add(name, of_class, matching.requested_bytes, capacity)
        if bound.all():
            return static.mean(self._utilised)
        dynamic = _Classes(size)
        for provisioning, needed, made_of in zip(
            term.provisionings, found.provisioned, found.capacity, strict=True
        ):
            offers = None if provisioning.capacity is None else provisioning.capacity.offers
            if offers is None or made_of is None:
                continue
            there = needed & ~bound & (made_of != NONE)
            capacity = offers.capacity_bytes[made_of]
            requested = provisioning.requested_bytes
            dynamic.add(provisioning.class_name, there, requested, capacity, shared=True)
        return np.where(bound, static.mean(self._utilised), dynamic.mean(self._utilised))

    def _same_everywhere(self, term: BindingTerm, rows: RowsView) -> int | None:
        """Return the score of all rows if one claim gets a volume of the same size on each.

        Then there is one class, whose score is the mean.
        """
        if len(term.matchings) != 1 or term.chosen_nodes or not len(rows):
            return None
        (matching,) = term.matchings
        if matching.volumes is None or len(matching.volumes.written_classes) != 1:
            return None
        (slots,) = match(term, rows)
        capacity = matching.volumes.capacity_bytes.take(slots)
        if np.count_nonzero(slots == NONE) or np.count_nonzero(capacity != capacity[0]):
            return None
        return self._of_one(matching.requested_bytes, capacity.item(0))

    def _utilised_once(self, requested: int, capacity: int) -> int:
        found = self._utilised(np.array([requested]), np.array([capacity]))
        return found.item(0)

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
