"""The lowest priority of each row: where pods could be evicted, without a look at every pod.

Rows are only marked when pods come, go or change their priority, and worked out with the
next question. Searches for room ask often, and few rows change in between.
"""

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.columns import AnyColumn

# More important than any pod: the priority of a row without pods.
NO_PODS: Final = 2**62
# With one row in so many marked, a pass over all pods is the faster way.
_MANY: Final = 8


class LowestPriorities:
    """By row, the lowest priority of its pods."""

    __slots__ = ("_lowest", "stale")

    def __init__(self) -> None:
        self._lowest: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        # Rows whose pods have changed since they were last looked at; stands for an ordered set.
        self.stale: dict[int, None] = {}

    def forget(self) -> None:
        self._lowest = np.zeros(0, dtype=np.int64)
        self.stale.clear()

    def below(
        self,
        priority: int,
        *,
        row_count: int,
        column: Callable[[str], AnyColumn],
        on_row: Callable[[int], Iterable[int]],
    ) -> npt.NDArray[np.bool_]:
        """Return the rows with a pod that is less important.

        `column` returns a column of all placed pods, `on_row` the priorities of those on a row.
        """
        if len(self._lowest) < row_count or len(self.stale) * _MANY > row_count:
            self._lowest = np.full(row_count, NO_PODS, dtype=np.int64)
            np.minimum.at(self._lowest, column("row"), column("priority"))
        else:
            for row in self.stale:
                self._lowest[row] = min(on_row(row), default=NO_PODS)
        self.stale.clear()
        found: npt.NDArray[np.bool_] = self._lowest[:row_count] < priority
        return found
