"""Hard constraints: what Filter needs to know, and what one pod more or less makes of it.

Counted are pods on nodes that have the topology keys of *all* hard constraints. The counts by
domain are read when nodes are judged; what a dry run adds or removes is kept beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.evaluation.remembered import Remembered
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import FEW, Codes, Counts, RowsView
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import Constraint
from k8s_scheduler.core.plugins.pod_topology_spread.domains import (
    Census,
    Ids,
    Included,
    counter_of,
    mask_of_keys,
)
from k8s_scheduler.core.plugins.pod_topology_spread.inclusion import Inclusion, both

_NO_DOMAIN = -1
_UNSEEN = 2**31 - 1


def _namespace(pod: PodView) -> tuple[str]:
    return (pod.namespace,)


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
    """One constraint and the pods it finds."""

    constraint: Constraint
    # Whether the newcomer is one of those to be spread.
    self_match: bool
    census: Census
    # The paths without changes, once a dry run has asked for them.
    start: Remembered[CriticalPaths] = field(default_factory=Remembered, compare=False)
    changes: Mapping[int, int] = field(default_factory=dict)
    # The paths with the changes, if there are any.
    paths: CriticalPaths | None = None

    def measured(self, rows: RowsView) -> tuple[Counts, int]:
        """Return the count of each row's domain, and from where on the newcomer is too much."""
        counts = self.census.near(rows)
        if self.changes:
            for domain, difference in self.changes.items():
                counts[rows.in_domain(self.constraint.key, domain)] += difference
        return counts, self.constraint.max_skew + self._minimum(rows) - self.self_match

    def plus(self, domain: int, difference: int, rows: RowsView) -> "Spread":
        """Return the spread with pods more or less in a domain.

        As upstream, a pod that leaves is taken off whether it was counted or not: terminating pods
        and those of an empty selector were not, so that a count may become negative.
        """
        by_domain = self.census.by_domain(rows)
        paths = self._paths(rows)
        changed = self.changes.get(domain, 0) + difference
        count = int(by_domain[domain]) + changed
        return Spread(
            self.constraint,
            self.self_match,
            self.census,
            self.start,
            {**self.changes, domain: changed},
            paths.updated(domain, count),
        )

    def room(self, domain: int, rows: RowsView) -> int:
        """Return how many more pods may come in the domain of the one row in view, which passes.

        The emptiest domain may be this one, and then becomes fuller with them, up to the next.
        """
        counts, _ = self.measured(rows)
        fewest = 0
        if len(self.census.domains(rows)) >= self.constraint.min_domains:
            paths = self._paths(rows)
            fewest = paths.next_count if paths.domain == domain else paths.count
        limit = self.constraint.max_skew + fewest - self.self_match
        return max(0, limit - int(counts[0]))

    def _paths(self, rows: RowsView) -> CriticalPaths:
        """Return the paths, with the changes if there are any."""
        if self.paths is not None:
            return self.paths
        domains = self.census.domains(rows)
        return self.start.get(
            (self.census.version(rows), domains),
            lambda: CriticalPaths.of(domains, self.census.by_domain(rows)),
        )

    def _minimum(self, rows: RowsView) -> int:
        domains = self.census.domains(rows)
        if len(domains) < self.constraint.min_domains:
            return 0
        if self.paths is not None:
            return self.paths.count
        return self.census.minimum(domains, rows) if len(domains) else _UNSEEN


