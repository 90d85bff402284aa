"""Some placed pods, as counters see them: how much each of them counts.

A dry run that takes thousands of pods away asks once for all of them what a count loses.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.counts.pod_counter import Counts, PodCounter

Numbers: TypeAlias = npt.NDArray[np.int64]
Amounts: TypeAlias = Callable[[PodCounter, "Crowd"], Counts]


class Crowd:
    """Placed pods, in some order. Void once one of them changes."""

    __slots__ = ("_amounts", "holders", "label_sets", "terminating")

    def __init__(
        self,
        *,
        label_sets: Numbers,
        holders: Numbers,
        terminating: npt.NDArray[np.bool_],
        amounts: Amounts,
    ) -> None:
        self.label_sets = label_sets
        self.holders = holders
        self.terminating = terminating
        self._amounts = amounts

    def __len__(self) -> int:
        return len(self.holders)

    def amounts(self, counter: PodCounter) -> Counts:
        return self._amounts(counter, self)
