"""How much of each resource nodes offer and pods take: one block of numbers.

    [plane][slot][row]: three planes (with defaults for pods that ask for nothing, offered,
    taken), a slot per resource, a row per node

Neighbouring planes and slots are read together, without a copy where all nodes are wanted. Every
number is kept twice: as an integer, which is the truth, and as a float, which is the same number
as long as it is small and several times as fast to divide by.

Two things are known of a resource without looking at its rows: whether any number was ever too
large for floats to be exact, and whether every node offers some. They decide how something is
computed, never what comes out.

What somebody works out of the numbers of each row on its own may be kept, too (`Work`): the rows
that were written to since are worked out anew when it is asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Requests
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.overdrawn import Overdrawn

ALLOCATABLE: Final = "allocatable/"
REQUESTED: Final = "requested/"
NON_ZERO: Final = "non_zero/"
POD_COUNT: Final = "pod_count"

# In integers, or in floats that are exact.
Block: TypeAlias = npt.NDArray[Any]

# A hundred times as much is below 2^53, so that percentages are exact too.
EXACT_BELOW: Final = 2**46
_EXACT_ABOVE: Final = -EXACT_BELOW

_NON_ZERO, _ALLOCATABLE, _REQUESTED = range(3)
_PLANES: Final = {NON_ZERO: _NON_ZERO, ALLOCATABLE: _ALLOCATABLE, REQUESTED: _REQUESTED}
_FIRST: Final = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_SLOT, _CPU_SLOT, _MEMORY_SLOT = range(3)
_WITH_DEFAULTS: Final = (CPU, MEMORY)
# What nobody offers or uses is zero everywhere; pods may ask for any name, and asking makes none.
_NOTHING: Final = len(_FIRST)
_FIRST_SLOTS: Final = 8
_FIRST_ROWS: Final = 64
_LAYOUTS: Final = 1000
# Up to so many rows one gather of everything is cheaper than one for each column.
_FEW: Final = 500
# From so many rows on, it pays to keep what is worked out of them.
MANY: Final = 1000
# If more than one row in so many was written to, everything is worked out anew.
_MOST: Final = 50
# Of writes that whoever keeps something can catch up with.
_WRITES: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """Two families of columns that are read together."""

    names: tuple[str, str]
    planes: slice
    # Which of the two is what nodes offer.
    offered: int

    def columns(self, resources: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the columns that these resources have in both families."""
        return _column_names(self.names, resources)


