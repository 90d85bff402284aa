"""Node labels as columns: for each key that is asked for, the value of every row as a small id.

A column is made when the first selector or topology names its key and kept up to date from then
on; other keys cost nothing. Equal values have equal ids across keys.

Ids are numbers without gaps, because arrays are indexed by them: one for each domain of a topology.
An id means the same value until the values are *renumbered*, which happens when many of them belong
to no node any more, and when columns take too much memory. Renumbering begins another `epoch`, in
which ids, columns and arrays by id of an earlier one mean nothing; code that keeps such a thing
compares epochs first. Nothing is renumbered in the middle of a decision: only `put` and `tidy` do.

The labels of pods are kept in the same way (`label_sets`), one row for each set of them. There are
always new ones, so columns and values that no row has any more are forgotten there at once, and ids
are never given to another value.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.api.selectors.nodes import whole_number
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.nodes.key_holders import KeyHolders
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ABSENT = -1
UNKNOWN = -2
PREFIX = "label/"
_NO_LABELS: Labels = {}

# Told of every change in a column: (key, row, id before, id now).
Moved: TypeAlias = Callable[[str, NodeRow, int, int], None]
# Told of a key that a node has and none had before.
Appeared: TypeAlias = Callable[[str], None]
# Told that ids have got another meaning.
Renumbered: TypeAlias = Callable[[], None]


class LabelColumns:
    """The labels of the nodes in one table."""

    # Columns may take so much memory from one decision to the next.
    MAX_BYTES: Final = 128 * 1024 * 1024
    # So many ids may mean values that no node has, besides an eighth of those that are in use.
    SPARE: Final = 256
    # So many columns may be of keys that no node has any more, besides an eighth of the others.
    SPARE_COLUMNS: Final = 64

    def __init__(self, columns: Columns, *, forgets: bool = False) -> None:
        """Keep labels in columns; with `forgets`, none for longer than some row has it.

        Then no id and no column may be kept from one change to the next.
        """
        self._columns = columns
        self._forgets = forgets
        # Another number once ids mean other values; and once there is another id, too.
        self.epoch = 0
        self.generation = 0
        # By id: how many cells hold it.
        self._uses: dict[int, int] = {}
        self._keys: list[str] = []
        self._labels: dict[NodeRow, Labels] = {}
        self._holders = KeyHolders()
        # Keys with a column that no node has any more; a dict stands for an ordered set.
        self._idle: dict[str, None] = {}
        self._ids: dict[str, int] = {}
        self._values: dict[int, str] = {}
        # How many ids were given.
        self.value_count = 0
        self._has_new_columns = False
        # By key: its column, to read single numbers from.
        self._cells: dict[str, memoryview] = {}
        # By key: the ids that some node has; gone as soon as a node gets another one.
        self._in_use: dict[str, npt.NDArray[np.int64]] = {}
        self._moved: Moved | None = None
        self._appeared: list[Appeared] = []
        self._renumbered: Renumbered | None = None

    def listen(self, moved: Moved, appeared: Appeared, renumbered: Renumbered) -> None:
        self._moved, self._renumbered = moved, renumbered
        self._appeared.append(appeared)

    def on_new_key(self, appeared: Appeared) -> None:
        self._appeared.append(appeared)

    def put(self, row: NodeRow, labels: Labels | None) -> None:
        known = self._labels.pop(row, _NO_LABELS)
        labels = labels or _NO_LABELS
        if labels:
            self._labels[row] = labels
        else:
            self._labels = compact(self._labels)
        self._count_keys(row, known, labels)
        for key in self._keys:
            value = labels.get(key)
            if value != known.get(key):
                self._move(key, row, value)
        if self._forgets:
            self._forget_columns(known)
            self._ids, self._values = compact(self._ids), compact(self._values)
            self._uses = compact(self._uses)
        else:
            self._give_back()

    def renew(self, row: NodeRow, labels: Labels | None) -> None:
        """Hold equal labels as the node has them now: nothing else needs the older copy."""
        if labels:
            self._labels[row] = labels

    def _count_keys(self, row: NodeRow, known: Labels, labels: Labels) -> None:
        holders = self._holders
        for key in labels:
            if key not in known and holders.add(key, row):
                self._idle.pop(key, None)
                for appeared in self._appeared:
                    appeared(key)
        for key in known:
            if key not in labels:
                holders.remove(key, row)
                if key not in holders and self.has_column(key):
                    self._idle[key] = None
        holders.compact()

    def column(self, key: str) -> AnyColumn:
        """Return the value ids of a key, ABSENT where a node does not have it.

        A key that no node has gets no column: selectors may name anything.
        """
        name = PREFIX + key
        if name not in self._columns:
            if key not in self._holders:
                return np.full(self._columns.capacity, ABSENT, dtype=np.int64)
            column = self._columns.add(name, np.int64, fill=ABSENT)
            self._has_new_columns = True
            self._keys.append(key)
            rows = self._holders.rows(key)
            if rows is None:
                rows = tuple(self._labels)
            values = [self._labels[row].get(key) for row in rows]
            ids = {}
            for value, count in Counter(values).items():
                ids[value] = found = self._id_of(value)
                if found != ABSENT:
                    self._uses[found] = self._uses.get(found, 0) + count
            column[list(rows)] = list(map(ids.__getitem__, values))
        return self._columns[name]

    def id_at(self, row: int, key: str) -> int:
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
        return self._holders.count(key)

    @property
    def capacity(self) -> int:
        """Return for how many rows there is room: the length of the columns."""
        return self._columns.capacity

    def known_id(self, value: str) -> int:
        """Return the id of a value; UNKNOWN if no node has it in any column."""
        return self._ids.get(value, UNKNOWN)

    def value(self, value_id: int) -> str:
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
            self.generation += 1
        return found

    def _use(self, value_id: int) -> None:
        if value_id != ABSENT:
            self._uses[value_id] = self._uses.get(value_id, 0) + 1

    def _release(self, value_id: int) -> None:
        """Count one cell less; where values are forgotten, the last one forgets it."""
        if value_id == ABSENT:
            return
        left = self._uses[value_id] = self._uses[value_id] - 1
        if left:
            return
        del self._uses[value_id]
        if self._forgets:
            del self._ids[self._values.pop(value_id)]

    # Giving back

    def forget_cells(self) -> None:
        """Forget views of columns: these were cut, and may grow to the same length again."""
        self._cells = {}

    def tidy(self) -> None:
        """Give back columns, if there are too many since the last time; see `epoch`."""
        if self._has_new_columns:
            self._has_new_columns = False
            self._give_back()

    def _give_back(self) -> None:
        """Begin another epoch, if much is kept that no node has, or too much in all."""
        used, idle = len(self._uses), len(self._idle)
        too_many = (
            self.value_count - used > self.SPARE + used // 8
            or idle > self.SPARE_COLUMNS + (len(self._keys) - idle) // 8
        )
        if too_many or 8 * len(self._keys) * self.capacity > self.MAX_BYTES:
            self._renumber()

    def _renumber(self) -> None:
        self._forget_columns(list(self._keys))
        if 8 * len(self._keys) * self.capacity > self.MAX_BYTES:
            # The oldest stay: what pods always ask for was asked for first. The others come back
            # one by one, when they are asked for.
            for key in self._keys[self.MAX_BYTES // (4 * 8 * self.capacity) :]:
                self._drop_column(key)
        used = sorted(self._uses)
        # One place more, for the id of an absent label, which stays.
        numbers = np.full(self.value_count + 1, ABSENT, dtype=np.int64)
        numbers[used] = np.arange(len(used))
        for key in self._keys:
            column = self._columns[PREFIX + key]
            column[:] = numbers.take(column)
        self._uses = {number: self._uses[before] for number, before in enumerate(used)}
        self._values = {number: self._values[before] for number, before in enumerate(used)}
        self._ids = {value: number for number, value in self._values.items()}
        self._in_use.clear()
        self.value_count = len(used)
        self.epoch += 1
        self.generation += 1
        if self._renumbered is not None:
            self._renumbered()

    def _forget_columns(self, keys: Iterable[str]) -> None:
        """Drop the columns of those keys that no row has any more."""
        for key in keys:
            if key not in self._holders and self.has_column(key):
                self._drop_column(key)

    def _drop_column(self, key: str) -> None:
        column = self._columns[PREFIX + key]
        counts = np.bincount(column[column >= 0])
        for value_id in np.flatnonzero(counts).tolist():
            self._uses[value_id] -= int(counts[value_id])
            if not self._uses[value_id]:
                del self._uses[value_id]
        self._keys.remove(key)
        self._idle.pop(key, None)
        self._cells.pop(key, None)
        self._cells = compact(self._cells)
        self._in_use.pop(key, None)
        self._columns.drop(PREFIX + key)


class LabelNumbers:
    """By id of a value: the whole number that it is, if it is one. Each value is read once."""

    def __init__(self, labels: LabelColumns) -> None:
        self._labels = labels
        self._start_over()

    def _start_over(self) -> None:
        self._epoch = self._labels.epoch
        self._numbers: Numbers = np.zeros(1, dtype=np.int64)
        self._is_number: Mask = np.zeros(1, dtype=np.bool_)

    def at(self, ids: Numbers) -> tuple[Numbers, Mask]:
        """Return the numbers of some ids, and which of them are any; an absent label is none."""
        self._read_new_values()
        # An absent label finds the last place.
        return self._numbers[ids], self._is_number[ids]

    def _read_new_values(self) -> None:
        labels = self._labels
        if labels.epoch != self._epoch:
            # Ids mean other values.
            self._start_over()
        known = len(self._numbers) - 1
        if known == labels.value_count:
            return
        found = [whole_number(labels.value(i)) for i in range(known, labels.value_count)]
        new = np.array([*(number or 0 for number in found), 0], dtype=np.int64)
        self._numbers = np.concatenate([self._numbers[:-1], new])
        is_number = [*(number is not None for number in found), False]
        self._is_number = np.concatenate([self._is_number[:-1], np.array(is_number)])
