"""How many rows have a label of each key, and which rows, as long as these are few.

A column of labels is made by a look at all rows. One node may have thousands of keys that no other
node has, and one pod may name all of them: then only the rows that have a key are looked at.
"""

from typing import Final

from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact


class KeyHolders:
    """The rows with each key."""

    # Of so many rows it is known which they are: they are copied when one comes or goes.
    FEW: Final = 32

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        # Not of keys that more rows have, or have had since the first got it.
        self._rows: dict[str, tuple[NodeRow, ...]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._counts

    def count(self, key: str) -> int:
        return self._counts.get(key, 0)

    def rows(self, key: str) -> tuple[NodeRow, ...] | None:
        return self._rows.get(key) if key in self._counts else ()

    def add(self, key: str, row: NodeRow) -> bool:
        """Take note that a row has a key; return whether none had it."""
        before = self._counts.get(key, 0)
        self._counts[key] = before + 1
        if not before:
            self._rows[key] = (row,)
            return True
        rows = self._rows.get(key)
        if rows is not None:
            if before < self.FEW:
                self._rows[key] = (*rows, row)
            else:
                del self._rows[key]
        return False

    def remove(self, key: str, row: NodeRow) -> None:
        left = self._counts[key] - 1
        if not left:
            del self._counts[key]
            self._rows.pop(key, None)
            return
        self._counts[key] = left
        rows = self._rows.get(key)
        if rows is not None:
            self._rows[key] = tuple(one for one in rows if one != row)

    def compact(self) -> None:
        self._counts, self._rows = compact(self._counts), compact(self._rows)
