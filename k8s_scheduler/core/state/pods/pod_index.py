"""Placed pods as columns: where each is, its labels, its terms, whether it is on its way out.

The columns are dense: the last pod moves into the place of one that leaves, so counting is a
pass over whole arrays without holes. A pod's record says where in the columns it is, for the
index alone. What was counted once is kept up to date (`live_counters`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.api.ports import HostPort
from k8s_scheduler.api.resources import Requests
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.counts.label_sets import LabelSets
from k8s_scheduler.core.state.counts.live_counters import CountedFacts, Counters
from k8s_scheduler.core.state.counts.pod_counter import Crowd
from k8s_scheduler.core.state.nodes.labels import LabelColumns
from k8s_scheduler.core.state.pods.lowest_priorities import LowestPriorities
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.terms.held_terms import NO_TERMS, HeldTerms

# In the order of `CountedFacts`, and the priority.
_COLUMNS: Final[Mapping[str, type[np.generic]]] = {
    "row": np.int64,
    "label_set": np.int64,
    "holder": np.int64,
    "terminating": np.bool_,
    "priority": np.int64,
}


class Placed(msgspec.Struct, eq=False, gc=False):
    """A pod that takes room. There is one for every pod of the cluster, so it is a small one."""

    pod: Pod
    row: NodeRow
    requests: Requests
    ports: tuple[HostPort, ...]
    assumed: bool
    # Where the index has it.
    position: int = -1


class PodIndex:
    """All placed pods, in no particular order."""

    def __init__(self, node_labels: LabelColumns) -> None:
        self.label_sets = LabelSets()
        self.held_terms = HeldTerms(lambda key: node_labels.holder_count(key) > 0)
        self._columns = Columns()
        for name, dtype in _COLUMNS.items():
            self._columns.add(name, dtype)
        self._keep_cells()
        # By position.
        self._placed: list[Placed] = []
        # By priority: how many pods have it.
        self._priorities: dict[int, int] = {}
        self.lowest = LowestPriorities()
        self.counters = Counters(
            labels=node_labels,
            label_sets=self.label_sets,
            held_terms=self.held_terms,
            placed=self.column,
        )

    def __len__(self) -> int:
        return len(self._placed)

    def add(self, placed: Placed) -> None:
        pod, row = placed.pod, placed.row
        metadata, spec = pod.metadata, pod.spec
        label_set = self.label_sets.acquire(metadata.namespace, metadata.labels)
        holder = NO_TERMS if spec.affinity is None else self.held_terms.acquire_for(pod)
        terminating = is_terminating(pod)
        priority = spec.priority or 0
        position = placed.position = len(self._placed)
        self._placed.append(placed)
        if position >= self._columns.capacity:
            self._columns.reserve(position + 1)
            self._keep_cells()
        rows, label_sets, holders, leaving, priorities = self._cells
        rows[position] = row
        label_sets[position] = label_set
        holders[position] = holder
        leaving[position] = terminating
        priorities[position] = priority
        counters = self.counters
        if holder != NO_TERMS or terminating or counters.readers:
            counters.count(row, label_set, holder, terminating, 1)
        else:
            # It counts for the counters that pick its labels alone, like most pods.
            for counter in counters.concerned.get(label_set, ()):
                counter.change(row, 1)
        self._priorities[priority] = self._priorities.get(priority, 0) + 1
        self.lowest.stale[row] = None

    def remove(self, placed: Placed) -> None:
        position = placed.position
        rows, label_sets, holders, leaving, priorities = self._cells
        row, label_set, holder = rows[position], label_sets[position], holders[position]
        terminating = bool(leaving[position])
        self._uncount_priority(priorities[position])
        self.lowest.stale[row] = None
        moved = self._placed.pop()
        if moved is not placed:
            self._placed[position] = moved
            moved.position = position
            last = len(self._placed)
            for cells in self._cells:
                cells[position] = cells[last]
        counters = self.counters
        if holder != NO_TERMS or counters.readers or label_set in counters.concerned:
            counters.count(row, label_set, holder, terminating, -1)
        self.label_sets.release(label_set)
        self.held_terms.release(holder)
        capacity = self._columns.capacity
        self._columns.release(len(self._placed))
        if self._columns.capacity != capacity:
            self._keep_cells()

    def update(self, placed: Placed, pod: Pod) -> None:
        position, row = placed.position, placed.row
        metadata, spec = pod.metadata, pod.spec
        _, label_sets, holders, leaving, priorities = self._cells
        former, released, was_leaving = label_sets[position], holders[position], leaving[position]
        label_set = self.label_sets.acquire(metadata.namespace, metadata.labels)
        holder = NO_TERMS if spec.affinity is None else self.held_terms.acquire_for(pod)
        terminating = is_terminating(pod)
        priority = spec.priority or 0
        if priority != priorities[position]:
            self._uncount_priority(priorities[position])
            self._priorities[priority] = self._priorities.get(priority, 0) + 1
            priorities[position] = priority
            self.lowest.stale[row] = None
        label_sets[position] = label_set
        holders[position] = holder
        leaving[position] = terminating
        concerned = self.counters.concerned
        if (
            holder != released
            or terminating != was_leaving
            or (label_set != former and self.counters.readers)
            # Those that concern the same counters share one tuple: most labels mean nothing.
            or concerned.get(label_set) is not concerned.get(former)
        ):
            self.counters.recount(
                CountedFacts(row, former, released, bool(was_leaving)),
                CountedFacts(row, label_set, holder, terminating),
            )
        self.label_sets.release(former)
        if released != NO_TERMS:
            self.held_terms.release(released)

    def crowd(self, pods: Sequence[Placed]) -> Crowd:
        positions = np.array([placed.position for placed in pods], dtype=np.int64)
        label_sets, holders, terminating = [
            self._columns[name].take(positions) for name in ("label_set", "holder", "terminating")
        ]
        return Crowd(
            label_sets=label_sets,
            holders=holders,
            terminating=terminating,
            amounts=self.counters.amounts,
        )

    def forget_rows(self) -> None:
        """Let go of what is known by row: it may be of rows that are gone. No pod is on those."""
        self.lowest.forget()
        self.counters.drop_all()

    def has_lesser(self, priority: int) -> bool:
        return any(each < priority for each in self._priorities)

    def _uncount_priority(self, priority: int) -> None:
        count = self._priorities[priority] - 1
        if count:
            self._priorities[priority] = count
        else:
            del self._priorities[priority]

    def column(self, name: str) -> AnyColumn:
        """Return one column, all pods. Do not write to it."""
        return self._columns[name][: len(self._placed)]

    def _keep_cells(self) -> None:
        """Look at the columns anew, once they have grown: single numbers are fast this way."""
        # numpy's stubs call an array a buffer from Python 3.12 on.
        buffers: list[Any] = [self._columns[name] for name in _COLUMNS]
        self._cells: list[memoryview] = [memoryview(buffer) for buffer in buffers]
