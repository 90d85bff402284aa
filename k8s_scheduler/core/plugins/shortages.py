"""From what is short on which row to one code per row; the sets of shortages are few.

A pod may ask for any number of resources, and nearly all of them be offered by no node. Those are
not looked at row by row: without anything offered or taken, they lack or do not lack on every row
alike.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.rows_view import Codes, Mask, RowsView
from k8s_scheduler.core.framework.views.values import OFFERED_AND_TAKEN, wrapped

# One verdict names so many resources at most; the others are counted. Their names would make a text
# of more than 32 KiB, which is never shown as a whole.
MOST_REASONS: Final = 2048
# So many sets of shortages are remembered for a pod.
_PATTERNS: Final = 8

_SHIFTS: Final = np.arange(8, dtype=np.uint8)[:, np.newaxis]


def codes_of_few(rows: RowsView, short: Mask, hopeless: Mask, reasons: Sequence[Reason]) -> Codes:
    """Fold one mask per resource, each with its reason, into one code per row."""
    numbers = _numbered(np.concatenate((short, hopeless[np.newaxis])))
    counts = np.bincount(numbers)
    codes = np.zeros(len(counts), dtype=np.int64)
    for number in np.flatnonzero(counts).tolist():
        row = int((numbers == number).argmax())
        found = tuple(compress(reasons, short[:, row].tolist()))
        if found:
            codes[number] = rows.code(found, resolvable=not hopeless[row])
    return codes.take(numbers)


# Of resources without columns on one row: name, offered, taken.
_Told = Sequence[tuple[str, int, int]]


class ManyShortages:
    """What a pod lacks that asks for many resources, `pods` first.

    Made once for a pod: it is asked again and again while the pod waits.
    """

    def __init__(
        self,
        asked: Mapping[str, int],
        *,
        reason: Callable[[str], Reason],
        more: Callable[[int], Reason],
    ) -> None:
        """`reason` says that a resource lacks, and `more` that so many others do."""
        self._asked = asked
        self._reason = reason
        self._more = more
        self._names = tuple(asked)
        self._places = {name: place for place, name in enumerate(self._names)}
        # As of when the following was found out.
        self._as_of: object = None
        self._near: tuple[str, ...] = ()
        self._near_numbers = np.zeros((0, 1), dtype=np.int64)
        self._far: dict[str, int] = {}
        # By resource: whether it is short where nothing is offered or taken. It is hopeless then.
        self._usually: list[bool] = []
        self._usual_count = 0
        # By what is short of the resources with columns, where nothing is there of others.
        self._usual_reasons: dict[tuple[bool, ...], tuple[Reason, ...]] = {}

    def codes(self, rows: RowsView) -> Codes:
        self._sort(rows)
        near = self._near
        block = rows.block(OFFERED_AND_TAKEN, near, exact=True)
        numbers = self._near_numbers
        short = numbers > block[0] - block[1]
        hopeless = np.logical_or.reduce(numbers[1:] > block[0, 1:])
        patterns = _numbered(np.concatenate((short, hopeless[np.newaxis])))
        codes = np.zeros(len(rows), dtype=np.int64)
        for number in dict.fromkeys(patterns.tolist()):
            mask = patterns == number
            row = int(mask.argmax())
            is_hopeless = bool(hopeless[row]) or self._usual_count > 0
            reasons = self._usual(tuple(short[:, row].tolist()))
            codes[mask] = _code(rows, reasons, hopeless=is_hopeless)
        for position, told in rows.cells(self._far):
            if self._differ(told):
                reasons, count = self._unusual(short[:, position].tolist(), told)
                is_hopeless = bool(hopeless[position]) or count > 0
                codes[position] = _code(rows, reasons, hopeless=is_hopeless)
        return codes

    def _sort(self, rows: RowsView) -> None:
        """Sort resources by whether they have a column."""
        if self._as_of is rows.columns:
            return
        self._as_of = rows.columns
        self._near = rows.with_columns(self._names)
        numbers = [self._asked[name] for name in self._near]
        self._near_numbers = np.array(numbers, dtype=np.int64)[:, np.newaxis]
        near = dict.fromkeys(self._near)
        self._far = {name: number for name, number in self._asked.items() if name not in near}
        self._usually = [name not in near and number > 0 for name, number in self._asked.items()]
        self._usual_count = sum(self._usually)
        self._usual_reasons.clear()

    def _usual(self, near: tuple[bool, ...]) -> tuple[Reason, ...]:
        """Return the reasons where so much is short of what has columns, and nothing else there."""
        found = self._usual_reasons.get(near)
        if found is None:
            if len(self._usual_reasons) >= _PATTERNS:
                self._usual_reasons.clear()
            found = self._usual_reasons[near] = self._reasons(self._is_short(near))
        return found

    def _differ(self, told: _Told) -> bool:
        """Return whether a row lacks other resources than rows usually do, or may have them."""
        for name, offered, taken in told:
            number = self._far[name]
            usual = number > 0
            if (number > wrapped(offered - taken)) != usual or (number > offered) != usual:
                return True
        return False

    def _unusual(self, near: list[bool], told: _Told) -> tuple[tuple[Reason, ...], int]:
        """Return the reasons, and how many resources without columns an empty node would lack."""
        is_short = self._is_short(near)
        hopeless_count = self._usual_count
        for name, offered, taken in told:
            number = self._far[name]
            is_short[self._places[name]] = number > wrapped(offered - taken)
            hopeless_count += (number > offered) - (number > 0)
        return self._reasons(is_short), hopeless_count

    def _is_short(self, near: Iterable[bool]) -> list[bool]:
        found = self._usually.copy()
        for name, lacks in zip(self._near, near, strict=True):
            found[self._places[name]] = lacks
        return found

    def _reasons(self, is_short: list[bool]) -> tuple[Reason, ...]:
        lacking = list(compress(self._names, is_short))
        reasons = [self._reason(name) for name in lacking[:MOST_REASONS]]
        if len(lacking) > MOST_REASONS:
            reasons.append(self._more(len(lacking) - MOST_REASONS))
        return tuple(reasons)


def _code(rows: RowsView, reasons: tuple[Reason, ...], *, hopeless: bool) -> int:
    return rows.code(reasons, resolvable=not hopeless) if reasons else 0


def _numbered(masks: Mask) -> npt.NDArray[Any]:
    """Return a number for each column; equal columns have equal ones, and only they.

    Eight masks make a byte.
    """
    bits = masks.view(np.uint8)
    found: npt.NDArray[Any] = np.bitwise_or.reduce(bits[:8] << _SHIFTS[: len(bits)])
    for start in range(8, len(bits), 8):
        more = bits[start : start + 8]
        wider = found.astype(np.int64) * 256 + np.bitwise_or.reduce(more << _SHIFTS[: len(more)])
        found = np.unique(wider, return_inverse=True)[1]
    return found
