"""How many nodes are enough, where configuration sets a percentage: kube-scheduler's sampling.

Nodes are looked at in turn, zone by zone, from where the last search ended, until enough of them
are feasible. Without a percentage all nodes are looked at and none of this is used.
"""

import numpy as np

from k8s_scheduler.core.framework.evaluation.runtime import Filtered
from k8s_scheduler.core.state.nodes.labels import ABSENT
from k8s_scheduler.core.state.nodes.node_table import NodeTable, Rows

# Below this many nodes all of them are looked at, and at least this many have to be found.
MIN_NODES = 100

_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def nodes_to_find(node_count: int, percentage: int) -> int:
    if node_count < MIN_NODES:
        return node_count
    return max(node_count * percentage // 100, MIN_NODES)


class Sampling:
    """Where searches start, and in which order nodes are looked at."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        # Part of checkpoints: the next decision depends on it.
        self.next_start = 0

    def cut(self, rows: Rows, filtered: Filtered, percentage: int) -> Rows:
        """Return the feasible rows that a search would have found.

        A search ends at the first feasible node that is too many; the next one starts there.
        """
        turn = self._in_turn(rows)
        # Nodes outside a PreFilter node set are not looked at.
        if filtered.before.names is not None:
            turn = turn[np.isin(turn, rows[filtered.codes != filtered.outside_code])]
        wanted = nodes_to_find(len(turn), percentage)
        turn = np.roll(turn, -(self.next_start % len(turn)))
        found = np.flatnonzero(np.isin(turn, filtered.feasible))
        looked_at = int(found[wanted]) if len(found) > wanted else len(turn)
        self.next_start = (self.next_start + looked_at) % len(rows)
        return np.sort(turn[found[:wanted]])

    def _in_turn(self, rows: Rows) -> Rows:
        """Return the rows, one of each zone in turn, zones in the order of their first node."""
        zones = np.stack([self._values(_REGION, rows), self._values(_ZONE, rows)], axis=1)
        _, first, zone = np.unique(zones, axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))[zone.reshape(-1)]
        by_zone = np.argsort(rank, kind="stable")
        starts = np.searchsorted(rank[by_zone], rank[by_zone])
        turn = np.empty(len(rows), dtype=np.int64)
        turn[by_zone] = np.arange(len(rows)) - starts
        return rows[np.lexsort((rank, turn))]

    def _values(self, keys: tuple[str, str], rows: Rows) -> Rows:
        """Return the ids of a label that has an old and a new name; the old one goes first."""
        labels = self._table.labels
        old, new = (labels.column(key)[rows] for key in keys)
        found = np.where(old >= 0, old, new)
        # An empty value is no zone, but still hides the new name.
        return np.where(found == labels.known_id(""), ABSENT, found)