# What pods take with defaults for those that ask for nothing, as scores count it, and what there
# is. There are defaults for cpu and memory alone.
TAKEN_IN_SCORES: Final = Families((NON_ZERO, ALLOCATABLE), slice(_NON_ZERO, _ALLOCATABLE + 1), 1)
# What there is and what pods request. Of `pods`, that is how many there are.
OFFERED_AND_TAKEN: Final = Families(
    (ALLOCATABLE, REQUESTED), slice(_ALLOCATABLE, _REQUESTED + 1), 0
)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Something that is worked out of what is offered and taken on each row on its own.

    In floats that are exact, and at least one of everything is offered. Both ways come to the same
    numbers, to the last digit.
    """

    families: Families
    # Of [resource][row] each; makes [number][row].
    of_all: Callable[[Block, Block], Block]
    # Of one row.
    of_one: Callable[[list[float], list[float]], Sequence[float]]
    # Nothing is worked out where any node offers so much.
    limit: int = EXACT_BELOW


class Kept:
    """What was worked out of all rows, as of some write."""

    __slots__ = (
        "_cells",
        "_done",
        "_limit",
        "_of_all",
        "_of_one",
        "_offered",
        "_read",
        "_taken",
        "is_right",
        "least_free",
        "shown",
        "size",
    )

    def __init__(self, work: Work, block: Block, writes: int) -> None:
        """Work it out of what always shows the numbers of all rows, as of so many writes."""
        self._of_one, self._of_all, self._limit = work.of_one, work.of_all, work.limit
        offered = work.families.offered
        self._offered, self._taken = block[offered], block[1 - offered]
        self.size: int = block.shape[2]
        # Single numbers are read and written through these, column by column.
        self._read = [
            (most.data, less.data) for most, less in zip(self._offered, self._taken, strict=True)
        ]
        self._work_out()
        self._done = writes

    def _work_out(self) -> None:
        offered, taken = self._offered, self._taken
        free = np.min(offered - taken, axis=1, where=offered > 0, initial=np.inf)
        # By resource: no node has less that is not taken.
        self.least_free: list[float] = free.tolist()
        # Whether no node offers, or has offered, more than it can be worked out for.
        self.is_right = bool(offered.max() < self._limit)
        numbers = self._of_all(np.maximum(offered, 1.0), taken)
        self._cells = [column.data for column in numbers]
        # Nobody can write to it.
        self.shown = numbers.view()
        self.shown.flags.writeable = False

    def catch_up(self, written: list[NodeRow]) -> None:
        """Work out the rows anew that were written to since."""
        size = self.size
        if len(written) - self._done > size // _MOST:
            self._work_out()
        else:
            for row in written[self._done :]:
                # A ghost may have come behind them.
                if row < size:
                    self._work_out_one(row)
        self._done = len(written)

    def _work_out_one(self, row: NodeRow) -> None:
        offered: list[float] = []
        taken: list[float] = []
        least_free = self.least_free
        for slot, (offered_cells, taken_cells) in enumerate(self._read):
            most, less = offered_cells[row], taken_cells[row]
            if most <= 0:
                most = 1.0
            elif most - less < least_free[slot]:
                least_free[slot] = most - less
            if most >= self._limit:
                self.is_right = False
            offered.append(most)
            taken.append(less)
        for cells, number in zip(self._cells, self._of_one(offered, taken), strict=True):
            cells[row] = number


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where some resources are, and what is known of them."""

    slots: tuple[int, ...]
    # The slots as a slice, if they are neighbours.
    neighbours: slice | None
    # [plane][resource][0]: where its first row is in the block.
    offsets: npt.NDArray[np.int64]
    # Whether floats show the numbers exactly.
    is_small: bool
    # Whether every node offers each of them.
    is_everywhere: bool
    # As long as all this is so.
    kept: dict[Work, Kept] = field(default_factory=dict)


