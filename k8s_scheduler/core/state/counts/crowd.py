"""Some placed pods, as counters see them: how much each of them counts.

Who wants to know what the leaving of thousands of pods means for a count asks once for all of them.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.state.counts.counters import Counter, Counts

Numbers: TypeAlias = npt.NDArray[np.int64]
Amounts: TypeAlias = Callable[[Counter, "Crowd"], Counts]


class Crowd:
    """Pods that are in place, in some order. It says the truth as long as none of them changes."""

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

    def amounts(self, counter: Counter) -> Counts:
        return self._amounts(counter, self)
