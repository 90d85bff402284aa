"""Nodes as columns: one row per node, one numpy column per fact.

A row may outlive its node: pods that still sit on a deleted node, or were seen before their
node, keep the row ("ghost"); it takes part in no decision until the node (re)appears. A row
without node and pods is freed and used again for the next newcomer, lowest row first, so that
equal histories give equal tables. Many free rows at the end are given back (`shorten`).

The columns and what they mean are listed in `news/facts`. Cpu is in thousandths, the rest in whole
units. Resources are kept apart (`amounts`): those that nodes offer have columns, and others read as
if they had. Columns of labels are made when a key is first read. Images and host ports are indexes
beside the columns.

Each part says whether an update changed it, so what a node's new version means is compared once:
`put_node` returns the facts, and everything else follows from them.
"""

import heapq
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.resources import allocatable
from k8s_scheduler.api.taints import TaintSet
from k8s_scheduler.core.state.amounts.amounts import Amounts
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.interning import Interner, Value
from k8s_scheduler.core.state.news.facts import (
    ALL_OF_A_NODE,
    ALLOCATABLE,
    COLUMNS,
    FEATURES,
    IMAGES,
    LABELS,
    TAINTS,
    UNSCHEDULABLE,
)
from k8s_scheduler.core.state.nodes.images import ImageIndex
from k8s_scheduler.core.state.nodes.labels import LabelColumns, LabelNumbers
from k8s_scheduler.core.state.nodes.ports import PortIndex
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

Rows = npt.NDArray[np.int64]

FeatureSet = tuple[str, ...]


