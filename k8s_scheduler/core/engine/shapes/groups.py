"""Rows that look alike to some plugins, so that one of each kind is asked for all.

What plugins have read of rows makes the keys; rows with equal values of all keys are a group. A
zone is one value for thousands of rows, so a count that changes in a zone regroups nobody. Where
nearly every node is a domain of its own, the count itself is the value.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.reads import NarrowRead
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.counters import Counter
from k8s_scheduler.core.state.facts import fact_of

Values = npt.NDArray[np.int64]
# The group of a row that holds no node.
NO_GROUP: Final = -1


class TooManyGroupsError(Exception):
    """Nearly every row is different: nothing is won by asking one for others."""


@dataclass(slots=True)
class Limits:
    """Where grouping ends; tests make them small."""

    # A topology with as many domains at most is told apart by its domains, others by their counts.
    few_domains: int = 32
    groups: int = 512


LIMITS: Final = Limits()


class _Key:
    """One thing that plugins read of rows."""

    __slots__ = (
        "_read",
        "_state",
        "counter",
        "cursor",
        "facts",
        "goes_by_count",
        "name",
        "stands_alone",
        "topology",
    )

    def __init__(self, read: NarrowRead, state: Cache) -> None:
        self._read = read
        self._state = state
        self.counter: Counter | None = None
        self.topology: str | None = None
        self.goes_by_count = False
        self.cursor = 0
        # Whether each domain is a single node; None if that has to be found out.
        self.stands_alone: bool | None = None
        # Counts in few domains are told apart as the domains are.
        self.name: NarrowRead = read
        if isinstance(read, str):
            self.facts = fact_of(read)
            return
        self.counter, self.topology = read
        self.facts = 0
        if self.topology is None:
            self.goes_by_count = True
        else:
            self.facts = fact_of("label/")
            self.goes_by_count = self._domain_count() > LIMITS.few_domains
            if not self.goes_by_count:
                self.name = f"label/{self.topology}"

    def _domain_count(self) -> int:
        ids = self._labels()[self._state.nodes.present_rows()]
        return int(np.count_nonzero(np.bincount(ids + 1)))

    def _labels(self) -> Values:
        found: Values = self._state.nodes.labels.column(self.topology or "")
        return found

    def values(self, rows: Values) -> Values:
        """Return what tells the rows apart; no negative numbers below -1."""
        read = self._read
        if isinstance(read, str):
            return self._column(read)[rows]
        counter, topology = read
        if topology is None:
            return counter.by_row[rows]
        ids = self._labels()[rows]
        # An absent label finds the last place, where nothing is counted.
        return counter.by_domain(topology)[ids] if self.goes_by_count else ids

    def count_at(self, row: int) -> int:
        """Return the count that tells a row apart."""
        counter, topology = self.counter, self.topology
        if counter is None:
            raise ValueError(f"{self.name} is no count")
        if topology is None:
            return int(counter.by_row[row])
        return int(counter.by_domain(topology)[self._labels()[row]])

    def _column(self, name: str) -> Values:
        family, _, key = name.partition("/")
        if family == "label":
            found: Values = self._state.nodes.labels.column(key)
            return found
        if family == "has_label":
            present: Values = (self._state.nodes.labels.column(key) >= 0).astype(np.int64)
            return present
        return self._state.nodes.column(name).astype(np.int64)

    def catch_up(self) -> list[int] | None:
        """Return the rows whose value may have changed since last asked; None if any may have."""
        counter = self.counter
        if counter is None:
            return []
        version = counter.version
        if version == self.cursor:
            return []
        rows = counter.rows_since(self.cursor)
        self.cursor = version
        if rows is None or self.topology is None:
            return rows
        labels = self._labels()
        if self.stands_alone is None:
            sizes = np.bincount(labels[self._state.nodes.present_rows()] + 1)[1:]
            self.stands_alone = bool(sizes.max(initial=0) <= 1)
        if self.stands_alone:
            return rows
        near: list[int] = list(rows)
        for domain in dict.fromkeys(labels[rows].tolist()):
            if domain >= 0:
                near += np.flatnonzero(labels == domain).tolist()
        return near


class Groups:
    """Which row is in which group, and how many feasible rows each has."""

    def __init__(self, state: Cache) -> None:
        self._state = state
        # By what it goes by; several reads may come to the same.
        self._keys: dict[NarrowRead, _Key] = {}
        # Those that go by counts, with their places.
        self._count_keys: list[tuple[int, _Key]] = []
        # Of each read: whether rows with different counts are in different groups.
        self._told_apart: dict[NarrowRead, bool] = {}
        self._ids: dict[tuple[int, ...], int] = {}
        # By group: the values that its rows have in common, and one of them.
        self._values: list[tuple[int, ...]] = []
        self._members: list[int] = []
        # By row, and by group.
        self.of_row = np.zeros(0, dtype=np.intp)
        self.counts: list[int] = []
        self.facts = 0

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        return int(self.of_row.nbytes)

    def is_told_apart(self, read: NarrowRead) -> bool:
        """Return whether rows with different counts are in different groups."""
        return self._told_apart[read]

    def add_keys(self, reads: dict[NarrowRead, None]) -> bool:
        """Take note of what was read; return whether groups have to be made anew for it."""
        is_new = False
        for read in reads:
            if read in self._told_apart:
                continue
            key = _Key(read, self._state)
            self._told_apart[read] = key.goes_by_count
            self.facts |= key.facts
            if key.name not in self._keys:
                self._keys[key.name] = key
                is_new = True
        if is_new:
            keys = enumerate(self._keys.values())
            self._count_keys = [(place, key) for place, key in keys if key.goes_by_count]
        return is_new

    def lay_out(self, present: Values, feasible: npt.NDArray[np.bool_]) -> None:
        """Group all rows anew; `feasible` is by row."""
        columns = [key.values(present) for key in self._keys.values()]
        for key in self._keys.values():
            if key.counter is not None:
                key.cursor = key.counter.version
        mixed = np.zeros(len(present), dtype=np.int64)
        for column in columns:
            values = column + 1
            size = int(values.max(initial=0)) + 1
            mixed = _dense(mixed) * size + values
        ids = _dense(mixed)
        count = int(ids.max(initial=-1)) + 1
        if count > LIMITS.groups:
            raise TooManyGroupsError(f"{count} groups")
        self.of_row = np.full(self._state.nodes.row_count, NO_GROUP, dtype=np.intp)
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

    def stale_rows(self, *, have_moved: bool) -> list[int] | None:
        """Return the rows that may be in another group since counters changed; None: any may.

        `have_moved` says that nodes came, went or got other labels.
        """
        found: list[int] = []
        for _, key in self._count_keys:
            if have_moved:
                key.stands_alone = None
            rows = key.catch_up()
            if rows is None:
                return None
            found += rows
        return found

    def place(self, rows: list[int]) -> None:
        """Put rows where they belong now: those that hold no node any more, nowhere."""
        there = self._state.nodes.node_at
        gone = [row for row in rows if there(NodeRow(row)) is None]
        if gone:
            self.of_row[gone] = NO_GROUP
            rows = [row for row in rows if there(NodeRow(row)) is not None]
        array = np.array(rows, dtype=np.int64)
        columns = [key.values(array).tolist() for key in self._keys.values()]
        values = zip(*columns, strict=True) if columns else [()] * len(rows)
        for row, value in zip(rows, values, strict=True):
            self._put(row, value)

    def place_by_counts(self, rows: list[int]) -> None:
        """Put rows where they belong now, if nothing but counts has changed."""
        of_row = self.of_row
        for row in rows:
            group = int(of_row[row])
            if group == NO_GROUP:
                # It holds no node.
                continue
            values = list(self._values[group])
            for position, key in self._count_keys:
                values[position] = key.count_at(row)
            self._put(row, tuple(values))

    def _put(self, row: int, values: tuple[int, ...]) -> None:
        group = self._ids.get(values)
        if group is None:
            group = self._found(values, row)
        self.of_row[row] = group

    def _found(self, values: tuple[int, ...], member: int) -> int:
        """Found a group."""
        if len(self.counts) >= LIMITS.groups:
            raise TooManyGroupsError(f"{len(self.counts)} groups")
        group = self._ids[values] = len(self.counts)
        self._values.append(values)
        self.counts.append(0)
        self._members.append(member)
        return group

    def grow(self, rows: int) -> None:
        """Make room for rows that are new."""
        more = np.full(rows - len(self.of_row), NO_GROUP, dtype=np.intp)
        self.of_row = np.concatenate([self.of_row, more])

    def member(self, group: int) -> int:
        """Return a row of a group that has any."""
        row = self._members[group]
        if self.of_row[row] != group:
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
