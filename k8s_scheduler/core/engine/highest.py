"""Which row wins."""

import numpy as np
import numpy.typing as npt


def first_highest(totals: npt.NDArray[np.int64], *, start: int) -> int:
    """Return where the highest total is first found at or after `start`, wrapping around."""
    if not 0 < start < len(totals):
        return int(totals.argmax())
    after = start + int(totals[start:].argmax())
    before = int(totals[:start].argmax())
    return before if totals[before] > totals[after] else after
