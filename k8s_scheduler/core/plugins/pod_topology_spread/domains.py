"""Sums over the domains of a topology: the nodes with the same value of a label.

Arrays by domain are indexed by the ids of label values; a domain without a counting node is 0.
"""

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.label_selectors import EVERYTHING, Requirements
from k8s_scheduler.core.framework.views import Counts, Mask, RowsView
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import Constraint

Ids = npt.NDArray[np.int64]


class PodCounts:
    """How many pods a constraint finds on each row, for constraints of one pod.

    They often share a selector; each is counted once.
    """

    def __init__(self, namespace: str, rows: RowsView) -> None:
        self._namespace = namespace
        self._rows = rows
        self._counted: dict[Requirements, Counts] = {}

    def by_row(self, constraint: Constraint) -> Counts:
        """Return the counts of all rows there are; `RowsView.cut` makes a column of it.

        Terminating pods make room soon, so they do not count. Nor does any pod where the selector
        is empty, though it picks the newcomer, and whoever comes or goes in a dry run.
        """
        selector = constraint.selector or EVERYTHING
        found = self._counted.get(selector)
        if found is None:
            if selector:
                picked = self._rows.pods_matching((self._namespace,), selector)
                found = self._rows.pods_by_row(picked, with_terminating=False)
            else:
                found = self._rows.full_column()
            self._counted[selector] = found
        return found


def complete(columns: list[Ids]) -> Mask | None:
    """Return the nodes that have every key; None if all do."""
    found: Mask | None = None
    for ids in columns:
        if ids.min(initial=0) < 0:
            found = ids >= 0 if found is None else found & (ids >= 0)
    return found


def sums_by_domain(ids: Ids, counts: Counts, mask: Mask | None, *, size: int) -> Counts:
    """Return the sum of the counts in each domain, over the nodes of the mask."""
    if mask is not None:
        ids, counts = ids[mask], counts[mask]
    # In floating point, which is exact for as many pods as there can be.
    return np.bincount(ids, weights=counts, minlength=size).astype(np.int64)


def domains_of(ids: Ids, mask: Mask | None) -> Ids:
    """Return the ids of the domains that the nodes of the mask are in."""
    if mask is not None:
        ids = ids[mask]
    return np.flatnonzero(np.bincount(ids))


def domain_count(ids: Ids, mask: Mask | None) -> int:
    """Return how many domains the nodes of the mask are in."""
    return int(np.count_nonzero(np.bincount(ids if mask is None else ids[mask])))
