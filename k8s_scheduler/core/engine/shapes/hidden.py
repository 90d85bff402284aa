"""Rows that are kept from a pod by promises: what that changes in totals, and in who counts."""

from collections import Counter

import numpy as np

from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.engine.shapes.row_scores import Column
from k8s_scheduler.core.framework.views.base import Mask


def withheld_from(totals: Column, hidden: Mask) -> Column:
    """Return totals as an array of its own, NEVER for rows that are hidden."""
    found: Column = totals.copy()
    withhold(found, hidden)
    return found


def withhold(totals: Column, hidden: Mask) -> None:
    """Write NEVER into totals for rows that are hidden."""
    np.copyto(totals[: len(hidden)], NEVER, where=hidden)


def differences(
    flips: list[int], base: Column, before: Mask | None, after: Mask | None
) -> tuple[list[int], list[int]]:
    """Return the rows that have come to count as feasible, and those that do not any longer.

    `flips` are rows that became feasible in themselves, or ceased to be, one by one in turn; the
    masks say which rows are hidden, None if none is.
    """
    # A row that changed twice is as before.
    flipped = [row for row, times in Counter(flips).items() if times % 2]
    came: list[int] = []
    went: list[int] = []
    for row in flipped:
        is_feasible = bool(base[row] != NEVER)
        did_count = not is_feasible and not _is_in(before, row)
        counts = is_feasible and not _is_in(after, row)
        if did_count != counts:
            (came if counts else went).append(row)
    if before is after:
        return came, went
    others = feasible(base)
    others[flipped] = False
    came += np.flatnonzero(
        others & _padded(before, len(base)) & ~_padded(after, len(base))
    ).tolist()
    went += np.flatnonzero(
        others & ~_padded(before, len(base)) & _padded(after, len(base))
    ).tolist()
    return came, went


def feasible(base: Column) -> Mask:
    """Return the rows that no row filter rejects."""
    found: Mask = base != NEVER
    return found


def _is_in(mask: Mask | None, row: int) -> bool:
    return mask is not None and row < len(mask) and bool(mask[row])


def _padded(mask: Mask | None, size: int) -> Mask:
    """Return a mask of all rows; those that it does not know are not in it."""
    found: Mask = np.zeros(size, dtype=np.bool_)
    if mask is not None:
        found[: len(mask)] = mask
    return found
