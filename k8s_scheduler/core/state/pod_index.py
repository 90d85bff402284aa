"""Placed pods as columns: where each is, its labels, its terms, whether it is on its way out.

The columns are dense: the last pod moves into the place of one that leaves, so counting is a
pass over whole arrays without holes. Nobody but the cache keeps a position. What was counted once
is kept up to date (`counters`).
"""

import numpy as np

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.held_terms import HeldTerms
from k8s_scheduler.core.state.label_sets import LabelSets
from k8s_scheduler.core.state.labels import LabelColumns
from k8s_scheduler.core.state.live_counters import CountedFacts, Counters


class PodIndex:
    """All placed pods, in no particular order."""

    def __init__(self, node_labels: LabelColumns) -> None:
        """Know the labels of the nodes that pods are on."""
        self.label_sets = LabelSets()
        self.held_terms = HeldTerms()
        self._columns = Columns()
        self._columns.add("row", np.int64)
        self._columns.add("label_set", np.int64)
        self._columns.add("holder", np.int64)
        self._columns.add("terminating", np.bool_)
        self._columns.add("priority", np.int64)
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
        self._columns.reserve(len(self._uids))
        self._write(position, facts, pod.spec.priority)
        self.counters.count(facts, 1)
        self._count_priority(pod.spec.priority or 0, 1)

    def remove(self, uid: PodUid) -> None:
        """Let a pod go."""
        position = self._positions.pop(uid)
        facts = self._facts_at(position)
        self._count_priority(int(self._columns["priority"][position]), -1)
        last = len(self._uids) - 1
        moved = self._uids.pop()
        if position != last:
            self._uids[position] = moved
            self._positions[moved] = position
            for name in self._columns.family(""):
                column = self._columns[name]
                column[position] = column[last]
        self.counters.count(facts, -1)
        self._release(facts)

    def update(self, uid: PodUid, pod: Pod, row: NodeRow) -> None:
        """Take a pod's new facts."""
        position = self._positions[uid]
        before, after = self._facts_at(position), self._acquire(pod, row)
        self._count_priority(int(self._columns["priority"][position]), -1)
        self._count_priority(pod.spec.priority or 0, 1)
        self._write(position, after, pod.spec.priority)
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

    def _write(self, position: int, facts: CountedFacts, priority: int | None) -> None:
        columns = self._columns
        columns["row"][position] = facts.row
        columns["label_set"][position] = facts.label_set
        columns["holder"][position] = facts.holder
        columns["terminating"][position] = facts.terminating
        columns["priority"][position] = priority or 0

    def _facts_at(self, position: int) -> CountedFacts:
        columns = self._columns
        return CountedFacts(
            int(columns["row"][position]),
            int(columns["label_set"][position]),
            int(columns["holder"][position]),
            bool(columns["terminating"][position]),
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
