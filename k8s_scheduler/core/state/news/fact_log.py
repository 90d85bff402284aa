"""Which facts changed in which rows, in order: what lets an evaluation catch up.

Every reader has a cursor of its own and asks what was noted since. The log is bounded: a reader
that comes too late is told so, and starts over.
"""

from typing import Final


class FactLog:
    """Notes of (row, facts), the latest ones."""

    LIMIT: Final = 1 << 15

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._facts: list[int] = []
        self._first = 0

    @property
    def position(self) -> int:
        """Return the cursor of a reader that has seen everything."""
        return self._first + len(self._rows)

    def note(self, row: int, facts: int) -> None:
        """Note that facts of a row, or of no row, changed."""
        rows = self._rows
        rows.append(row)
        self._facts.append(facts)
        if len(rows) > 2 * self.LIMIT:
            del rows[: self.LIMIT]
            del self._facts[: self.LIMIT]
            self._first += self.LIMIT

    def forget(self) -> None:
        """Let every reader start over, also one that has seen everything."""
        self._first = self.position + 1
        self._rows, self._facts = [], []

    def since(self, cursor: int) -> tuple[list[int], list[int]] | None:
        """Return the rows and facts noted after a cursor; None if they are forgotten."""
        start = cursor - self._first
        if start < 0:
            return None
        return self._rows[start:], self._facts[start:]
