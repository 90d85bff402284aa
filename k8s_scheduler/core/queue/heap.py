"""A heap whose members may leave from the middle.

Removal only forgets the member; its entry is skipped when it surfaces. Dead entries are swept
out once they outnumber the living, so the heap stays within twice its size.
"""

import heapq
from typing import Generic, TypeVar

Member = TypeVar("Member")
_SWEEP_FROM = 64


class Heap(Generic[Member]):
    """Members under string keys, smallest sort key first; equal keys by sequence."""

    def __init__(self) -> None:
        self._entries: list[tuple[tuple[float, ...], int, str]] = []
        self._members: dict[str, tuple[int, Member]] = {}

    def push(self, key: str, member: Member, *, order: tuple[float, ...], sequence: int) -> None:
        self._members[key] = (sequence, member)
        heapq.heappush(self._entries, (order, sequence, key))
        if len(self._entries) > max(_SWEEP_FROM, 2 * len(self._members)):
            self._entries = [entry for entry in self._entries if self._is_live(entry)]
            heapq.heapify(self._entries)

    def remove(self, key: str) -> Member | None:
        found = self._members.pop(key, None)
        return None if found is None else found[1]

    def peek(self) -> tuple[tuple[float, ...], Member] | None:
        while self._entries:
            entry = self._entries[0]
            if self._is_live(entry):
                return entry[0], self._members[entry[2]][1]
            heapq.heappop(self._entries)
        return None

    def first(self) -> tuple[tuple[float, ...], int] | None:
        return None if self.peek() is None else self._entries[0][:2]

    def pop(self) -> Member | None:
        return None if self.peek() is None else self.pop_item()[1]

    def pop_item(self) -> tuple[str, Member]:
        """Take the first member out, and return it with its key; there must be one."""
        if self.peek() is None:
            raise IndexError("nothing is left in the heap")
        _, _, key = heapq.heappop(self._entries)
        return key, self._members.pop(key)[1]

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def _is_live(self, entry: tuple[tuple[float, ...], int, str]) -> bool:
        member = self._members.get(entry[2])
        return member is not None and member[0] == entry[1]