class NodeTable:
    """The nodes of the cluster."""

    # So many free rows at the end are not worth cutting off.
    SPARED: Final = 1024

    def __init__(self) -> None:
        self._columns = Columns()
        self._rows: dict[NodeName, NodeRow] = {}
        self._names: list[NodeName | None] = []
        self._nodes: dict[NodeRow, Node] = {}
        self._free: list[NodeRow] = []
        self._present: Rows | None = None
        # What `present_rows` returned last, if these are the first rows without a gap; otherwise
        # None. Behind them there may be ghosts and free rows.
        self.all_rows: Rows | None = None
        self.amounts = Amounts()
        self.taint_sets: Interner[TaintSet] = Interner(first=TaintSet())
        self.feature_sets: Interner[FeatureSet] = Interner(first=())
        self.labels = LabelColumns(self._columns)
        self.label_numbers = LabelNumbers(self.labels)
        self.images = ImageIndex()
        self.ports = PortIndex()
        for entry in COLUMNS:
            if entry.dtype is not None:
                self._columns.add(entry.name, entry.dtype)

    # Reading

    def column(self, name: str) -> AnyColumn:
        """Return a column to read; a resource that is neither offered nor used is 0 everywhere."""
        if name in self._columns:
            return self._columns[name]
        return self.amounts.column(name)

    def row_of(self, name: NodeName) -> NodeRow | None:
        return self._rows.get(name)

    def name_of(self, row: NodeRow) -> NodeName:
        name = self._names[row]
        if name is None:
            raise KeyError(row)
        return name

    def node_at(self, row: NodeRow) -> Node | None:
        return self._nodes.get(row)

    def present_rows(self) -> Rows:
        """Return the rows that hold a node, ascending. Do not write to it."""
        if self._present is None:
            self._present = np.fromiter(sorted(self._nodes), dtype=np.int64, count=len(self))
            is_dense = not len(self) or int(self._present[-1]) == len(self) - 1
            self.all_rows = self._present if is_dense else None
        return self._present

    def __len__(self) -> int:
        return len(self._nodes)

    # Nodes

    def put_node(self, node: Node) -> tuple[NodeRow, int]:
        """Add a node or take its new version; return its row and which facts are others now.

        A bad one raises QuantityError and changes nothing.
        """
        offered = allocatable(node.status.allocatable)
        row = self.claim_row(NodeName(node.metadata.name))
        facts = self._write_spec(row, node)
        if self.amounts.offer(row, offered):
            facts |= ALLOCATABLE
        if self.images.put(row, node.status.images):
            facts |= IMAGES
        known = self._nodes.get(row)
        self._nodes[row] = node
        if known is None:
            self._forget_who_is_present()
            facts = ALL_OF_A_NODE
        elif known.metadata.labels != node.metadata.labels:
            facts |= LABELS
        if facts & LABELS:
            self.labels.put(row, node.metadata.labels)
        else:
            self.labels.renew(row, node.metadata.labels)
        return row, facts

    def remove_node(self, name: NodeName) -> NodeRow | None:
        """Take a node away and return the row it had; its pods, if any, keep it as a ghost."""
        row = self._rows.get(name)
        if row is None or self._nodes.pop(row, None) is None:
            return None
        self._nodes = compact(self._nodes)
        self._forget_who_is_present()
        self.amounts.offer(row, {})
        self._columns["unschedulable"][row] = False
        self._set_taints(row, TaintSet())
        self._set_features(row, ())
        self.labels.put(row, None)
        self.images.put(row, None)
        self.free_if_empty(row)
        return row

    def claim_row(self, name: NodeName) -> NodeRow:
        """Return the node's row, making one (a ghost) if it has none."""
        row = self._rows.get(name)
        if row is not None:
            return row
        if self._free:
            row = heapq.heappop(self._free)
            self._names[row] = name
        else:
            row = NodeRow(len(self._names))
            self._names.append(name)
            self._columns.reserve(len(self._names))
            self.amounts.reserve(len(self._names))
        self._rows[name] = row
        return row

    def free_if_empty(self, row: NodeRow) -> None:
        """Give the row back if it holds neither node nor pods; all its columns are at rest then."""
        name = self._names[row]
        if name is None or row in self._nodes or self.amounts.pod_count(row):
            return
        del self._rows[name]
        self._rows = compact(self._rows)
        self._names[row] = None
        heapq.heappush(self._free, row)

    def shorten(self) -> bool:
        """Cut off the free rows at the end, if they are at least as many as those before them.

        Return whether it did. Everything that is kept by row is void then, so it has to be rare:
        as many rows have been claimed and freed since the last time as are left, and `SPARED` at
        least. It depends on which rows are used and on nothing else, so that equal histories, and
        a table that is laid out from a checkpoint, go on alike. What is free before the last used
        row stays, for the next newcomers.
        """
        rows, free = len(self._names), len(self._free)
        if free < self.SPARED or 2 * free < rows:
            return False
        end = max(self._rows.values(), default=-1) + 1
        if rows - end < max(self.SPARED, end):
            return False
        del self._names[end:]
        # Sorted, it is a heap as well.
        self._free = sorted(row for row in self._free if row < end)
        self._columns.cut(end)
        self.amounts.cut(end)
        self.labels.forget_cells()
        self.images.forget_columns()
        # What is kept of all nodes may be as long as the table was.
        self._present = self.all_rows = None
        return True

    # Checkpoints

    def used_rows(self) -> Iterable[tuple[NodeRow, NodeName]]:
        for row, name in enumerate(self._names):
            if name is not None:
                yield NodeRow(row), name

    def lay_out(self, *, rows: int, names: dict[NodeRow, NodeName]) -> None:
        self._names = [names.get(NodeRow(row)) for row in range(rows)]
        self._rows = {name: row for row, name in names.items()}
        self._free = [NodeRow(row) for row in range(rows) if NodeRow(row) not in names]
        self._columns.reserve(rows)
        self.amounts.reserve(rows)
        self.all_rows = None

    @property
    def row_count(self) -> int:
        """Return how many rows are laid out, free ones included."""
        return len(self._names)

    # Facts

    def _forget_who_is_present(self) -> None:
        self._present = self.all_rows = None
        self.amounts.count_nodes(len(self._nodes))

    def _write_spec(self, row: NodeRow, node: Node) -> int:
        facts = 0
        column = self._columns["unschedulable"]
        if column[row] != node.spec.unschedulable:
            column[row] = node.spec.unschedulable
            facts = UNSCHEDULABLE
        if self._set_taints(row, TaintSet(node.spec.taints or ())):
            facts |= TAINTS
        if self._set_features(row, tuple(sorted(node.status.declared_features or ()))):
            facts |= FEATURES
        return facts

    def _set_taints(self, row: NodeRow, taints: TaintSet) -> bool:
        return _swap(self._columns["taint_set"], row, self.taint_sets, taints)

    def _set_features(self, row: NodeRow, features: FeatureSet) -> bool:
        return _swap(self._columns["feature_set"], row, self.feature_sets, features)


def _swap(column: AnyColumn, row: NodeRow, interner: Interner[Value], value: Value) -> bool:
    """Put a value's id in place of the one that is there; return whether it is another."""
    before = int(column[row])
    after = interner.acquire(value)
    interner.release(before)
    column[row] = after
    return before != after
