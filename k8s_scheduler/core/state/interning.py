"""Interning: equal values share one small id, so columns can hold ids instead of objects.

Ids are never given to another value, also after the last use is released: an id that
is remembered never means another value.
"""

from collections.abc import Hashable, ItemsView
from typing import Generic, TypeVar

from k8s_scheduler.lib.hollow import compact

Value = TypeVar("Value", bound=Hashable)


class Interner(Generic[Value]):
    """Counts uses of values and gives each distinct one an id."""

    def __init__(self, *, first: Value) -> None:
        self._ids: dict[Value, int] = {first: 0}
        self._values: dict[int, Value] = {0: first}
        self._uses: dict[int, int] = {0: 1}
        self._next = 1

    def acquire(self, value: Value) -> int:
        found = self._ids.get(value)
        if found is None:
            found = self._next
            self._next += 1
            self._ids[value] = found
            self._values[found] = value
            self._uses[found] = 0
        self._uses[found] += 1
        return found

    def release(self, value_id: int) -> None:
        """Count one use less; the last one forgets the value."""
        if value_id == 0:
            return
        self._uses[value_id] -= 1
        if self._uses[value_id] == 0:
            del self._uses[value_id]
            del self._ids[self._values.pop(value_id)]
            self._ids, self._values = compact(self._ids), compact(self._values)
            self._uses = compact(self._uses)

    def id_of(self, value: Value) -> int | None:
        return self._ids.get(value)

    def __getitem__(self, value_id: int) -> Value:
        return self._values[value_id]

    def items(self) -> ItemsView[int, Value]:
        return self._values.items()
