"""Node labels as columns: for each key somebody asks for, the value of every row as a small id.

A column is made when the first selector or topology names its key and kept up to date from then
on; keys nobody asks for cost nothing. Equal values have equal ids across keys.
"""

import numpy as np

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn, Columns

ABSENT = -1
UNKNOWN = -2
PREFIX = "label/"


class LabelColumns:
    """The labels of the nodes in one table."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._keys: list[str] = []
        self._labels: dict[NodeRow, Labels] = {}
        self._holders: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._values: list[str] = []

    def put(self, row: NodeRow, labels: Labels | None) -> None:
        """Take a node's labels; None takes them away."""
        for key in self._labels.pop(row, ()):
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
        if labels:
            self._labels[row] = labels
            for key in labels:
                self._holders[key] = self._holders.get(key, 0) + 1
        for key in self._keys:
            self._columns[PREFIX + key][row] = self._id_of((labels or {}).get(key))

    def column(self, key: str) -> AnyColumn:
        """Return the value ids of a key, ABSENT where a node does not have it.

        A key that no node has gets no column: selectors may name anything.
        """
        name = PREFIX + key
        if name not in self._columns:
            if key not in self._holders:
                return np.full(self._columns.capacity, ABSENT, dtype=np.int64)
            column = self._columns.add(name, np.int64, fill=ABSENT)
            self._keys.append(key)
            for row, labels in self._labels.items():
                column[row] = self._id_of(labels.get(key))
        return self._columns[name]

    def known_id(self, value: str) -> int:
        """Return the id of a value; UNKNOWN if no node has it in any column."""
        return self._ids.get(value, UNKNOWN)

    @property
    def value_count(self) -> int:
        """Return how many ids there are."""
        return len(self._values)

    def value(self, value_id: int) -> str:
        """Return the value with an id."""
        return self._values[value_id]

    def _id_of(self, value: str | None) -> int:
        if value is None:
            return ABSENT
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self._values)
            self._values.append(value)
        return found
