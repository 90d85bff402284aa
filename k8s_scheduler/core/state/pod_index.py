"""Placed pods as columns: where each is, its labels, its terms, whether it is on its way out.

The columns are dense: the last pod moves into the place of one that leaves, so counting is a
pass over whole arrays without holes. Nobody but the cache keeps a position. What was counted once
is kept up to date (`counters`).
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.held_terms import HeldTerms
from k8s_scheduler.core.state.label_sets import LabelSets
from k8s_scheduler.core.state.labels import LabelColumns
from k8s_scheduler.core.state.live_counters import CountedFacts, Counters

# In the order of `CountedFacts`, and the priority.
_COLUMNS: Final[Mapping[str, type[np.generic]]] = {
    "row": np.int64,
    "label_set": np.int64,
    "holder": np.int64,
    "terminating": np.bool_,
    "priority": np.int64,
}


class PodIndex:
    """All placed pods, in no particular order."""

    def __init__(self, node_labels: LabelColumns) -> None:
        """Know the labels of the nodes that pods are on."""
        self.label_sets = LabelSets()
        self.held_terms = HeldTerms()
        self._columns = Columns()
        for name, dtype in _COLUMNS.items():
            self._columns.add(name, dtype)
        self._keep_cells()
        self._positions: dict[PodUid, int] = {}
        self._uids: list[PodUid] = []
        # By priority: how many pods have it.
        self._priorities: dict[int, int] = {}
        self.counters = Counters(
            labels=node_labels,
            label_sets=self.label_sets,
            held_terms=self.held_terms,
            placed=self.column,
        )

    def __len__(self) -> int:
        return len(self._uids)

    def add(self, uid: PodUid, pod: Pod, row: NodeRow) -> None:
        """Take in a pod."""
        facts = self._acquire(pod, row)
        position = len(self._uids)
        self._uids.append(uid)
        self._positions[uid] = position
        if position >= self._columns.capacity:
            self._columns.reserve(position + 1)
            self._keep_cells()
        priority = pod.spec.priority or 0
        self._write(position, facts, priority)
        self.counters.count(facts, 1)
        self._count_priority(priority, 1)

    def remove(self, uid: PodUid) -> None:
        """Let a pod go."""
        position = self._positions.pop(uid)
        facts = self._facts_at(position)
        self._count_priority(self._priority_cells[position], -1)
        last = len(self._uids) - 1
        moved = self._uids.pop()
        if position != last:
            self._uids[position] = moved
            self._positions[moved] = position
            for cells in self._cells:
                cells[position] = cells[last]
        self.counters.count(facts, -1)
        self._release(facts)

    def update(self, uid: PodUid, pod: Pod, row: NodeRow) -> None:
        """Take a pod's new facts."""
        position = self._positions[uid]
        before, after = self._facts_at(position), self._acquire(pod, row)
        priority = pod.spec.priority or 0
        self._count_priority(self._priority_cells[position], -1)
        self._count_priority(priority, 1)
        self._write(position, after, priority)
        if after != before:
            self.counters.recount(before, after)
        self._release(before)

    def has_lesser(self, priority: int) -> bool:
        """Return whether any pod is less important than that."""
        return any(each < priority for each in self._priorities)

    def _count_priority(self, priority: int, difference: int) -> None:
        count = self._priorities.get(priority, 0) + difference
        if count:
            self._priorities[priority] = count
        else:
            del self._priorities[priority]

    def column(self, name: str) -> AnyColumn:
        """Return one column, all pods. Do not write to it."""
        return self._columns[name][: len(self._uids)]

    def _keep_cells(self) -> None:
        """Look at the columns anew, once they have grown: single numbers are fast this way."""
        # numpy's stubs call an array a buffer from Python 3.12 on.
        buffers: list[Any] = [self._columns[name] for name in _COLUMNS]
        self._cells: list[memoryview] = [memoryview(buffer) for buffer in buffers]
        self._priority_cells = self._cells[-1]

    def _write(self, position: int, facts: CountedFacts, priority: int) -> None:
        rows, label_sets, holders, terminating, priorities = self._cells
        rows[position] = facts.row
        label_sets[position] = facts.label_set
        holders[position] = facts.holder
        terminating[position] = facts.terminating
        priorities[position] = priority

    def _facts_at(self, position: int) -> CountedFacts:
        rows, label_sets, holders, terminating, _ = self._cells
        return CountedFacts(
            rows[position], label_sets[position], holders[position], bool(terminating[position])
        )

    def _acquire(self, pod: Pod, row: NodeRow) -> CountedFacts:
        metadata = pod.metadata
        label_set = self.label_sets.acquire(metadata.namespace, metadata.labels)
        if self.label_sets.uses(label_set) == 1:
            self.counters.meet_set(label_set, metadata.namespace, metadata.labels or {})
        holder = self.held_terms.acquire_for(pod)
        if holder and self.held_terms.uses(holder) == 1:
            self.counters.meet_holder(holder, self.held_terms.terms_of_holder(holder))
        return CountedFacts(row, label_set, holder, is_terminating(pod))

    def _release(self, facts: CountedFacts) -> None:
        self.label_sets.release(facts.label_set)
        if not self.label_sets.uses(facts.label_set):
            self.counters.forget_set(facts.label_set)
        self.held_terms.release(facts.holder)
        if facts.holder and not self.held_terms.uses(facts.holder):
            self.counters.forget_holder(facts.holder)
