"""How many pods count in each domain of a topology: a value of a node label.

Counts are arrays over the ids of label values, one for each topology key. They are laid out once
per decision; what a dry run adds or removes is kept beside them, so that trying a pod more or less
copies nothing large.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from k8s_scheduler.core.framework.views import Counts, RowsView


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """Counts by topology key and domain; a domain that is not there counts 0.

    `by_key` is as `RowsView.pods_by_domain` lays it out; `changes` come on top of it.
    """

    by_key: Mapping[str, Counts] = field(default_factory=dict)
    changes: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def topology_keys(self) -> Iterator[str]:
        """Yield the keys in whose domains something may count."""
        yield from self.by_key
        for key in self.changes:
            if key not in self.by_key:
                yield key

    def at(self, key: str, rows: RowsView) -> Counts:
        """Return the count of the domain that each row is in; 0 where the row is in none."""
        domains = rows.label(key)
        base = self.by_key.get(key)
        found = np.zeros(len(domains), dtype=np.int64) if base is None else base[domains]
        for domain, difference in self.changes.get(key, {}).items():
            found[domains == domain] += difference
        return found

    def plus(self, key: str, rows: RowsView, difference: int) -> "DomainCounts":
        """Return the counts with a difference in the domain of the one row in view."""
        domain = int(rows.label(key)[0])
        if domain < 0:
            return self
        here = self.changes.get(key, {})
        changed = {**here, domain: here.get(domain, 0) + difference}
        return DomainCounts(self.by_key, {**self.changes, key: changed})

    @property
    def is_empty(self) -> bool:
        """Whether no domain counts anything."""
        counting = sum(int(np.count_nonzero(counts)) for counts in self.by_key.values())
        for key, changed in self.changes.items():
            base = self.by_key.get(key)
            for domain, difference in changed.items():
                before = 0 if base is None else int(base[domain])
                counting += bool(before + difference) - bool(before)
        return counting == 0


NO_COUNTS = DomainCounts()
