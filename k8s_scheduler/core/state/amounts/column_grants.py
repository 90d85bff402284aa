"""Which resources have a column: those that nodes offer, and of too many those of most nodes.

Pods make no columns, whatever they ask for. A node may offer any number of names, so the number of
columns is limited. Where there are more resources than that, one that twice as many nodes offer as
another takes its column: one node alone takes no column from a resource that several nodes offer.
What has no column is kept row by row, and decisions are the same.
"""

import heapq
from typing import Final

from k8s_scheduler.core.state.amounts.names import NATIVE
from k8s_scheduler.lib.hollow import compact

# Besides those of the native resources.
MOST_COLUMNS: Final = 59
# How many times as many nodes have to offer a resource for it to take the column of another.
_MARGIN: Final = 2


class ColumnGrants:
    """How many nodes offer each resource, and which of these have a column."""

    def __init__(self) -> None:
        # Only those that some node offers.
        self.offering: dict[str, int] = {}
        # Dicts stand for ordered sets. Native resources always have a column and are in neither.
        self._holders: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        # Those with a column that no node offers any more.
        self._lost: dict[str, None] = {}

    def count(self, resource: str, difference: int) -> None:
        """Count a node that offers a resource (1), or does so no more (-1)."""
        count = self.offering.get(resource, 0) + difference
        if count:
            self.offering[resource] = count
        else:
            del self.offering[resource]
            self.offering = compact(self.offering)
        if resource in NATIVE:
            return
        if resource in self._holders:
            if count:
                self._lost.pop(resource, None)
            else:
                self._lost[resource] = None
        elif count:
            self._waiting[resource] = None
        else:
            self._waiting.pop(resource, None)
            self._waiting = compact(self._waiting)

    def lost(self) -> list[str]:
        """Take their columns from resources that no node offers any more, and return them."""
        found = list(self._lost)
        for resource in found:
            del self._holders[resource]
        self._lost.clear()
        return found

    def won(self, resource: str) -> tuple[bool, str | None]:
        """Decide whether a resource gets a column, and which other one gives its column for it."""
        if resource not in self._waiting:
            return False, None
        loser = None
        if len(self._holders) >= MOST_COLUMNS:
            count = self.offering[resource]
            if count < _MARGIN:
                # Every column is that of one node at least.
                return False, None
            loser = min(self._holders, key=self.offering.__getitem__)
            if count < _MARGIN * self.offering[loser]:
                return False, None
            del self._holders[loser]
            self._waiting[loser] = None
        self._grant(resource)
        return True, loser

    def next_in_line(self) -> list[str]:
        """Give the columns that are free to those that wait and most nodes offer; return them."""
        room = MOST_COLUMNS - len(self._holders)
        if not room or not self._waiting:
            return []
        found = heapq.nlargest(room, self._waiting, key=self.offering.__getitem__)
        for resource in found:
            self._grant(resource)
        return found

    def _grant(self, resource: str) -> None:
        del self._waiting[resource]
        self._waiting = compact(self._waiting)
        self._holders[resource] = None
