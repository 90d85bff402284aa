"""A number for each row that is another one once something there has changed.

Rows that are cut off the table take their numbers with them. A row that comes in their place
begins above all of these: who remembers a number of an earlier row never finds it again.
"""

from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact


class RowVersions:
    """By row: goes up with every change, and never down."""

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
