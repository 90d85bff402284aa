"""A map that is bounded in bytes: what was used longest ago goes first, and is counted."""

import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ByteLru(Generic[Key, Value]):
    """Entries with the bytes that the caller says they take, key included."""

    def __init__(self, max_bytes: int, *, most: int | None = None) -> None:
        """Keep as many bytes, and no more entries than `most`."""
        self._max_bytes = max_bytes
        self._most = most
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.nbytes = 0
        # How many were dropped to make room.
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys, least recently used first."""
        return iter(self._entries)

    def peek(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        return None if found is None else found[0]

    def get(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, nbytes: int) -> None:
        self.pop(key)
        self._entries[key] = (value, nbytes)
        self.nbytes += nbytes
        while self.nbytes > self._max_bytes or len(self._entries) > (self._most or sys.maxsize):
            _, (_, gone) = self._entries.popitem(last=False)
            self.nbytes -= gone
            self.dropped += 1

    def pop(self, key: Key) -> Value | None:
        found = self._entries.pop(key, None)
        if found is None:
            return None
        self.nbytes -= found[1]
        return found[0]

    def clear(self) -> None:
        self._entries.clear()
        self.nbytes = 0