class Amounts:
    """Numbers of all rows."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {name: slot for slot, name in enumerate(_FIRST)}
        self._next_slot = _NOTHING + 1
        self._large: dict[int, None] = {}
        # By slot, how many nodes offer some.
        self._offering: list[int] = [0] * self._next_slot
        self._node_count = 0
        self._layouts: dict[tuple[str, ...], Layout] = {}
        # The rows that were written to, one after the other. Who keeps something remembers how many
        # there were: it is forgotten before they are.
        self._written: list[NodeRow] = []
        shape = (len(_PLANES), _FIRST_SLOTS, _FIRST_ROWS)
        self._keep(np.zeros(shape, dtype=np.int64), np.zeros(shape))

    def _keep(self, exact: npt.NDArray[np.int64], floats: npt.NDArray[np.float64]) -> None:
        # Single numbers are read and written through these, one after the other as they are in
        # the block: they are the same memory.
        self._exact = exact.reshape(-1).data
        self._floats = floats.reshape(-1).data
        self._slot_count: int = exact.shape[1]
        self._capacity: int = exact.shape[2]
        self._arrays = exact, floats
        # Nobody can write to the state through what is shown.
        self._shown: tuple[Block, Block] = exact.view(), floats.view()
        for shown in self._shown:
            shown.flags.writeable = False
        self._flat: tuple[Block, Block] = exact.reshape(-1), floats.reshape(-1)
        self._layouts.clear()

    # Reading

    def column(self, name: str) -> AnyColumn:
        """Return one column, longer than there are rows; KeyError if it is none of these."""
        if name == POD_COUNT:
            plane, slot = _REQUESTED, _POD_SLOT
        else:
            family, slash, resource = name.partition("/")
            plane, slot = _PLANES[family + slash], self._slots.get(resource, _NOTHING)
        found: AnyColumn = self._shown[0][plane, slot]
        return found

    def layout(self, resources: tuple[str, ...]) -> Layout:
        """Return where resources are."""
        found = self._layouts.get(resources)
        if found is None:
            found = self._lay_out(resources)
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            self._layouts[resources] = found
        return found

    def whole(self, families: Families, layout: Layout, rows: int, *, exact: bool) -> Block:
        """Return [family][resource][row] of the first so many rows."""
        shown = self._shown[not exact]
        if layout.neighbours is not None:
            return shown[families.planes, layout.neighbours, :rows]
        found = np.empty((2, len(layout.slots), rows), dtype=shown.dtype)
        for family, plane in zip(found, shown[families.planes], strict=True):
            for column, slot in zip(family, layout.slots, strict=True):
                column[:] = plane[slot, :rows]
        return found

    def part(
        self,
        families: Families,
        layout: Layout,
        rows: npt.NDArray[np.int64],
        *,
        exact: bool,
    ) -> Block:
        """Return [family][resource][row] of some rows."""
        if len(rows) == 1 and layout.neighbours is not None:
            row = int(rows[0])
            return self._shown[not exact][families.planes, layout.neighbours, row : row + 1]
        if len(rows) <= _FEW:
            return self._flat[not exact].take(layout.offsets[families.planes] + rows)
        shown = self._shown[not exact]
        found = np.empty((2, len(layout.slots), len(rows)), dtype=shown.dtype)
        for family, plane in zip(found, shown[families.planes], strict=True):
            for column, slot in zip(family, layout.slots, strict=True):
                # With a mode that raises, a buffer comes in between.
                plane[slot].take(rows, out=column, mode="clip")
        return found

    def kept(self, work: Work, resources: tuple[str, ...], rows: int) -> Kept | None:
        """Return what is worked out of the first so many rows, as of now.

        None if it can't be kept: amounts are too large, or the resources are not neighbours.
        """
        layout = self.layout(resources)
        if layout.neighbours is None or not layout.is_small:
            return None
        found = layout.kept.get(work)
        if found is None or found.size != rows:
            block = self.whole(work.families, layout, rows, exact=False)
            found = layout.kept[work] = Kept(work, block, len(self._written))
        else:
            found.catch_up(self._written)
        return found if found.is_right else None

    def at(self, row: int) -> bytes:
        """Return all numbers of a row, to be compared with those of others."""
        return self._arrays[0][:, :, row].tobytes()

    def overdrawn(self, row: NodeRow) -> tuple[Overdrawn, ...]:
        """Return what is taken of a row beyond what it offers.

        Asked for every pod that is bound, and nearly always nothing: so number by number.
        """
        exact, capacity = self._exact, self._capacity
        taken, offered = self._place(_REQUESTED, 0, row), self._place(_ALLOCATABLE, 0, row)
        for step in range(0, self._next_slot * capacity, capacity):
            if exact[taken + step] > exact[offered + step]:
                break
        else:
            return ()
        return tuple(
            Overdrawn(name, exact[taken + slot * capacity], exact[offered + slot * capacity])
            for name, slot in self._slots.items()
            if exact[taken + slot * capacity] > exact[offered + slot * capacity]
        )

    def pod_count(self, row: NodeRow) -> int:
        """Return how many pods are on a row."""
        return int(self._exact[self._place(_REQUESTED, _POD_SLOT, row)])

    def _lay_out(self, resources: tuple[str, ...]) -> Layout:
        slots = [self._slots.get(resource, _NOTHING) for resource in resources]
        planes, slot_count, capacity = self._arrays[0].shape
        first, end = slots[0], slots[0] + len(slots)
        numbers = np.arange(planes)[:, np.newaxis] * slot_count + np.array(slots)
        return Layout(
            slots=tuple(slots),
            neighbours=slice(first, end) if slots == list(range(first, end)) else None,
            offsets=(numbers * capacity)[:, :, np.newaxis],
            is_small=not any(slot in self._large for slot in slots),
            is_everywhere=all(self._offering[slot] == self._node_count for slot in slots),
        )

    # Writing

    def offer(self, row: NodeRow, offered: dict[str, int]) -> bool:
        """Take what a node offers, in place of what it did; return whether it is another amount."""
        for resource in offered:
            self._slot(resource)
        changed = False
        for resource, slot in self._slots.items():
            amount = offered.get(resource, 0)
            place = self._place(_ALLOCATABLE, slot, row)
            before = self._exact[place]
            if before != amount:
                changed = True
                self._write(place, amount)
                if (before > 0) != (amount > 0):
                    self._offering[slot] += 1 if amount > 0 else -1
                    self._layouts.clear()
        if changed:
            self._wrote(row)
        return changed

    def count_nodes(self, count: int) -> None:
        """Take how many nodes there are."""
        if count != self._node_count:
            self._node_count = count
            self._layouts.clear()

    def take(self, row: NodeRow, requests: Requests, pods: int) -> None:
        """Count a pod that comes (1) or goes (-1)."""
        scored, requested = self._place(_NON_ZERO, 0, row), self._place(_REQUESTED, 0, row)
        capacity = self._capacity
        for resource, amount in requests.amounts:
            slot = self._slots.get(resource)
            if slot is None:
                slot = self._slot(resource)
                # The planes are elsewhere if there was no room for it.
                scored, requested = self._place(_NON_ZERO, 0, row), self._place(_REQUESTED, 0, row)
            self._add(requested + slot * capacity, pods * amount)
            if slot > _MEMORY_SLOT:
                # There are no defaults for it.
                self._add(scored + slot * capacity, pods * amount)
        self._add(scored + _CPU_SLOT * capacity, pods * requests.non_zero_milli_cpu)
        self._add(scored + _MEMORY_SLOT * capacity, pods * requests.non_zero_memory_bytes)
        self._add(requested + _POD_SLOT * capacity, pods)
        self._add(scored + _POD_SLOT * capacity, pods)
        self._wrote(row)

    def recount(self, row: NodeRow, requests: Iterable[Requests]) -> bool:
        """Add up anew what the pods on a row take; return whether it is not what was counted."""
        before = self.at(row)
        for plane in (_NON_ZERO, _REQUESTED):
            for slot in self._slots.values():
                self._write(self._place(plane, slot, row), 0)
        for each in requests:
            self.take(row, each, 1)
        self._wrote(row)
        return self.at(row) != before

    def reserve(self, rows: int) -> None:
        """Make room for at least so many rows."""
        planes, slots, capacity = self._arrays[0].shape
        if rows > capacity:
            while capacity < rows:
                capacity *= 2
            self._grow((planes, slots, capacity))

    def _slot(self, resource: str) -> int:
        """Return the slot of a resource, making one at first sight."""
        slot = self._slots.get(resource)
        if slot is None:
            slot = self._slots[resource] = self._next_slot
            self._next_slot += 1
            self._offering.append(0)
            self._layouts.clear()
            planes, slots, capacity = self._arrays[0].shape
            if slot >= slots:
                self._grow((planes, 2 * slots, capacity))
        return slot

    def _grow(self, shape: tuple[int, int, int]) -> None:
        exact, floats = self._arrays
        _, slots, rows = exact.shape
        wider, wider_floats = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        wider[:, :slots, :rows] = exact
        wider_floats[:, :slots, :rows] = floats
        self._keep(wider, wider_floats)

    def _place(self, plane: int, slot: int, row: int) -> int:
        """Return where a number is, counted through the block."""
        return (plane * self._slot_count + slot) * self._capacity + row

    def _wrote(self, row: NodeRow) -> None:
        if len(self._written) >= _WRITES:
            self._written.clear()
            # With all that is kept.
            self._layouts.clear()
        self._written.append(row)

    def _add(self, place: int, difference: int) -> None:
        exact = self._exact
        total = exact[place] + difference
        if _EXACT_ABOVE < total < EXACT_BELOW:
            exact[place] = total
            self._floats[place] = total
        else:
            self._write(place, total)

    def _write(self, place: int, amount: int) -> None:
        if not _EXACT_ABOVE < amount < EXACT_BELOW:
            amount = wrapped(amount)
            slot = place // self._capacity % self._slot_count
            if slot not in self._large:
                self._large[slot] = None
                self._layouts.clear()
        self._exact[place] = amount
        self._floats[place] = amount


def is_amount(column: str) -> bool:
    """Return whether a column is one of these."""
    return column == POD_COUNT or column.startswith((ALLOCATABLE, REQUESTED, NON_ZERO))


@lru_cache(maxsize=1000)
def _column_names(families: tuple[str, str], resources: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_column_name(family, r) for family in families for r in resources)


def _column_name(family: str, resource: str) -> str:
    """Return the column that shows a resource's part of a family."""
    if family == ALLOCATABLE:
        return family + resource
    if resource == PODS:
        return POD_COUNT
    if family == NON_ZERO and resource in _WITH_DEFAULTS:
        return family + resource
    return REQUESTED + resource


def wrapped(amount: int) -> int:
    """Return a sum as 64 bits hold it; kube-scheduler's sums wrap around, too."""
    return (amount + 2**63) % 2**64 - 2**63
