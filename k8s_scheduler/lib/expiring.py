"""A cache of answers that are good for a while, and of a size that never grows past its bound."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ExpiringCache(Generic[Key, Value]):
    """Keeps each value for its own time; when full, what was used longest ago goes first."""

    def __init__(self, *, size: int, clock: Callable[[], float]) -> None:
        self._size = size
        self._clock = clock
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        if found is None:
            return None
        ends_at, value = found
        if self._clock() >= ends_at:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: Key, value: Value, *, seconds: float) -> None:
        """Keep a value for so long; no time at all keeps nothing."""
        if seconds <= 0:
            return
        self._entries[key] = (self._clock() + seconds, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
