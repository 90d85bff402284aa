"""What a plugin may read. A closed set: what is not declared can't be seen.

`Row` names columns of the node table; a name that ends in `/` stands for the whole family.
`Object` names a kind of objects. The kinds of all enabled plugins decide which watches run.
"""

from dataclasses import dataclass
from typing import TypeAlias

from k8s_scheduler.api.kinds import Kind


@dataclass(frozen=True, slots=True)
class Row:
    """A column of facts about each node."""

    column: str

    def covers(self, column: str) -> bool:
        """Return whether reading `column` is covered by this declaration."""
        if self.column.endswith("/"):
            return column.startswith(self.column)
        return column == self.column


@dataclass(frozen=True, slots=True)
class Object:
    """Objects of one kind."""

    kind: Kind


Dependency: TypeAlias = Row | Object