@dataclass(frozen=True, slots=True)
class HardTerm:
    """What Filter needs of a pod with hard constraints."""

    namespace: str
    inclusion: Inclusion
    spreads: tuple[Spread, ...]

    @classmethod
    def of(cls, pod: PodView, constraints: tuple[Constraint, ...], rows: RowsView) -> "HardTerm":
        """Find out which nodes count; all nodes are in view."""
        inclusion = Inclusion.of(pod)
        keys = [c.key for c in constraints]
        has_keys = None
        if not all(rows.is_label_on_all_nodes(key) for key in keys):
            has_keys = mask_of_keys(keys, rows)
        spreads = []
        masks = inclusion.masks(constraints, rows)
        for constraint, included in zip(constraints, masks, strict=True):
            mask = both(has_keys, included)
            counting = None if mask is None else Included.of(mask, rows.label(constraint.key))
            counter = counter_of(constraint, pod.namespace, rows)
            census = Census(constraint.key, counter, counting)
            spreads.append(Spread(constraint, self_match=constraint.picks(pod), census=census))
        return cls(pod.namespace, inclusion, tuple(spreads))

    def with_pod(self, pod: PodView, rows: RowsView, difference: int) -> "HardTerm":
        """Return the term with a pod more or less on the one row in view."""
        if pod.namespace != self.namespace:
            return self
        concerned = [spread.constraint.picks(pod) for spread in self.spreads]
        if not any(concerned):
            return self
        domains = [rows.own_domain(spread.constraint.key) for spread in self.spreads]
        if min(domains) < 0:
            return self
        masks = self.inclusion.masks(tuple(s.constraint for s in self.spreads), rows)
        spreads = tuple(
            spread.plus(domain, difference, rows)
            if counts and (mask is None or mask[0])
            else spread
            for spread, domain, counts, mask in zip(
                self.spreads, domains, concerned, masks, strict=True
            )
        )
        return HardTerm(self.namespace, self.inclusion, spreads)

    def without(self, pods: Departed, rows: RowsView) -> "HardTerm":
        """Return the term with many pods less on the one row in view."""
        fewer = {
            place: spread.plus(domain, -len(picked), rows)
            for place, (spread, domain, picked) in self._counted(pods, rows).items()
        }
        if not fewer:
            return self
        spreads = tuple(fewer.get(place, spread) for place, spread in enumerate(self.spreads))
        return HardTerm(self.namespace, self.inclusion, spreads)

    def quotas(self, pods: Departed, rows: RowsView) -> list[Quota]:
        """Return how many of the pods that are counted may come to the one row in view."""
        counted = self._counted(pods, rows).values()
        return [Quota(spread.room(domain, rows), picked) for spread, domain, picked in counted]

    def _counted(self, pods: Departed, rows: RowsView) -> dict[int, tuple[Spread, int, list[int]]]:
        """Return, by place, the spreads that count some of the pods on the one row in view.

        With the row's domain, and which pods these are.
        """
        own = pods.by(_namespace).get(self.namespace)
        if not own:
            return {}
        domains = [rows.own_domain(spread.constraint.key) for spread in self.spreads]
        if min(domains) < 0:
            return {}
        masks = self.inclusion.masks(tuple(s.constraint for s in self.spreads), rows)
        found = {}
        for place, (spread, domain, mask) in enumerate(
            zip(self.spreads, domains, masks, strict=True)
        ):
            if mask is None or mask[0]:
                picked = [one for one in own if spread.constraint.picks(pods.pods[one])]
                if picked:
                    found[place] = spread, domain, picked
        return found

    def codes(self, rows: RowsView, *, no_label: Reason, skewed: Reason) -> Codes:
        """Return a code per row: of the first constraint that it does not meet, or 0."""
        codes = rows.passed()
        for spread in reversed(self.spreads):
            counts, limit = spread.measured(rows)
            if len(counts) <= FEW:
                crowded = [place for place, count in enumerate(counts.tolist()) if count > limit]
                code = rows.code((skewed,), resolvable=True) if crowded else 0
                for place in crowded:
                    codes[place] = code
            elif np.count_nonzero(mask := counts > limit):
                codes[mask] = rows.code((skewed,), resolvable=True)
            key = spread.constraint.key
            if rows.is_label_on_all_nodes(key):
                continue
            has_key = mask_of_keys([key], rows)
            if has_key is not None:
                codes[~has_key] = rows.code((no_label,), resolvable=False)
        return codes
