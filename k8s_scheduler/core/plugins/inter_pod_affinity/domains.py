"""How many pods count in each domain of a topology: a value of a node label.

Counts are read when they are asked for, so they are right whenever that is. What a dry run adds or
removes is kept beside them, so that trying a pod more or less copies nothing large.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from k8s_scheduler.core.framework.views.rows_view import Counts, Mask, RowsView
from k8s_scheduler.core.framework.views.values import Crowd, PodCounter

# By topology key: who counts there, and how often each pod does.
Counters: TypeAlias = Mapping[str, Mapping[PodCounter, int]]


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """Counts by topology key and domain; `changes` come on top of what the counters say."""

    by_key: Counters = field(default_factory=dict)
    changes: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, counters: Iterable[tuple[str, PodCounter]]) -> "DomainCounts":
        """Count by these topology keys; who is there twice counts twice."""
        by_key: dict[str, dict[PodCounter, int]] = {}
        for key, counter in counters:
            times = by_key.setdefault(key, {})
            times[counter] = times.get(counter, 0) + 1
        return cls(by_key) if by_key else NO_COUNTS

    def topology_keys(self) -> Iterable[str]:
        """Return the keys in whose domains something may count."""
        return dict.fromkeys((*self.by_key, *self.changes)) if self.changes else self.by_key

    def at(self, key: str, rows: RowsView) -> Counts:
        """Return the count of the domain that each row is in; 0 where the row is in none."""
        found: Counts | None = None
        for counter, times in self.by_key.get(key, _NOBODY).items():
            counts = rows.count_near(counter, key)
            if times != 1:
                counts *= times
            found = counts if found is None else found + counts
        if found is None:
            found = np.zeros(len(rows), dtype=np.int64)
        changes = self.changes.get(key)
        if changes:
            for domain, difference in changes.items():
                found[rows.in_domain(key, domain)] += difference
        return found

    def plus(self, key: str, rows: RowsView, difference: int) -> "DomainCounts":
        """Return the counts with a difference in the domain of the one row in view."""
        domain = rows.own_domain(key)
        if domain < 0:
            return self
        here = self.changes.get(key, {})
        changed = {**here, domain: here.get(domain, 0) + difference}
        return DomainCounts(self.by_key, {**self.changes, key: changed})

    def without(self, pods: Crowd, rows: RowsView) -> tuple["DomainCounts", Mask | None]:
        """Return the counts without pods on the one row in view, and which of them count there.

        None are all that count if there is no such pod.
        """
        left, counting = self, None
        for key, counters in self.by_key.items():
            if rows.own_domain(key) < 0:
                continue
            for counter, times in counters.items():
                amounts = rows.counted_of(counter, key, pods)
                total = times * int(amounts.sum())
                if total:
                    left = left.plus(key, rows, -total)
                    counting = amounts > 0 if counting is None else counting | (amounts > 0)
        return left, counting

    def is_empty(self, rows: RowsView) -> bool:
        """Return whether no domain there is counts anything."""
        for key in self.topology_keys():
            if self.changes.get(key):
                if np.count_nonzero(self._changed(key, rows)):
                    return False
                continue
            for counter in self.by_key[key]:
                if rows.count_any(counter, key):
                    return False
        return True

    def _changed(self, key: str, rows: RowsView) -> Counts:
        """Return the counts of all domains of a topology, with the changes."""
        sums = np.zeros(rows.label_value_count + 1, dtype=np.int64)
        for counter, times in self.by_key.get(key, _NOBODY).items():
            sums += rows.count_by_domain(counter, key) * times
        for domain, difference in self.changes[key].items():
            sums[domain] += difference
        return sums


_NOBODY: Mapping[PodCounter, int] = {}
NO_COUNTS = DomainCounts()
