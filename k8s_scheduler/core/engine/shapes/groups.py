"""Rows that look alike to some plugins, so that one of each kind is asked for all.

What plugins have read of rows makes the keys; rows with equal values of all keys are a group. A
zone is one value for thousands of rows, so a count that changes in a zone regroups no row. Where
nearly every node is a domain of its own, the count itself is the value.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.engine.shapes.group_keys import LIMITS, GivenKey, Key, Values
from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.views.reads import NarrowRead, Reads
from k8s_scheduler.core.framework.views.rows_view import FEW, RowsView
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow

# The group of a row that holds no node.
NO_GROUP: Final = -1


class AskedGroups:
    """Some groups that are asked about, and a row of each.

    It stays the same object as long as these groups have feasible rows and no others do, their
    members are in them, and no node came, went or got other labels: views may be kept with it.
    """

    __slots__ = (
        "_addend",
        "_as_of",
        "_left",
        "_reads",
        "_views",
        "each",
        "groups",
        "members",
        "nodes",
        "total",
    )

    def __init__(self, groups: list[int], members: Values) -> None:
        self.groups = groups
        self.members = members
        # How many feasible rows each group has and all together, as of the last `count`; `nodes` is
        # written to, since views look at it.
        self.each: list[int] = []
        self.nodes = np.zeros(len(groups), dtype=np.int64)
        self.total = 0
        self._as_of = -1
        # What shows the members to plugins, and where they take down what is read.
        self._views: dict[int, RowsView] = {}
        self._reads: Reads | None = None
        # What is left of them, by the codes they are given.
        self._left: dict[tuple[int, ...], AskedGroups] = {}
        # By group, of these and others.
        self._addend: Values = members[:0]

    def left(self, codes: list[int]) -> "AskedGroups":
        """Return the groups that pass, by their codes."""
        key = tuple(codes)
        found = self._left.get(key)
        if found is None:
            if len(self._left) >= LIMITS.choices:
                self._left.clear()
            places = [place for place, code in enumerate(codes) if not code]
            groups = [self.groups[place] for place in places]
            found = self._left[key] = AskedGroups(groups, self.members.take(places))
        return found

    def addend(self, scores: Values | None, size: int) -> Values:
        """Return, for as many groups as there are, the scores of these; NEVER for others.

        Do not write to it.
        """
        if scores is not None and len(scores) == size:
            return scores
        if len(self._addend) != size:
            self._addend = np.full(size, NEVER, dtype=np.int64)
            self._addend[self.groups] = 0
        if scores is None:
            return self._addend
        found = self._addend.copy()
        found[self.groups] = scores
        return found

    def views(self, reads: Reads) -> dict[int, RowsView]:
        """Return the views that take down in `reads` what is read, by the plugin they are for."""
        if reads is not self._reads:
            self._reads = reads
            self._views = {}
        return self._views

    def count(self, counts: list[int], as_of: int) -> None:
        """Count the feasible rows, if they have changed."""
        if self._as_of != as_of:
            self._as_of = as_of
            self.each = each = list(map(counts.__getitem__, self.groups))
            self.nodes[:] = each
            self.total = sum(each)


class Groups:
    """Which row is in which group, and how many feasible rows each has."""

    def __init__(self, state: Tables) -> None:
        self._state = state
        # By what it goes by; several reads may come to the same.
        self._keys: dict[NarrowRead, Key | GivenKey] = {}
        # Those that go by counts, with their places.
        self._count_keys: list[tuple[int, Key]] = []
        # Of each read: whether rows with different counts are in different groups.
        self._told_apart: dict[NarrowRead, bool] = {}
        self._ids: dict[tuple[int, ...], int] = {}
        # By group: the values that its rows have in common, and one of them.
        self._values: list[tuple[int, ...]] = []
        self._members: list[int] = []
        # By row; and the same memory, for single numbers.
        self.of_row = np.zeros(0, dtype=np.intp)
        self._cells = _cells(self.of_row)
        # By group; and a number that is another one when they are.
        self.counts: list[int] = []
        self.count_changes = 0
        # What was last added by group; and by row, if it was the same several times.
        self._by_group: list[int] = []
        self._by_row: Values | None = None
        # The groups that have feasible rows; None if that has to be found out.
        self._asked: AskedGroups | None = None
        self.facts = 0

    def __len__(self) -> int:
        return len(self.counts)

    def is_told_apart(self, read: NarrowRead) -> bool:
        """Return whether rows with different counts are in different groups."""
        return self._told_apart[read]

    def add_keys(self, reads: dict[NarrowRead, None]) -> bool:
        """Take note of what was read; return whether groups have to be made anew for it."""
        is_new = False
        for read in reads:
            if read in self._told_apart:
                continue
            key = Key(read, self._state)
            self._told_apart[read] = key.goes_by_count
            self.facts |= key.facts
            if key.name not in self._keys:
                self._keys[key.name] = key
                is_new = True
        if is_new:
            self._find_count_keys()
        return is_new

    def mark(self, by_row: Values) -> None:
        """Tell rows apart by a number of each, too, from the next lay-out on."""
        # What plugins read has no such name.
        self._keys[""] = GivenKey(by_row)
        self._find_count_keys()

    def _find_count_keys(self) -> None:
        keys = enumerate(self._keys.values())
        self._count_keys = [
            (place, key) for place, key in keys if isinstance(key, Key) and key.goes_by_count
        ]

    def lay_out(self, present: Values, feasible: npt.NDArray[np.bool_]) -> None:
        """Group all rows anew; `feasible` is by row."""
        columns = [key.values(present) for key in self._keys.values()]
        for key in self._keys.values():
            if key.counter is not None:
                key.cursor = key.counter.version
        mixed = np.zeros(len(present), dtype=np.int64)
        for column in columns:
            # Absent labels are -1, and weights may be anything.
            values = column - min(int(column.min(initial=0)), -1)
            size = int(values.max(initial=0)) + 1
            mixed = _dense(mixed) * size + values
        ids = _dense(mixed)
        count = int(ids.max(initial=-1)) + 1
        if count > LIMITS.groups:
            # Nearly every row is different: nothing is won by asking one for others.
            raise NotKeptError("many_groups")
        self._take(np.full(self._state.nodes.row_count, NO_GROUP, dtype=np.intp))
        self.of_row[present] = ids
        first = np.zeros(count, dtype=np.int64)
        first[ids[::-1]] = np.arange(len(present) - 1, -1, -1)
        self._members = present[first].tolist()
        self._values = list(zip(*(column[first].tolist() for column in columns), strict=True))
        if not columns:
            self._values = [()] * count
        self._ids = {values: number for number, values in enumerate(self._values)}
        counted = self.of_row[feasible[: len(self.of_row)]]
        self.counts = np.bincount(counted, minlength=count).tolist()
        self.count_changes += 1

    def _take(self, of_row: npt.NDArray[np.intp]) -> None:
        self.of_row = of_row
        self._cells = _cells(of_row)
        self._asked = None
        self._by_row = None

    def stale_rows(self, *, have_moved: bool) -> list[int] | None:
        """Return the rows that may be in another group since counters changed; None: any may.

        `have_moved` says that nodes came, went or got other labels.
        """
        if have_moved:
            self._asked = None
            for _, key in self._count_keys:
                key.stands_alone = None
        found: list[int] = []
        for _, key in self._count_keys:
            rows = key.catch_up()
            if rows is None:
                return None
            found = found + rows if found else rows
        return found

    def place(self, rows: list[int], counted: list[bool]) -> None:
        """Put rows where they belong now: those that hold no node any more, nowhere.

        Those that are counted stay counted.
        """
        there = self._state.nodes.node_at
        here = []
        for row, counts_here in zip(rows, counted, strict=True):
            if there(NodeRow(row)) is None:
                self._put(row, NO_GROUP, counts_here=counts_here)
            else:
                here.append((row, counts_here))
        array = np.array([row for row, _ in here], dtype=np.int64)
        columns = [key.values(array).tolist() for key in self._keys.values()]
        values = zip(*columns, strict=True) if columns else [()] * len(here)
        for (row, counts_here), value in zip(here, values, strict=True):
            self._put(row, self._group_of(value, row), counts_here=counts_here)

    def place_by_counts(self, rows: list[int], counted: list[bool]) -> None:
        """Put rows where they belong now, if nothing but counts has changed."""
        cells = self._cells
        for row, counts_here in zip(rows, counted, strict=True):
            before = cells[row]
            if before == NO_GROUP:
                # It holds no node.
                continue
            values = list(self._values[before])
            for position, key in self._count_keys:
                values[position] = key.count_at(row)
            found = tuple(values)
            group = self._ids.get(found)
            if group is None:
                group = self._found(found, row)
            if group != before:
                self._move(row, before, group, counts_here=counts_here)

    def _group_of(self, values: tuple[int, ...], row: int) -> int:
        """Return the group of rows with these values; the row is its first, if there is none."""
        group = self._ids.get(values)
        return self._found(values, row) if group is None else group

    def _put(self, row: int, group: int, *, counts_here: bool) -> None:
        before = self._cells[row]
        if group != before:
            self._move(row, before, group, counts_here=counts_here)

    def _move(self, row: int, before: int, group: int, *, counts_here: bool) -> None:
        self._cells[row] = group
        if self._by_row is not None:
            if 0 <= group < len(self._by_group):
                self._by_row[row] = self._by_group[group]
            else:
                self._by_row = None
        if before != NO_GROUP and self._members[before] == row:
            self._asked = None
        if counts_here:
            counts = self.counts
            left = counts[before] = counts[before] - 1
            here = counts[group] = counts[group] + 1
            self.count_changes += 1
            if not left or here == 1:
                self._asked = None

    def count(self, rows: list[int], *, feasible: bool) -> None:
        """Take note of rows that have become feasible, or are not any longer."""
        if len(rows) > FEW:
            each = np.bincount(self.of_row[rows], minlength=len(self.counts))
            for group in np.flatnonzero(each).tolist():
                self._add(group, int(each[group]) if feasible else -int(each[group]))
            return
        for row in rows:
            self._add(self._cells[row], 1 if feasible else -1)

    def _add(self, group: int, difference: int) -> None:
        counts = self.counts
        before = counts[group]
        counts[group] = after = before + difference
        self.count_changes += 1
        if not before or not after:
            self._asked = None

    def _found(self, values: tuple[int, ...], member: int) -> int:
        if len(self.counts) >= LIMITS.groups:
            raise NotKeptError("many_groups")
        group = self._ids[values] = len(self.counts)
        self._values.append(values)
        self.counts.append(0)
        self._members.append(member)
        return group

    def grow(self, rows: int) -> None:
        more = np.full(rows - len(self.of_row), NO_GROUP, dtype=np.intp)
        self._take(np.concatenate([self.of_row, more]))

    def add_to(self, base: Values, by_group: Values) -> Values:
        """Return what rows have themselves and by their groups; by any, where there is no node."""
        each = by_group.tolist()
        if each == self._by_group:
            if self._by_row is None:
                self._by_row = by_group.take(self.of_row, mode="clip")
            return base + self._by_row
        # What is another each time is not worth keeping.
        self._by_group, self._by_row = each, None
        found = by_group.take(self.of_row, mode="clip")
        found += base
        return found

    def asked(self) -> AskedGroups:
        found = self._asked
        if found is None:
            alive = [number for number, count in enumerate(self.counts) if count]
            members = np.array([self.member(number) for number in alive], dtype=np.int64)
            found = self._asked = AskedGroups(alive, members)
        return found

    def member(self, group: int) -> int:
        row = self._members[group]
        if self._cells[row] != group:
            row = self._members[group] = int((self.of_row == group).argmax())
        return row


def _dense(values: Values) -> Values:
    """Return numbers from 0 on that are equal where the values are; no value is negative."""
    if not len(values):
        return values
    if int(values.max()) > 8 * len(values):
        return np.unique(values, return_inverse=True)[1].reshape(-1)
    used = np.bincount(values) > 0
    return (np.cumsum(used) - 1)[values]


def _cells(numbers: npt.NDArray[Any]) -> memoryview:
    # numpy's stubs call an array a buffer from Python 3.12 on.
    buffer: Any = numbers
    return memoryview(buffer)
