"""Hard constraints: what Filter needs to know, and what one pod more or less makes of it.

Counted are pods on nodes that have the topology keys of *all* hard constraints. The counts by
domain are laid out once per decision; what a dry run adds or removes is kept beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.views import Counts, Mask, RowsView
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import Constraint
from k8s_scheduler.core.plugins.pod_topology_spread.domains import (
    Ids,
    PodCounts,
    complete,
    domains_of,
    sums_by_domain,
)
from k8s_scheduler.core.plugins.pod_topology_spread.inclusion import Inclusion, both

_NO_DOMAIN = -1
_UNSEEN = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CriticalPaths:
    """The domain with the fewest pods, and the next.

    Enough as long as only one domain changes, which is what a dry run on one node does.
    """

    domain: int = _NO_DOMAIN
    count: int = _UNSEEN
    next_domain: int = _NO_DOMAIN
    next_count: int = _UNSEEN

    @classmethod
    def of(cls, domains: Ids, by_domain: Counts) -> "CriticalPaths":
        """Find the two smallest among some domains."""
        if not len(domains):
            return cls()
        counts = by_domain[domains]
        first = int(counts.argmin())
        if len(counts) == 1:
            return cls(int(domains[first]), int(counts[first]))
        smallest = int(counts[first])
        counts[first] = _UNSEEN
        second = int(counts.argmin())
        return cls(int(domains[first]), smallest, int(domains[second]), int(counts[second]))

    def updated(self, domain: int, count: int) -> "CriticalPaths":
        """Return the paths once a domain has another count."""
        if domain == self.domain:
            return self._sorted((domain, count), (self.next_domain, self.next_count))
        if domain == self.next_domain:
            return self._sorted((self.domain, self.count), (domain, count))
        if count < self.count:
            return CriticalPaths(domain, count, self.domain, self.count)
        if count < self.next_count:
            return CriticalPaths(self.domain, self.count, domain, count)
        return self

    @staticmethod
    def _sorted(one: tuple[int, int], other: tuple[int, int]) -> "CriticalPaths":
        return CriticalPaths(*other, *one) if one[1] > other[1] else CriticalPaths(*one, *other)


@dataclass(frozen=True, slots=True)
class Spread:
    """One constraint and the pods it has found."""

    constraint: Constraint
    # Whether the newcomer is one of those to be spread.
    self_match: bool
    by_domain: Counts
    domain_count: int
    paths: CriticalPaths
    changes: Mapping[int, int] = field(default_factory=dict)

    def skewed(self, ids: Ids) -> Mask:
        """Return where the newcomer would make its domain too full; `ids` are the rows' domains."""
        counts = self.by_domain[ids]
        for domain, difference in self.changes.items():
            counts[ids == domain] += difference
        enough_domains = self.domain_count >= self.constraint.min_domains
        minimum = self.paths.count if enough_domains else 0
        found: Mask = counts > self.constraint.max_skew + minimum - self.self_match
        return found

    def plus(self, domain: int, difference: int) -> "Spread":
        """Return the spread with pods more or less in a domain.

        As upstream, a pod that leaves is taken off whether it was counted or not: terminating pods
        and those of an empty selector were not, so that a count may become negative.
        """
        changed = self.changes.get(domain, 0) + difference
        count = int(self.by_domain[domain]) + changed
        changes = {**self.changes, domain: changed}
        return replace(self, changes=changes, paths=self.paths.updated(domain, count))


@dataclass(frozen=True, slots=True)
class HardTerm:
    """What Filter needs of a pod with hard constraints."""

    namespace: str
    inclusion: Inclusion
    spreads: tuple[Spread, ...]

    @classmethod
    def of(cls, pod: PodView, constraints: tuple[Constraint, ...], rows: RowsView) -> "HardTerm":
        """Count the pods on all nodes."""
        inclusion = Inclusion.of(pod)
        columns = [rows.label(c.key) for c in constraints]
        # Only now: reading a column may add values. One more, so that there is always a place.
        size = rows.label_value_count + 1
        has_keys = complete(columns)
        masks = inclusion.masks(constraints, rows)
        counts = PodCounts(pod.namespace, rows)
        spreads = []
        for constraint, ids, included in zip(constraints, columns, masks, strict=True):
            mask = both(has_keys, included)
            found = rows.cut(counts.by_row(constraint))
            by_domain = sums_by_domain(ids, found, mask, size=size)
            domains = domains_of(ids, mask)
            spreads.append(
                Spread(
                    constraint,
                    self_match=constraint.picks(pod.labels),
                    by_domain=by_domain,
                    domain_count=len(domains),
                    paths=CriticalPaths.of(domains, by_domain),
                )
            )
        return cls(pod.namespace, inclusion, tuple(spreads))

    def with_pod(self, pod: PodView, rows: RowsView, difference: int) -> "HardTerm":
        """Return the term with a pod more or less on the one row in view."""
        if pod.namespace != self.namespace:
            return self
        labels = pod.labels
        concerned = [spread.constraint.picks(labels) for spread in self.spreads]
        if not any(concerned):
            return self
        domains = [int(rows.label(spread.constraint.key)[0]) for spread in self.spreads]
        if min(domains) < 0:
            return self
        masks = self.inclusion.masks(tuple(s.constraint for s in self.spreads), rows)
        spreads = tuple(
            spread.plus(domain, difference) if counts and (mask is None or mask[0]) else spread
            for spread, domain, counts, mask in zip(
                self.spreads, domains, concerned, masks, strict=True
            )
        )
        return replace(self, spreads=spreads)

    def codes(self, rows: RowsView, *, no_label: int, skewed: int) -> Counts:
        """Return a code per row: of the first constraint that it does not meet, or 0."""
        codes = np.zeros(len(rows), dtype=np.int64)
        for spread in reversed(self.spreads):
            ids = rows.label(spread.constraint.key)
            codes[spread.skewed(ids)] = skewed
            codes[ids < 0] = no_label
        return codes
