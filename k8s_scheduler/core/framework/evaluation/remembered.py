"""What was worked out before, for as long as everything it was worked out from is the same.

A decision often asks what the one before asked: the limits of all CSINodes, the volumes of a
class. An answer is kept with *all* its inputs and given again only for equal ones, so there is
nothing that could make it stale. Inputs are tuples of frozen objects (equal at a glance, as long
as they hold the very same objects), numbers and names, or `RowsView.layout`.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# What is compared by value; anything else has to be the very same.
_COMPARED: Final = (tuple, int, str)


class Remembered(Generic[T]):
    """The last answer."""

    __slots__ = ("_inputs", "_value")

    def __init__(self) -> None:
        self._inputs: tuple[Any, ...] | None = None
        self._value: T | None = None

    def get(self, inputs: tuple[Any, ...], work_out: Callable[[], T]) -> T:
        if self._value is None or not _same(self._inputs, inputs):
            self._value = work_out()
            self._inputs = inputs
        return self._value


def _same(known: tuple[Any, ...] | None, asked: tuple[Any, ...]) -> bool:
    if known is None or len(known) != len(asked):
        return False
    for a, b in zip(known, asked, strict=True):
        if a is not b and not (isinstance(a, _COMPARED) and a == b):
            return False
    return True
