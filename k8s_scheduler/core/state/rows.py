"""Where a node stands in the tables: one number, which says nothing by itself."""

from typing import NewType

from k8s_scheduler.lib.hollow import compact

NodeRow = NewType("NodeRow", int)


class RowVersions:
    """By row: a number that goes up with every change, and never down.

    Rows that are cut off the table take their numbers with them. A row that comes in their place
    begins above all of these, so a number is never used twice for a row.
    """

    __slots__ = ("_floor", "_versions")

    def __init__(self) -> None:
        self._versions: dict[NodeRow, int] = {}
        # Of rows on which nothing has changed so far.
        self._floor = 0

    def at(self, row: NodeRow) -> int:
        return self._versions.get(row, self._floor)

    def changed(self, row: NodeRow) -> None:
        self._versions[row] = self._versions.get(row, self._floor) + 1

    def cut(self, rows: int) -> None:
        gone = [row for row in self._versions if row >= rows]
        for row in gone:
            self._floor = max(self._floor, self._versions.pop(row))
        self._versions = compact(self._versions)
