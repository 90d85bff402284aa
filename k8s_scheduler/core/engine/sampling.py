"""How many nodes are enough, where configuration sets a percentage: kube-scheduler's sampling.

Nodes are looked at in turn, zone by zone, from where the last search ended, until enough of them
are feasible. Without a percentage all nodes are looked at and none of this is used.
"""

import numpy as np

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.core.framework.runtime import Filtered
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.node_table import NodeTable, Rows

# Below this many nodes all of them are looked at, and at least this many have to be found.
MIN_NODES = 100

_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def nodes_to_find(node_count: int, percentage: int) -> int:
    """Return how many feasible nodes end the search."""
    if node_count < MIN_NODES:
        return node_count
    return max(node_count * percentage // 100, MIN_NODES)


class Sampling:
    """Where searches start, and in which order nodes are looked at."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._order: Rows | None = None
        self._order_of: Rows | None = None
        # Part of checkpoints: the next decision depends on it.
        self.next_start = 0

    def cut(self, rows: Rows, filtered: Filtered, percentage: int) -> Rows:
        """Return the feasible rows that a search would have found; the next starts behind them."""
        wanted = nodes_to_find(self._candidates(rows, filtered), percentage)
        turn = np.roll(self._in_turn(rows), -(self.next_start % len(rows)))
        # Nodes outside a PreFilter node set are not looked at.
        if filtered.before.names is not None:
            inside = filtered.codes != filtered.outside_code
            turn = turn[np.isin(turn, rows[inside])]
        feasible = np.isin(turn, filtered.feasible)
        found = np.flatnonzero(feasible)[:wanted]
        looked_at = len(turn) if len(found) < wanted else int(found[-1]) + 1
        self.next_start = (self.next_start + looked_at) % len(rows)
        return np.sort(turn[found])

    def _candidates(self, rows: Rows, filtered: Filtered) -> int:
        if filtered.before.names is None:
            return len(rows)
        return int(np.count_nonzero(filtered.codes != filtered.outside_code))

    def _in_turn(self, rows: Rows) -> Rows:
        """Return the rows, one of each zone in turn; the same rows are ordered only once."""
        if self._order is None or self._order_of is not rows:
            zones: dict[str, list[int]] = {}
            for row in rows.tolist():
                node = self._table.node_at(NodeRow(row))
                zones.setdefault(_zone_of(node.metadata.labels if node else None), []).append(row)
            turns = [
                (turn, place, row)
                for place, members in enumerate(zones.values())
                for turn, row in enumerate(members)
            ]
            self._order = np.array([row for _, _, row in sorted(turns)], dtype=np.int64)
            self._order_of = rows
        return self._order


def _zone_of(labels: Labels | None) -> str:
    found = labels or {}
    region = next((found[key] for key in _REGION if found.get(key)), "")
    zone = next((found[key] for key in _ZONE if found.get(key)), "")
    return f"{region}:\x00:{zone}" if region or zone else ""
