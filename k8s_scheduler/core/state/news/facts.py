"""The columns of the nodes: what each means, the fact it shows, the events that can better it.

`COLUMNS` is the one table of columns. From it follow what plugins may declare and which events wake
their pods (`framework/dependencies`), which facts an evaluation has to follow (`fact_of`), which
event an update of a node is (`node_change`), the plain columns of the node table, and the table in
docs/plugins.md. A new column is an entry here and the code that fills it.

Facts are bits of a plain int, because a note is made for every pod that comes or goes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from k8s_scheduler.core.state.news.changes import Change

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


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """A column, or a family of columns with one for each resource or key: `family/`."""

    name: str
    holds: str
    fact: int
    # The events that can make it say something better; None if plugins do not declare it. A new
    # node is news to every plugin.
    events: Change | None
    # Of a column that the node table keeps as it is. Others are resources, labels and indexes.
    dtype: type[np.generic] | None = None


_POD_LEFT: Final = Change.ASSIGNED_POD_DELETE
_ROOM_LEFT: Final = _POD_LEFT | Change.ASSIGNED_POD_SCALE_DOWN
# Pods on a node that is gone count no more.
_POD_OR_NODE_LEFT: Final = _POD_LEFT | Change.NODE_DELETE
_POD_COUNTS_OTHERWISE: Final = (
    _POD_OR_NODE_LEFT | Change.ASSIGNED_POD_ADD | Change.ASSIGNED_POD_LABEL
)
# Only scores look at it.
_SCORED: Final = Change(0)

COLUMNS: Final = (
    ColumnEntry(
        "allocatable/", "what the node offers, by resource", ALLOCATABLE, Change.NODE_ALLOCATABLE
    ),
    ColumnEntry("requested/", "what its pods request, by resource", ROOM, _ROOM_LEFT),
    ColumnEntry(
        "non_zero/",
        "the same for cpu and memory, where containers without a request count 100m and 200Mi",
        ROOM,
        _ROOM_LEFT,
    ),
    ColumnEntry("pod_count", "how many pods are on it", ROOM, _POD_LEFT),
    ColumnEntry("ports", "which host ports are taken, on which addresses", PORTS, _POD_LEFT),
    ColumnEntry(
        "unschedulable", "whether it is cordoned", UNSCHEDULABLE, Change.NODE_TAINT, np.bool_
    ),
    ColumnEntry("taint_set", "its taints", TAINTS, Change.NODE_TAINT, np.int64),
    ColumnEntry(
        "feature_set",
        "the features it declares",
        FEATURES,
        Change.NODE_DECLARED_FEATURE,
        np.int64,
    ),
    ColumnEntry("label/", "its labels, by key", LABELS, Change.NODE_LABEL),
    ColumnEntry("has_label/", "whether it has a label, by key", LABELS, None),
    ColumnEntry("images", "the images it holds and their sizes", IMAGES, _SCORED),
    ColumnEntry("node_count", "how many nodes there are", NODE, _SCORED),
    ColumnEntry("name", "its name", NODE, None),
    ColumnEntry(
        "pods/labels",
        "how many pods of which namespace and labels are where",
        PODS,
        _POD_COUNTS_OTHERWISE,
    ),
    ColumnEntry(
        "pods/terminating",
        "which of them are on their way out",
        PODS,
        Change.ASSIGNED_POD_TERMINATING,
    ),
    ColumnEntry("pods/terms", "which affinity terms they hold", PODS, _POD_OR_NODE_LEFT),
    ColumnEntry("pods/volumes", "which claims and disks they use", VOLUMES, _POD_OR_NODE_LEFT),
)
_BY_NAME: Final[Mapping[str, ColumnEntry]] = {entry.name: entry for entry in COLUMNS}


def entry_of(column: str) -> ColumnEntry:
    """Return the entry of a column or of its family; KeyError for a column that has none."""
    return _BY_NAME.get(column) or _BY_NAME[column[: column.find("/") + 1] or column]


def fact_of(column: str) -> int:
    return entry_of(column).fact


@cache
def node_change(facts: int) -> Change:
    """Return the event that kube-scheduler sees in what an update of a node has changed."""
    if facts & NODE:
        return Change.NODE_ADD
    change = Change(0)
    for entry in COLUMNS:
        if entry.fact & facts and entry.events is not None:
            change |= entry.events
    return change


class FactLog:
    """Notes of (row, facts), the latest ones in order: what lets an evaluation catch up.

    Every reader has a cursor of its own and asks what was noted since. A reader that comes too late
    is told so, and starts over.
    """

    LIMIT: Final = 1 << 15

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._facts: list[int] = []
        self._first = 0

    @property
    def position(self) -> int:
        """Return the cursor of a reader that has seen everything."""
        return self._first + len(self._rows)

    def note(self, row: int, facts: int) -> None:
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
        start = cursor - self._first
        if start < 0:
            return None
        return self._rows[start:], self._facts[start:]
