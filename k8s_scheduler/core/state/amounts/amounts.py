"""How much of each resource nodes offer and pods take: one block of numbers, and what is beside it.

    [plane][slot][row]: three planes (with defaults for pods that ask for nothing, offered,
    taken), a slot per resource, a row per node

A slot, or column, is for a resource that nodes offer (`column_grants`). What has none is kept row
by row (`sparse_amounts`): what pods ask for that no node offers, and what few nodes offer where
there are too many names. A slot is given back when no node offers the resource any more, and the
block shrinks. All numbers read the same wherever they are.

Neighbouring planes and slots are read together, without a copy where all nodes are wanted. Every
number of the block is kept twice: as an integer, which is the truth, and as a float, which is the
same number as long as it is small and several times as fast to divide by.

Two things are known of a resource without looking at its rows: whether some number is too large for
floats to be exact, and whether every node offers some. They decide how something is computed, never
what comes out. What is worked out of the numbers of each row on its own may be kept (`RowFormula`).
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.resources import Requests
from k8s_scheduler.core.state.amounts.block import FIRST_SLOTS, NOTHING, AmountBlock, Layout
from k8s_scheduler.core.state.amounts.column_grants import ColumnGrants
from k8s_scheduler.core.state.amounts.kept import Block, Kept, RowFormula
from k8s_scheduler.core.state.amounts.names import (
    ALLOCATABLE_PLANE,
    FEW_RESOURCES,
    NATIVE,
    NON_ZERO_PLANE,
    PLANES,
    POD_COUNT,
    REQUESTED_PLANE,
    Families,
)
from k8s_scheduler.core.state.amounts.overdrawn import Overdrawn
from k8s_scheduler.core.state.amounts.sparse import OFFERED, TAKEN, Cell, SparseAmounts
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

_POD_SLOT, _CPU_SLOT, _MEMORY_SLOT = range(3)
# The block shrinks to half its size when no more than this share of its slots is used.
_SHRINK_SHARE: Final = 3 / 8
_LAYOUTS: Final = 256
# Up to so many rows one gather of everything is cheaper than one for each column.
_FEW: Final = 500
# From so many rows on, it pays to keep what is worked out of them.
MANY: Final = 1000


class Amounts(AmountBlock):
    """Numbers of all rows."""

    def __init__(self) -> None:
        super().__init__()
        self._grants = ColumnGrants()
        self._sparse = SparseAmounts()
        # By row: the resources besides the native ones of which its node offers some.
        self._offers: dict[NodeRow, tuple[str, ...]] = {}
        # Resources that are elsewhere, or offered by another number of nodes, than layouts say.
        self._moved: dict[str, None] = {}
        self._node_count = 0
        # Another object whenever a resource gets or loses its column.
        self.columns = object()

    # Reading

    def column(self, name: str) -> AnyColumn:
        """Return one column, longer than there are rows; KeyError if it is none of these."""
        if name == POD_COUNT:
            plane, slot, cells = REQUESTED_PLANE, _POD_SLOT, None
        else:
            family, slash, resource = name.partition("/")
            plane, slot = PLANES[family + slash], self._slots.get(resource, NOTHING)
            cells = self._sparse.of(resource)
        if not cells:
            found: AnyColumn = self._shown[0][plane, slot]
            return found
        made = self._spread_out(cells, OFFERED if plane == ALLOCATABLE_PLANE else TAKEN)
        made.flags.writeable = False
        return made

    def _spread_out(self, cells: Mapping[NodeRow, Cell], which: int) -> npt.NDArray[np.int64]:
        """Return what cells say, as a column."""
        made = np.zeros(self._capacity, dtype=np.int64)
        made[list(cells)] = [cell[which] for cell in cells.values()]
        return made

    def layout(self, resources: tuple[str, ...]) -> Layout:
        found = self._layouts.get(resources)
        if found is None:
            found = self._lay_out(resources)
            if len(resources) <= FEW_RESOURCES:
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
        for place, resource in layout.sparse:
            cells = self._sparse.of(resource)
            if cells:
                found[families.offered, place] = self._spread_out(cells, OFFERED)[:rows]
                found[1 - families.offered, place] = self._spread_out(cells, TAKEN)[:rows]
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
            found = self._flat[not exact].take(layout.offsets[families.planes] + rows)
        else:
            shown = self._shown[not exact]
            found = np.empty((2, len(layout.slots), len(rows)), dtype=shown.dtype)
            for family, plane in zip(found, shown[families.planes], strict=True):
                for column, slot in zip(family, layout.slots, strict=True):
                    # With a mode that raises, a buffer comes in between.
                    plane[slot].take(rows, out=column, mode="clip")
        for place, resource in layout.sparse:
            cells = self._sparse.of(resource)
            if cells:
                offered, taken = found[families.offered, place], found[1 - families.offered, place]
                self._fill_in(offered, taken, rows, cells)
        return found

    def _fill_in(
        self,
        offered: Block,
        taken: Block,
        rows: npt.NDArray[np.int64],
        cells: Mapping[NodeRow, Cell],
    ) -> None:
        """Write what cells say of some rows to two columns of zeros."""
        if len(rows) > _FEW:
            offered[:] = self._spread_out(cells, OFFERED).take(rows)
            taken[:] = self._spread_out(cells, TAKEN).take(rows)
            return
        for position, row in enumerate(rows.tolist()):
            if row in cells:
                offered[position], taken[position] = cells[row]

    def cells_on(self, row: NodeRow) -> Mapping[str, Cell]:
        """Return what is offered and taken on a row of resources without a column."""
        return self._sparse.on(row)

    def with_columns(self, resources: Iterable[str]) -> tuple[str, ...]:
        slots = self._slots
        return tuple([resource for resource in resources if resource in slots])

    def kept(self, formula: RowFormula, resources: tuple[str, ...], rows: int) -> Kept | None:
        """Return what is worked out of the first so many rows, as of now.

        None if it can't be kept: amounts are too large, or the resources are not neighbours.
        """
        layout = self.layout(resources)
        if layout.neighbours is None or not layout.is_small or len(resources) > FEW_RESOURCES:
            return None
        found = layout.kept.get(formula)
        if found is None or found.size != rows:
            block = self.whole(formula.families, layout, rows, exact=False)
            found = layout.kept[formula] = Kept(formula, block, len(self._written))
        else:
            found.catch_up(self._written)
        return found

    def at(self, row: NodeRow) -> tuple[bytes, dict[str, Cell]]:
        """Return all numbers of a row, to be compared with what they were."""
        cells = self._sparse.on(row)
        return self._arrays[0][:, :, row].tobytes(), {name: [*cells[name]] for name in cells}

    def key(self, row: NodeRow, resources: tuple[str, ...]) -> object:
        """Return what rows with equal amounts of some resources have in common, and only they."""
        layout = self.layout(resources)
        if layout.neighbours is not None:
            return self._arrays[0][:, layout.neighbours, row].tobytes()
        numbers = self._flat[0].take(layout.offsets[:, :, 0] + row).tobytes()
        if not layout.sparse:
            return numbers
        # With the names of all that are not in the block: it is another key if one of them moves.
        cells = self._sparse.on(row)
        return numbers, tuple([(name, *cells.get(name, (0, 0))) for _, name in layout.sparse])

    def overdrawn(self, row: NodeRow, resources: Iterable[str]) -> tuple[Overdrawn, ...]:
        """Return of which resources more is taken of a row than it offers.

        Looks at the native ones and at some others. Asked for every pod that is bound, and nearly
        always nothing: so number by number.
        """
        exact, capacity = self._exact, self._capacity
        taken = self._place(REQUESTED_PLANE, 0, row)
        offered = self._place(ALLOCATABLE_PLANE, 0, row)
        found: list[Overdrawn] = []
        for slot, name in enumerate(NATIVE):
            step = slot * capacity
            if exact[taken + step] > exact[offered + step]:
                found.append(Overdrawn(name, exact[taken + step], exact[offered + step]))
        cells = self._sparse.on(row)
        for name in resources:
            known = self._slots.get(name)
            if known is None:
                most, less = cells.get(name, (0, 0))
            elif known < NOTHING:
                continue
            else:
                step = known * capacity
                most, less = exact[offered + step], exact[taken + step]
            if less > most:
                found.append(Overdrawn(name, less, most))
        return tuple(found)

    def offers_of(self, row: NodeRow) -> tuple[str, ...]:
        """Return the resources besides the native ones of which a row's node offers some."""
        return self._offers.get(row, ())

    def pod_count(self, row: NodeRow) -> int:
        return int(self._exact[self._place(REQUESTED_PLANE, _POD_SLOT, row)])

    def _lay_out(self, resources: tuple[str, ...]) -> Layout:
        slots = [self._slots.get(resource, NOTHING) for resource in resources]
        sparse = tuple(
            [(place, resources[place]) for place, slot in enumerate(slots) if slot == NOTHING]
        )
        planes, slot_count, capacity = self._arrays[0].shape
        first, end = slots[0], slots[0] + len(slots)
        numbers = np.arange(planes)[:, np.newaxis] * slot_count + np.array(slots)
        are_neighbours = not sparse and slots == list(range(first, end))
        offering = self._grants.offering
        return Layout(
            slots=tuple(slots),
            neighbours=slice(first, end) if are_neighbours else None,
            offsets=(numbers * capacity)[:, :, np.newaxis],
            sparse=sparse,
            is_small=not sparse and not any(slot in self._large for slot in slots),
            is_everywhere=all(offering.get(name, 0) == self._node_count for name in resources),
        )

    # What nodes offer

    def offer(self, row: NodeRow, offered: Mapping[str, int]) -> bool:
        """Take what a node offers, in place of what it did; return whether it is another amount."""
        changed = False
        for resource in NATIVE:
            changed |= self._offer(row, resource, offered.get(resource, 0))
        others = {name: n for name, n in offered.items() if n and name not in NATIVE}
        for resource in self._offers.get(row, ()):
            if resource not in others:
                changed |= self._offer(row, resource, 0)
        for resource, amount in others.items():
            changed |= self._offer(row, resource, amount)
        self._give_columns_back()
        for resource in others:
            self._seek_column(resource)
        if others:
            self._offers[row] = tuple(others)
        else:
            self._offers.pop(row, None)
            self._offers = compact(self._offers)
        self._fit_block()
        if self._moved:
            moved = self._moved.keys()
            for stale in [known for known in self._layouts if not moved.isdisjoint(known)]:
                del self._layouts[stale]
            self._moved.clear()
        if changed:
            self._wrote(row)
        return changed

    def count_nodes(self, count: int) -> None:
        """Take how many nodes there are."""
        if count != self._node_count:
            self._node_count = count
            self._layouts.clear()

    def _offer(self, row: NodeRow, resource: str, amount: int) -> bool:
        """Take what a node offers of one resource; return whether it is another amount."""
        slot = self._slots.get(resource)
        if slot is None:
            before = self._sparse.offer(row, resource, amount)
        else:
            place = self._place(ALLOCATABLE_PLANE, slot, row)
            before = self._exact[place]
            if before != amount:
                self._write(place, amount)
        if (before > 0) != (amount > 0):
            self._grants.count(resource, 1 if amount > 0 else -1)
            self._moved[resource] = None
        return bool(before != amount)

    # Columns

    def _give_columns_back(self) -> None:
        """Take the columns of what no node offers any more, and give them to others that wait."""
        lost = self._grants.lost()
        for resource in lost:
            self._empty_column(resource)
        if lost:
            for resource in self._grants.next_in_line():
                self._make_column(resource)

    def _seek_column(self, resource: str) -> None:
        """Give a resource a column, if it is to have one and has none."""
        has_won, loser = self._grants.won(resource)
        if loser is not None:
            self._empty_column(loser)
        if has_won:
            self._make_column(resource)

    def _make_column(self, resource: str) -> None:
        if not self._free_slots:
            self._resize(2 * self._slot_count, self._capacity)
        slot = self._slots[resource] = heapq.heappop(self._free_slots)
        self._moved[resource] = None
        self.columns = object()
        for row, cell in self._sparse.pop(resource).items():
            self._write(self._place(ALLOCATABLE_PLANE, slot, row), cell[OFFERED])
            self._write(self._place(REQUESTED_PLANE, slot, row), cell[TAKEN])
            self._write(self._place(NON_ZERO_PLANE, slot, row), cell[TAKEN])

    def _empty_column(self, resource: str) -> None:
        """Keep what a column says row by row, and let another resource have it."""
        slot = self._slots.pop(resource)
        self._moved[resource] = None
        self.columns = object()
        exact, floats = self._arrays
        offered, taken = exact[ALLOCATABLE_PLANE, slot], exact[REQUESTED_PLANE, slot]
        for row in np.flatnonzero((offered != 0) | (taken != 0)).tolist():
            self._sparse.put(
                NodeRow(row), resource, offered=int(offered[row]), taken=int(taken[row])
            )
        exact[:, slot] = 0
        floats[:, slot] = 0.0
        self._large.pop(slot, None)
        heapq.heappush(self._free_slots, slot)

    def _fit_block(self) -> None:
        """Give memory back if most slots are free."""
        slots = self._slot_count
        used = slots - len(self._free_slots)
        while slots > FIRST_SLOTS and used <= _SHRINK_SHARE * slots:
            slots //= 2
        if slots < self._slot_count:
            self._resize(slots, self._capacity)

    # What pods take

    def take(self, row: NodeRow, requests: Requests, pods: int) -> None:
        """Count a pod that comes (1) or goes (-1)."""
        scored = self._place(NON_ZERO_PLANE, 0, row)
        requested = self._place(REQUESTED_PLANE, 0, row)
        capacity = self._capacity
        for resource, amount in requests.amounts:
            slot = self._slots.get(resource)
            if slot is None:
                self._sparse.add(row, resource, pods * amount)
                continue
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
        for plane in (NON_ZERO_PLANE, REQUESTED_PLANE):
            for slot in self._slots.values():
                self._write(self._place(plane, slot, row), 0)
        self._sparse.take_nothing(row)
        for each in requests:
            self.take(row, each, 1)
        self._wrote(row)
        return self.at(row) != before
