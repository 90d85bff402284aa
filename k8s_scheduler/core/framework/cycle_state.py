"""What one attempt carries from one extension point to the next.

The terms that filters prepared, and whatever plugins leave for themselves or for each other under
a key of their own. It lives as long as the attempt, and belongs to it alone. What plugins leave
must be plain data (what JSON can hold): an attempt that waits is part of checkpoints.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


class CycleState(msgspec.Struct):
    """The state of one attempt."""

    # By filter plugin; a plugin that skipped the pod has none.
    terms: Mapping[str, Any] = msgspec.field(default_factory=dict)
    # The plugins that were asked at PreFilter: one that can't be resolved ends the asking.
    asked: frozenset[str] = frozenset()
    _notes: dict[str, Any] = msgspec.field(default_factory=dict)

    def write(self, key: str, value: object) -> None:
        """Leave something for a later point."""
        self._notes[key] = value

    def read(self, key: str) -> Any:
        """Return what was left under a key; KeyError if nothing was."""
        return self._notes[key]

    def delete(self, key: str) -> None:
        """Take something away; it need not be there."""
        self._notes.pop(key, None)

    @property
    def notes(self) -> Mapping[str, Any]:
        return self._notes
