"""The pods to be spread, in each domain of a topology: the nodes with the same value of a label.

Arrays by domain are indexed by the ids of label values; a domain without a counting node is 0.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.evaluation.remembered import Remembered
from k8s_scheduler.core.framework.views.rows_view import Counts, Mask, RowsView
from k8s_scheduler.core.framework.views.values import PodCounter, SelectedPods
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import Constraint

Ids = npt.NDArray[np.int64]

# Of so few domains the minimum is found as fast as whether it is known.
_FEW: Final = 64

_NOBODY = SelectedPods((((), None),), with_terminating=False)


def counter_of(constraint: Constraint, namespace: str, rows: RowsView) -> PodCounter:
    """Return what counts the pods that a constraint finds in a namespace.

    Terminating pods make room soon, so they do not count. Nor does any pod where the selector is
    empty, though it picks the newcomer, and the pods that come or go in a dry run.
    """
    if not constraint.selector:
        return rows.counter(_NOBODY)
    selection = ((namespace,), constraint.selector)
    return rows.counter(SelectedPods((selection,), with_terminating=False))


@dataclass(frozen=True, slots=True, eq=False)
class Included:
    """The nodes that count, where these are not simply all."""

    # Of all nodes.
    mask: Mask
    # The domain of each node in the mask.
    ids: Ids
    domains: Ids

    @classmethod
    def of(cls, mask: Mask, ids: Ids) -> "Included":
        """Take the nodes of a mask; `ids` are the domains of all."""
        inside = ids[mask]
        return cls(mask, inside, np.flatnonzero(np.bincount(inside)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Included)
            and np.array_equal(self.mask, other.mask)
            and np.array_equal(self.ids, other.ids)
        )

    def __hash__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Census:
    """How many pods a constraint finds in each domain, on the nodes that count.

    Which nodes count is settled: `included`, or all if that is None, and then all have the key. The
    pods are counted on demand.
    """

    key: str
    counter: PodCounter
    included: Included | None
    _sums: Remembered[Counts] = field(default_factory=Remembered, compare=False, repr=False)
    _minimum: Remembered[int] = field(default_factory=Remembered, compare=False, repr=False)

    def near(self, rows: RowsView) -> Counts:
        """Return the count of each row's domain, as an array of its own; 0 if it is in none."""
        if self.included is None:
            return rows.count_near(self.counter, self.key)
        return self.by_domain(rows).take(rows.label(self.key))

    def by_domain(self, rows: RowsView) -> Counts:
        """Return the count of every domain. Do not write to it."""
        included = self.included
        if included is None:
            return rows.count_by_domain(self.counter, self.key)

        def sums() -> Counts:
            counts = rows.count_everywhere(self.counter)[included.mask]
            # In floating point, which is exact for as many pods as there can be. One place more,
            # where the id of an absent label points to.
            size = rows.label_value_count + 1
            return np.bincount(included.ids, counts, minlength=size).astype(np.int64)

        # Nodes that do not count are looked up, too, in domains that may be new.
        return self._sums.get((rows.count_version(self.counter), rows.label_generation), sums)

    def domains(self, rows: RowsView) -> Ids:
        """Return the ids of the domains that counting nodes are in."""
        return rows.domains(self.key) if self.included is None else self.included.domains

    def minimum(self, domains: Ids, rows: RowsView) -> int:
        """Return the count of the emptiest of these domains."""
        if len(domains) <= _FEW:
            return int(min(self._within(domains, rows).tolist()))

        def minimum() -> int:
            return int(np.minimum.reduce(self._within(domains, rows)))

        return self._minimum.get((rows.count_version(self.counter), domains), minimum)

    def _within(self, domains: Ids, rows: RowsView) -> Counts:
        if self.included is None:
            return rows.count_in(self.counter, self.key, domains)
        return self.by_domain(rows).take(domains)

    def version(self, rows: RowsView) -> int:
        """Return a number that is another one when the counts are."""
        return rows.count_version(self.counter)


def mask_of_keys(keys: list[str], rows: RowsView) -> Mask | None:
    """Return the rows that have all the labels; None if they all do."""
    found: Mask | None = None
    for key in dict.fromkeys(keys):
        if rows.is_label_on_all_nodes(key):
            continue
        has_key = rows.has_label(key)
        if np.count_nonzero(has_key) < len(has_key):
            found = has_key if found is None else found & has_key
    return found


def domain_count(ids: Ids, mask: Mask | None) -> int:
    return int(np.count_nonzero(np.bincount(ids if mask is None else ids[mask])))
