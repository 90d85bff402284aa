"""What is worked out of amounts, row by row, and kept: the rows written to since are done anew."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.amounts.names import Families
from k8s_scheduler.core.state.rows import NodeRow

# In integers, or in floats that are exact.
Block: TypeAlias = npt.NDArray[Any]

# A hundred times as much is below 2^53, so that percentages are exact too.
EXACT_BELOW: Final = 2**46
# If more than one row in so many was written to, everything is worked out anew.
_MOST: Final = 50


@dataclass(frozen=True, slots=True, eq=False)
class RowFormula:
    """Something that is worked out of what is offered and taken on each row on its own.

    In floats that are exact, and at least one of everything is offered. Both ways come to the same
    numbers, to the last digit.
    """

    families: Families
    # Of [resource][row] each; makes [number][row].
    of_all: Callable[[Block, Block], Block]
    # Of one row.
    of_one: Callable[[list[float], list[float]], Sequence[float]]


class Kept:
    """What was worked out of all rows, as of some write."""

    __slots__ = (
        "_cells",
        "_done",
        "_of_all",
        "_of_one",
        "_offered",
        "_read",
        "_taken",
        "least_free",
        "shown",
        "size",
    )

    def __init__(self, formula: RowFormula, block: Block, writes: int) -> None:
        """Work it out of what always shows the numbers of all rows, as of so many writes."""
        self._of_one, self._of_all = formula.of_one, formula.of_all
        offered = formula.families.offered
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
        numbers = self._of_all(np.maximum(offered, 1.0), taken)
        self._cells = [column.data for column in numbers]
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
            offered.append(most)
            taken.append(less)
        for cells, number in zip(self._cells, self._of_one(offered, taken), strict=True):
            cells[row] = number
