"""What a plugin may read. A closed set: what is not declared can't be seen.

`Row` names columns of the node table; a name that ends in `/` stands for the whole family.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A column of facts about each node."""

    column: str

    def covers(self, column: str) -> bool:
        """Return whether reading `column` is covered by this declaration."""
        if self.column.endswith("/"):
            return column.startswith(self.column)
        return column == self.column
