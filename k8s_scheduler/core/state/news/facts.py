"""Which facts changed in which rows, in order: what lets an evaluation catch up.

Every reader has a cursor of its own and asks what was noted since. The log is bounded: a reader
that comes too late is told so, and starts over. Facts are bits of a plain int, because a note is
made for every pod that comes or goes.
"""

from collections.abc import Mapping
from typing import Final

# What pods change when they come and go.
ROOM: Final = 1 << 0
PORTS: Final = 1 << 1
VOLUMES: Final = 1 << 2
PODS: Final = 1 << 3
LIVELY: Final = ROOM | PORTS | VOLUMES | PODS
# What a row shows otherwise with some pods more: see `delta`. Counters don't.
SHIFTED: Final = ROOM | PORTS | VOLUMES
# What nodes change.
ALLOCATABLE: Final = 1 << 4
UNSCHEDULABLE: Final = 1 << 5
TAINTS: Final = 1 << 6
FEATURES: Final = 1 << 7
LABELS: Final = 1 << 8
IMAGES: Final = 1 << 9
# A node came or went.
NODE: Final = 1 << 10
ALL_OF_A_NODE: Final = (1 << 11) - 1
# Some object of another kind; of no row.
OBJECTS: Final = 1 << 11

NO_ROW: Final = -1

# By column, or by family of columns: the fact that it shows.
_FACTS: Final[Mapping[str, int]] = {
    "allocatable/": ALLOCATABLE,
    "requested/": ROOM,
    "non_zero/": ROOM,
    "pod_count": ROOM,
    "ports": PORTS,
    "unschedulable": UNSCHEDULABLE,
    "taint_set": TAINTS,
    "feature_set": FEATURES,
    "label/": LABELS,
    "has_label/": LABELS,
    "images": IMAGES,
    "node_count": NODE,
    "name": NODE,
    "pods/labels": PODS,
    "pods/terminating": PODS,
    "pods/terms": PODS,
    "pods/volumes": VOLUMES,
}


def fact_of(column: str) -> int:
    """Return the fact that a column shows; KeyError for a column that nobody keeps a log of."""
    found = _FACTS.get(column)
    if found is None:
        found = _FACTS[column[: column.index("/") + 1]] if "/" in column else _FACTS[column]
    return found


class FactLog:
    """Notes of (row, facts), the latest ones."""

    LIMIT: Final = 1 << 15

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._facts: list[int] = []
        self._first = 0

    @property
    def position(self) -> int:
        """Return the cursor of somebody who has seen everything."""
        return self._first + len(self._rows)

    def note(self, row: int, facts: int) -> None:
        """Note that facts of a row, or of no row, changed."""
        rows = self._rows
        rows.append(row)
        self._facts.append(facts)
        if len(rows) > 2 * self.LIMIT:
            del rows[: self.LIMIT]
            del self._facts[: self.LIMIT]
            self._first += self.LIMIT

    def forget(self) -> None:
        """Let every reader start over, also one that has seen everything."""
        self._first = self.position + 1
        self._rows, self._facts = [], []

    def since(self, cursor: int) -> tuple[list[int], list[int]] | None:
        """Return the rows and facts noted after a cursor; None if they are forgotten."""
        start = cursor - self._first
        if start < 0:
            return None
        return self._rows[start:], self._facts[start:]
