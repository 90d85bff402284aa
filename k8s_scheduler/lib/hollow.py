"""Shrinks dicts that were large once: Python keeps the memory of deleted entries."""

import sys
from typing import Final, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

# Smaller ones are not worth a copy.
_SMALL_BYTES: Final = 1024
# A dict that has only grown takes less than this for each of its entries.
_BYTES_PER_ENTRY: Final = 256


def compact(found: dict[Key, Value]) -> dict[Key, Value]:
    """Return a dict, or a copy of it if nearly all of its memory is for entries that are gone."""
    size = sys.getsizeof(found)
    if size <= _SMALL_BYTES or size <= _BYTES_PER_ENTRY * len(found):
        return found
    return dict(found)
