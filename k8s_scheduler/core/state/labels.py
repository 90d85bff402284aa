"""Node labels as columns: for each key somebody asks for, the value of every row as a small id.

A column is made when the first selector or topology names its key and kept up to date from then
on; keys nobody asks for cost nothing. Equal values have equal ids across keys, and an id is never
given to another value.

The labels of pods are kept in the same way (`label_sets`), one row for each set of them. There are
always new ones, so columns and values that no row has any more are forgotten there.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn, Columns

ABSENT = -1
UNKNOWN = -2
PREFIX = "label/"
_NO_LABELS: Labels = {}

# Told of every change in a column: (key, row, id before, id now).
Moved: TypeAlias = Callable[[str, NodeRow, int, int], None]
# Told of a key without a column that a node has and none had before.
Appeared: TypeAlias = Callable[[str], None]


class LabelColumns:
    """The labels of the nodes in one table."""

    def __init__(self, columns: Columns, *, forgets: bool = False) -> None:
        """Keep labels in columns; with `forgets`, none for longer than some row has it.

        Then nobody may remember an id or a column from one change to the next.
        """
        self._columns = columns
        self._forgets = forgets
        # By id: how many cells hold it. Only if values are forgotten.
        self._uses: dict[int, int] = {}
        self._keys: list[str] = []
        self._labels: dict[NodeRow, Labels] = {}
        self._holders: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._values: dict[int, str] = {}
        # How many ids were given.
        self.value_count = 0
        # By key: its column, to read single numbers from.
        self._cells: dict[str, memoryview] = {}
        # By key: the ids that some node has; gone as soon as a node gets another one.
        self._in_use: dict[str, npt.NDArray[np.int64]] = {}
        self._moved: Moved | None = None
        self._appeared: Appeared | None = None

    def listen(self, moved: Moved, appeared: Appeared) -> None:
        """Tell somebody of changes from now on."""
        self._moved, self._appeared = moved, appeared

    def put(self, row: NodeRow, labels: Labels | None) -> None:
        """Take a node's labels; None takes them away."""
        holders = self._holders
        known = self._labels.pop(row, None)
        if known is None:
            known = _NO_LABELS
        else:
            for key in known:
                count = holders[key] - 1
                if count:
                    holders[key] = count
                else:
                    del holders[key]
        if labels:
            self._labels[row] = labels
            for key in labels:
                if key in holders:
                    holders[key] += 1
                    continue
                if self._appeared and not self.has_column(key):
                    self._appeared(key)
                holders[key] = 1
        else:
            labels = _NO_LABELS
        for key in self._keys:
            value = labels.get(key)
            if value != known.get(key):
                self._move(key, row, value)
        self._forget_columns(known)

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
                column[row] = found = self._id_of(labels.get(key))
                self._use(found)
        return self._columns[name]

    def id_at(self, row: int, key: str) -> int:
        """Return what the column of a key says of a row."""
        cells = self._cells.get(key)
        # A column that has grown is another one.
        if cells is None or len(cells) != self._columns.capacity:
            # numpy's stubs call an array a buffer from Python 3.12 on.
            buffer: Any = self.column(key)
            cells = memoryview(buffer)
            if self.has_column(key):
                self._cells[key] = cells
        return cells[row]

    def has_column(self, key: str) -> bool:
        """Return whether a key has a column, whose changes are told."""
        return PREFIX + key in self._columns

    def ids_in_use(self, key: str) -> npt.NDArray[np.int64]:
        """Return the ids of the values of a key that some node has, ascending."""
        found = self._in_use.get(key)
        if found is None:
            column = self.column(key)
            found = np.flatnonzero(np.bincount(column[column >= 0]))
            found.flags.writeable = False
            if self.has_column(key):
                self._in_use[key] = found
        return found

    def holder_count(self, key: str) -> int:
        """Return how many nodes have a label with this key."""
        return self._holders.get(key, 0)

    @property
    def capacity(self) -> int:
        """Return for how many rows there is room: the length of the columns."""
        return self._columns.capacity

    def known_id(self, value: str) -> int:
        """Return the id of a value; UNKNOWN if no node has it in any column."""
        return self._ids.get(value, UNKNOWN)

    def value(self, value_id: int) -> str:
        """Return the value with an id."""
        return self._values[value_id]

    def _move(self, key: str, row: NodeRow, value: str | None) -> None:
        before, after = self.id_at(row, key), self._id_of(value)
        self._cells[key][row] = after
        self._use(after)
        self._release(before)
        if self._in_use:
            self._in_use.pop(key, None)
        if self._moved is not None:
            self._moved(key, row, before, after)

    def _id_of(self, value: str | None) -> int:
        if value is None:
            return ABSENT
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = self.value_count
            self._values[found] = value
            self.value_count += 1
        return found

    # Forgetting

    def _forget_columns(self, keys: Iterable[str]) -> None:
        """Drop the columns of keys that no row has any more, if that is how it is here."""
        if not self._forgets:
            return
        for key in keys:
            if key not in self._holders and self.has_column(key):
                self._keys.remove(key)
                self._cells.pop(key, None)
                self._in_use.pop(key, None)
                self._columns.drop(PREFIX + key)

    def _use(self, value_id: int) -> None:
        if self._forgets and value_id != ABSENT:
            self._uses[value_id] = self._uses.get(value_id, 0) + 1

    def _release(self, value_id: int) -> None:
        """Count one cell less; the last one forgets the value."""
        if not self._forgets or value_id == ABSENT:
            return
        self._uses[value_id] -= 1
        if not self._uses[value_id]:
            del self._uses[value_id]
            del self._ids[self._values.pop(value_id)]
