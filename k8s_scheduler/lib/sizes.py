"""How many bytes a structure of objects takes, measured by walking it.

Counting arrays or entries alone is wrong by orders of magnitude where structures are many and
small: a dict that holds two numbers takes 232 bytes.
"""

import gc
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import msgspec
import numpy as np

# The allocator rounds up to sixteen bytes; most sizes are multiples of eight.
_ROUNDING_BYTES: Final = 4
_NEVER_OWNED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Enum)
_LEAVES: Final = (str, bytes, int, float, type(None))
# In a structure with more objects than this, the rest is taken to be as large as those before.
MOST_OBJECTS: Final = 20_000

# What is done with objects of a type: nothing; counted; entered; entered in a way of their own,
# because the garbage collector can't tell what is inside.
_SHARED, _LEAF, _OPEN, _HIDDEN = range(4)


class _Ways(dict[type, int]):
    """What is done with objects of each type, found out at the first of them."""

    def __init__(self, is_shared: Callable[[type], bool]) -> None:
        super().__init__()
        self._is_shared = is_shared

    def __missing__(self, kind: type) -> int:
        way = _OPEN
        if issubclass(kind, _NEVER_OWNED) or self._is_shared(kind):
            way = _SHARED
        elif issubclass(kind, _LEAVES):
            way = _LEAF
        elif issubclass(kind, np.ndarray | msgspec.Struct):
            way = _HIDDEN
        self[kind] = way
        return way


class Sizer:
    """Measures structures; objects of types that are shared count for nothing.

    Small integers, empty tuples and names that the code itself contains are shared by the whole
    process and counted all the same: they are few.
    """

    def __init__(self, is_shared: Callable[[type], bool]) -> None:
        self._ways = _Ways(is_shared)

    def measure(self, root: object, *, apart_from: Iterable[object] = ()) -> int:
        """Return the bytes of a structure, without what is shared or named by `apart_from`."""
        ways, size = self._ways, sys.getsizeof
        seen = dict.fromkeys(map(id, apart_from))
        seen[id(root)] = None
        total = size(root) + _ROUNDING_BYTES
        count = 1
        level: list[Any] = gc.get_referents(root)
        while level:
            # Breadth first: that way most of the work is done in a few calls.
            found = {id(each): each for each in level if ways[each.__class__]}
            new = {place: each for place, each in found.items() if place not in seen}
            seen |= dict.fromkeys(new)
            total += sum(map(size, new.values())) + _ROUNDING_BYTES * len(new)
            count += len(new)
            level = gc.get_referents(*(x for x in new.values() if ways[x.__class__] == _OPEN))
            for hidden in new.values():
                if ways[hidden.__class__] == _HIDDEN:
                    level += _inside(hidden)
            if count >= MOST_OBJECTS:
                return total + total * len(level) // count
        return total


def _inside(hidden: Any) -> list[Any]:
    if isinstance(hidden, np.ndarray):
        return [] if hidden.base is None else [hidden.base]
    return [getattr(hidden, field) for field in hidden.__struct_fields__]
