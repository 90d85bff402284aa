"""Placed pods as columns: where each is, its labels, its terms, whether it is on its way out.

The columns are dense: the last pod moves into the place of one that leaves, so counting is a
pass over whole arrays without holes. Nobody but the cache keeps a position.
"""

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.held_terms import HeldTerms, readable_terms_of
from k8s_scheduler.core.state.label_sets import LabelSets

Counts = npt.NDArray[np.int64]


class PodIndex:
    """All placed pods, in no particular order."""

    def __init__(self) -> None:
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

    def __len__(self) -> int:
        return len(self._uids)

    def add(self, uid: PodUid, pod: Pod, row: NodeRow) -> None:
        """Take in a pod."""
        position = len(self._uids)
        self._uids.append(uid)
        self._positions[uid] = position
        self._columns.reserve(len(self._uids))
        self._write(position, pod, row)

    def remove(self, uid: PodUid) -> None:
        """Let a pod go."""
        position = self._positions.pop(uid)
        self._release(position)
        last = len(self._uids) - 1
        moved = self._uids.pop()
        if position != last:
            self._uids[position] = moved
            self._positions[moved] = position
            for name in self._columns.family(""):
                column = self._columns[name]
                column[position] = column[last]

    def update(self, uid: PodUid, pod: Pod, row: NodeRow) -> None:
        """Take a pod's new facts."""
        position = self._positions[uid]
        self._release(position)
        self._write(position, pod, row)

    def column(self, name: str) -> AnyColumn:
        """Return one column, all pods. Do not write to it."""
        return self._columns[name][: len(self._uids)]

    def _write(self, position: int, pod: Pod, row: NodeRow) -> None:
        columns = self._columns
        columns["row"][position] = row
        columns["label_set"][position] = self.label_sets.acquire(
            pod.metadata.namespace, pod.metadata.labels
        )
        columns["holder"][position] = self.held_terms.acquire(readable_terms_of(pod))
        columns["terminating"][position] = is_terminating(pod)
        columns["priority"][position] = pod.spec.priority or 0

    def _release(self, position: int) -> None:
        self.label_sets.release(int(self._columns["label_set"][position]))
        self.held_terms.release(int(self._columns["holder"][position]))
