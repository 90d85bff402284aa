"""Numbers that are given out and come back, the lowest free one first.

A list of free numbers would hold an object for each: thousands of small objects, spread over memory
that is otherwise free but can't be returned because of them. Here each number takes a byte. Free
numbers at the end are forgotten, so that the tables that use them as indexes can become shorter.
"""


class Seats:
    """Numbers from 0 on; the only gaps are free numbers."""

    __slots__ = ("_free_count", "_is_free", "_lowest")

    def __init__(self) -> None:
        self._is_free = bytearray()
        self._free_count = 0
        # No number below this one is free.
        self._lowest = 0

    def __len__(self) -> int:
        """Return one more than the highest number that is given out."""
        return len(self._is_free)

    def take(self) -> int:
        is_free = self._is_free
        if not self._free_count:
            is_free.append(False)
            return len(is_free) - 1
        found = is_free.index(True, self._lowest)
        is_free[found] = False
        self._free_count -= 1
        self._lowest = found + 1
        return found

    def leave(self, number: int) -> None:
        is_free = self._is_free
        is_free[number] = True
        self._free_count += 1
        self._lowest = min(self._lowest, number)
        while is_free and is_free[-1]:
            is_free.pop()
            self._free_count -= 1
