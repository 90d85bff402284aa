"""Growable numpy columns of one common length.

A column may be replaced when the table grows or shrinks, so none is kept across a change of the
table: it is fetched by name when it is needed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from k8s_scheduler.lib.hollow import compact

AnyColumn = npt.NDArray[Any]

_FIRST_CAPACITY = 64
# Room for so many rows is kept in any case, and otherwise for so many times those that there are.
_SPARED = 1024
_ROOMY = 4


def doubled(capacity: int, rows: int) -> int:
    while capacity < rows:
        capacity *= 2
    return capacity


class Columns:
    """Named columns that grow together; a new row starts at each column's fill value."""

    def __init__(self) -> None:
        self.capacity = _FIRST_CAPACITY
        self._columns: dict[str, AnyColumn] = {}
        self._fills: dict[str, int] = {}

    def add(self, name: str, dtype: type[np.generic], *, fill: int = 0) -> AnyColumn:
        """Add a column; adding it twice returns the one that is there."""
        if name not in self._columns:
            self._fills[name] = fill
            self._columns[name] = np.full(self.capacity, fill, dtype=dtype)
        return self._columns[name]

    def drop(self, name: str) -> None:
        del self._columns[name], self._fills[name]
        self._columns, self._fills = compact(self._columns), compact(self._fills)

    def __getitem__(self, name: str) -> AnyColumn:
        return self._columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def reserve(self, rows: int) -> None:
        if rows <= self.capacity:
            return
        capacity = doubled(self.capacity, rows)
        for name, column in self._columns.items():
            grown = np.full(capacity, self._fills[name], dtype=column.dtype)
            grown[: self.capacity] = column
            self._columns[name] = grown
        self.capacity = capacity

    def release(self, rows: int) -> None:
        """Give back room, if no more than `rows` rows are used and that is a small part of it."""
        if self.capacity <= _SPARED or rows * _ROOMY > self.capacity:
            return
        capacity = self.capacity
        while capacity > _FIRST_CAPACITY and capacity >= rows * _ROOMY:
            capacity //= 2
        self._shrink(capacity)

    def cut(self, rows: int) -> None:
        """Give back all room behind so many rows, as if there had never been more."""
        capacity = doubled(_FIRST_CAPACITY, rows)
        if capacity < self.capacity:
            self._shrink(capacity)

    def _shrink(self, capacity: int) -> None:
        for name, column in self._columns.items():
            self._columns[name] = column[:capacity].copy()
        self.capacity = capacity
