"""Label values of nodes as whole numbers: each is read once, however many compare it."""

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.selectors.nodes import whole_number
from k8s_scheduler.core.state.nodes.labels import LabelColumns

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class LabelNumbers:
    """By id of a value: the number that it is, if it is one."""

    def __init__(self, labels: LabelColumns) -> None:
        self._labels = labels
        self._start_over()

    def _start_over(self) -> None:
        self._epoch = self._labels.epoch
        self._numbers: Numbers = np.zeros(1, dtype=np.int64)
        self._is_number: Mask = np.zeros(1, dtype=np.bool_)

    def at(self, ids: Numbers) -> tuple[Numbers, Mask]:
        """Return the numbers of some ids, and which of them are any; an absent label is none."""
        self._read_new_values()
        # An absent label finds the last place.
        return self._numbers[ids], self._is_number[ids]

    def _read_new_values(self) -> None:
        labels = self._labels
        if labels.epoch != self._epoch:
            # Ids mean other values.
            self._start_over()
        known = len(self._numbers) - 1
        if known == labels.value_count:
            return
        found = [whole_number(labels.value(i)) for i in range(known, labels.value_count)]
        new = np.array([*(number or 0 for number in found), 0], dtype=np.int64)
        self._numbers = np.concatenate([self._numbers[:-1], new])
        is_number = [*(number is not None for number in found), False]
        self._is_number = np.concatenate([self._is_number[:-1], np.array(is_number)])
