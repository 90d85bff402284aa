"""Amounts of resources that have no column: a cell for each row that offers or takes any.

Pods may ask for any name, and be put on a node by any tenant; a node may offer any name. What is
here costs as much as there is of it: a cell is made with the first amount and goes with the last.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from k8s_scheduler.core.state.amounts.names import wrapped
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

# What is offered and what is taken.
Cell: TypeAlias = list[int]
OFFERED, TAKEN = range(2)

_NO_CELLS: Final[Mapping[NodeRow, Cell]] = {}
_NO_RESOURCES: Final[Mapping[str, Cell]] = {}


class SparseAmounts:
    """The cells, by resource and by row."""

    def __init__(self) -> None:
        self._by_resource: dict[str, dict[NodeRow, Cell]] = {}
        self._by_row: dict[NodeRow, dict[str, Cell]] = {}

    def of(self, resource: str) -> Mapping[NodeRow, Cell]:
        """Return the cells of a resource, by row. Do not write to them."""
        return self._by_resource.get(resource, _NO_CELLS)

    def on(self, row: NodeRow) -> Mapping[str, Cell]:
        """Return the cells of a row, by resource. Do not write to them."""
        return self._by_row.get(row, _NO_RESOURCES)

    def add(self, row: NodeRow, resource: str, difference: int) -> None:
        """Let more, or less, be taken."""
        cell = self._cell(row, resource)
        cell[TAKEN] = wrapped(cell[TAKEN] + difference)
        self._drop_if_empty(row, resource, cell)

    def offer(self, row: NodeRow, resource: str, amount: int) -> int:
        """Let so much be offered; return how much was."""
        cell = self._cell(row, resource)
        before = cell[OFFERED]
        cell[OFFERED] = amount
        self._drop_if_empty(row, resource, cell)
        return before

    def put(self, row: NodeRow, resource: str, *, offered: int, taken: int) -> None:
        """Take over what a column said of a row."""
        cell = self._cell(row, resource)
        cell[:] = offered, taken
        self._drop_if_empty(row, resource, cell)

    def pop(self, resource: str) -> Mapping[NodeRow, Cell]:
        """Give all cells of a resource away."""
        found = self._by_resource.pop(resource, {})
        self._by_resource = compact(self._by_resource)
        for row in found:
            self._drop_from_row(row, resource)
        return found

    def take_nothing(self, row: NodeRow) -> None:
        """Let nothing be taken of a row."""
        for resource, cell in list(self.on(row).items()):
            cell[TAKEN] = 0
            self._drop_if_empty(row, resource, cell)

    def _cell(self, row: NodeRow, resource: str) -> Cell:
        """Return a cell, making one if there is none."""
        here = self._by_row.get(row)
        if here is None:
            here = self._by_row[row] = {}
        cell = here.get(resource)
        if cell is None:
            cell = here[resource] = [0, 0]
            self._by_resource.setdefault(resource, {})[row] = cell
        return cell

    def _drop_if_empty(self, row: NodeRow, resource: str, cell: Cell) -> None:
        if cell[OFFERED] or cell[TAKEN]:
            return
        cells = self._by_resource[resource]
        del cells[row]
        if cells:
            self._by_resource[resource] = compact(cells)
        else:
            del self._by_resource[resource]
            self._by_resource = compact(self._by_resource)
        self._drop_from_row(row, resource)

    def _drop_from_row(self, row: NodeRow, resource: str) -> None:
        here = self._by_row[row]
        del here[resource]
        if here:
            self._by_row[row] = compact(here)
        else:
            del self._by_row[row]
            self._by_row = compact(self._by_row)
