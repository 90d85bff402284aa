"""The memory of amounts: a slot per column, a row per node, each number as integer and as float.

It knows where a number is and how large numbers have become; `amounts` knows what they mean. Where
resources are is remembered (`Layout`) until they are elsewhere.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.amounts.kept import EXACT_BELOW, Block, Kept, RowFormula
from k8s_scheduler.core.state.amounts.names import NATIVE, PLANES, wrapped
from k8s_scheduler.core.state.columns import doubled
from k8s_scheduler.core.state.rows import NodeRow

_EXACT_ABOVE: Final = -EXACT_BELOW
# Zero everywhere: what has no column is shown as if it were here, and its cells are filled in.
NOTHING: Final = len(NATIVE)
FIRST_SLOTS: Final = 8
_FIRST_ROWS: Final = 64
# Of writes that a `Kept` can catch up with.
_WRITES: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where some resources are, and what is known of them."""

    slots: tuple[int, ...]
    # The slots as a slice, if they are neighbours.
    neighbours: slice | None
    # [plane][resource][0]: where its first row is in the block.
    offsets: npt.NDArray[np.int64]
    # Of those without a column: their places among the resources, and their names.
    sparse: tuple[tuple[int, str], ...]
    # Whether floats show the numbers exactly.
    is_small: bool
    # Whether every node offers each of them.
    is_everywhere: bool
    # As long as all this is so.
    kept: dict[RowFormula, Kept] = field(default_factory=dict)


class AmountBlock:
    """Numbers of all rows, by slot."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {name: slot for slot, name in enumerate(NATIVE)}
        # A heap of the slots that nothing has.
        self._free_slots = list(range(NOTHING + 1, FIRST_SLOTS))
        # Numbers that are too large for floats: by slot, their places in the block.
        self._large: dict[int, dict[int, None]] = {}
        self._layouts: dict[tuple[str, ...], Layout] = {}
        # The rows that were written to, one after the other. A `Kept` remembers how many there
        # were: it is forgotten before they are.
        self._written: list[NodeRow] = []
        shape = (len(PLANES), FIRST_SLOTS, _FIRST_ROWS)
        self._keep(np.zeros(shape, dtype=np.int64), np.zeros(shape))

    def _keep(self, exact: npt.NDArray[np.int64], floats: npt.NDArray[np.float64]) -> None:
        # Single numbers are read and written through these, one after the other as they are in
        # the block: they are the same memory.
        self._exact = exact.reshape(-1).data
        self._floats = floats.reshape(-1).data
        self._slot_count: int = exact.shape[1]
        self._capacity: int = exact.shape[2]
        self._arrays = exact, floats
        # Views can't write to the state through what is shown.
        self._shown: tuple[Block, Block] = exact.view(), floats.view()
        for shown in self._shown:
            shown.flags.writeable = False
        self._flat: tuple[Block, Block] = exact.reshape(-1), floats.reshape(-1)
        self._layouts.clear()
        self._large.clear()
        beyond = (self._flat[0] >= EXACT_BELOW) | (self._flat[0] <= _EXACT_ABOVE)
        for place in np.flatnonzero(beyond).tolist():
            self._large.setdefault(self._slot_at(place), {})[place] = None

    def reserve(self, rows: int) -> None:
        """Make room for at least so many rows."""
        if rows > self._capacity:
            self._resize(self._slot_count, doubled(self._capacity, rows))

    def cut(self, rows: int) -> None:
        """Give back all room behind so many rows, as if there had never been more."""
        capacity = doubled(_FIRST_ROWS, rows)
        if capacity < self._capacity:
            self._resize(self._slot_count, capacity)

    def _resize(self, slots: int, capacity: int) -> None:
        """Make the block larger or smaller; the slots that are used come first."""
        used = sorted(self._slots, key=self._slots.__getitem__)
        before = [self._slots[name] for name in used]
        # One is in no column.
        after = [slot if slot < NOTHING else slot + 1 for slot in range(len(used))]
        shape = (len(PLANES), slots, capacity)
        exact, floats = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        rows = min(capacity, self._capacity)
        for old, new in zip(before, after, strict=True):
            exact[:, new, :rows] = self._arrays[0][:, old, :rows]
            floats[:, new, :rows] = self._arrays[1][:, old, :rows]
        self._slots = dict(zip(used, after, strict=True))
        self._free_slots = list(range(len(used) + 1, slots))
        self._keep(exact, floats)

    def _place(self, plane: int, slot: int, row: int) -> int:
        """Return where a number is, counted through the block."""
        return (plane * self._slot_count + slot) * self._capacity + row

    def _slot_at(self, place: int) -> int:
        return place // self._capacity % self._slot_count

    def _wrote(self, row: NodeRow) -> None:
        if len(self._written) >= _WRITES:
            self._written.clear()
            # With all that is kept.
            self._layouts.clear()
        self._written.append(row)

    def _add(self, place: int, difference: int) -> None:
        exact = self._exact
        total = exact[place] + difference
        if _EXACT_ABOVE < total < EXACT_BELOW and not self._large:
            exact[place] = total
            self._floats[place] = total
        else:
            self._write(place, total)

    def _write(self, place: int, amount: int) -> None:
        is_large = not _EXACT_ABOVE < amount < EXACT_BELOW
        if is_large:
            amount = wrapped(amount)
            is_large = not _EXACT_ABOVE < amount < EXACT_BELOW
        self._exact[place] = amount
        self._floats[place] = amount
        if is_large or self._large:
            self._note_size(place, is_large=is_large)

    def _note_size(self, place: int, *, is_large: bool) -> None:
        """Take note whether a number is too large for floats to be exact."""
        slot = self._slot_at(place)
        large = self._large.get(slot)
        if is_large:
            if large is None:
                large = self._large[slot] = {}
                self._layouts.clear()
            large[place] = None
        elif large is not None and place in large:
            del large[place]
            if not large:
                del self._large[slot]
                self._layouts.clear()
