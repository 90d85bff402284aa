"""The first of several things, in their order of preference, that reaches a node.

Things that are pinned to labels are sorted by key and value once; the best of each value is then
one look into a table by value id. What reaches everywhere is the same for all rows, and equal
selectors are matched once. So the work grows with the things plus the rows, not with their
product, unless every thing has a selector of its own that is more than a pin.

A ranking never changes. When things come and go the next one is made from it, with all that is
known of those that stay.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.order import NOWHERE, Ranks
from k8s_scheduler.core.plugins.volume_binding.reach import Reach

# The rank of nothing: worse than any other.
NONE: Final = np.iinfo(np.int64).max
# In place of the id of a value that was not looked up yet.
_UNSEEN: Final = -3

Values = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class _Pins:
    """Pins on one label, by rank; the ids of their values as far as they were looked up."""

    ranks: Ranks
    values: Values
    value_ids: npt.NDArray[np.int64]

    @staticmethod
    def of(pins: Sequence[tuple[int, str]]) -> "_Pins":
        values = np.empty(len(pins), dtype=np.object_)
        values[:] = [value for _, value in pins]
        ranks = np.array([rank for rank, _ in pins], dtype=np.int64)
        return _Pins(ranks, values, np.full(len(pins), _UNSEEN))

    def moved(self, after: Ranks, come: Sequence[tuple[int, str]]) -> "_Pins":
        """Return them with their ranks as they are now, and others that have come."""
        ranks = after[self.ranks]
        left = ranks != NOWHERE
        ranks, values, value_ids = ranks[left], self.values[left], self.value_ids[left]
        if come:
            at = np.searchsorted(ranks, [rank for rank, _ in come])
            new = _Pins.of(come)
            ranks = np.insert(ranks, at, new.ranks)
            values = np.insert(values, at, new.values)
            value_ids = np.insert(value_ids, at, new.value_ids)
        return _Pins(ranks, values, value_ids)

    def look_up(self, rows: RowsView, *, anew: bool) -> None:
        """Find the ids of values that were not looked up yet, or of all."""
        if anew:
            self.value_ids[:] = _UNSEEN
        for place in np.flatnonzero(self.value_ids == _UNSEEN).tolist():
            self.value_ids[place] = rows.label_id(self.values[place])


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen for one claim, ready to be cut to rows.

    By source, and for each as many levels as there may be things taken before: a table by value
    id for pins, a single rank for a selector or for everywhere.
    """

    tables: tuple[tuple[str, tuple[Ranks, ...]], ...]
    selected: tuple[tuple[Reach, tuple[int, ...]], ...]

    def first(self, rows: RowsView, taken: Sequence[Ranks] = ()) -> Ranks:
        """Return each row's best rank that is not among the row's taken ones; NONE if none is."""
        best = np.full(len(rows), NONE)
        for key, levels in self.tables:
            ids = rows.label(key)
            for table in levels:
                # The last entry stands for nodes without the label.
                _improve(best, table[np.where(ids >= 0, ids, -1)], taken)
        for reach, ranks in self.selected:
            mask = reach.mask(rows)
            for rank in ranks:
                _improve(best, np.where(mask, rank, NONE), taken)
        return best


class Ranking:
    """Things by rank: the first is the best."""

    def __init__(self, reaches: Sequence[Reach]) -> None:
        self._pins: dict[str, _Pins] = {}
        self._selected: dict[bytes, tuple[Reach, Ranks]] = {}
        # What the ids of values were looked up from.
        self._inputs: tuple[Any, int] | None = None
        self._add(enumerate(reaches))

    def moved(self, after: Ranks, come: Iterable[tuple[int, Reach]]) -> "Ranking":
        """Return the ranking that follows: former ranks have become others, and some are new."""
        following = Ranking(())
        following._inputs = self._inputs
        following._pins = dict(self._pins)
        following._selected = {
            key: (reach, left)
            for key, (reach, ranks) in self._selected.items()
            if len(left := _present(after[ranks]))
        }
        following._add(come, after)
        return following

    def _add(self, come: Iterable[tuple[int, Reach]], after: Ranks | None = None) -> None:
        """Take in things, those that are known having moved."""
        pins: dict[str, list[tuple[int, str]]] = {key: [] for key in self._pins}
        selected: dict[bytes, tuple[Reach, list[int]]] = {}
        for rank, reach in come:
            if reach.pins is None:
                selected.setdefault(reach.key, (reach, []))[1].append(rank)
            for key, value in reach.pins or ():
                pins.setdefault(key, []).append((rank, value))
        for key, found in pins.items():
            known = self._pins.get(key)
            if known is None or after is None:
                self._pins[key] = _Pins.of(found)
                continue
            self._pins[key] = known.moved(after, found)
            if not len(self._pins[key].ranks):
                del self._pins[key]
        for encoded, (reach, ranks) in selected.items():
            _, others = self._selected.get(encoded, (reach, ()))
            self._selected[encoded] = (reach, np.sort(np.append(others, ranks).astype(np.int64)))

    def choices(self, allowed: Mask, depth: int, rows: RowsView) -> Choices:
        """Return the choice among the allowed when at most `depth - 1` are taken before."""
        self._look_up(rows)
        count = rows.label_value_count
        tables = tuple(
            (key, _levels(pins, allowed, depth, count)) for key, pins in self._pins.items()
        )
        selected = tuple(
            (reach, tuple(ranks[allowed[ranks]][:depth].tolist()))
            for reach, ranks in self._selected.values()
        )
        return Choices(
            tuple((key, levels) for key, levels in tables if levels),
            tuple((reach, ranks) for reach, ranks in selected if ranks),
        )

    def _look_up(self, rows: RowsView) -> None:
        """Know the ids of the values that things are pinned to."""
        # A value has an id from the moment its label is first asked for after some node has it;
        # asked for all labels here, no new id means that the same values have the same ids.
        for key in self._pins:
            rows.label(key)
        layout, generation = rows.layout, rows.label_generation
        known = self._inputs
        anew = known is None or known[0] is not layout or known[1] != generation
        for pins in self._pins.values():
            pins.look_up(rows, anew=anew)
        self._inputs = (layout, generation)


def _present(ranks: Ranks) -> Ranks:
    found: Ranks = ranks[ranks != NOWHERE]
    return found


def _levels(pins: _Pins, allowed: Mask, depth: int, value_count: int) -> tuple[Ranks, ...]:
    """Return tables by value id: the best rank, the second best, and so on."""
    usable = allowed[pins.ranks] & (pins.value_ids >= 0)
    ranks, value_ids = pins.ranks[usable], pins.value_ids[usable]
    levels: list[Ranks] = []
    while len(ranks) and len(levels) < depth:
        table = np.full(value_count + 1, NONE)
        # Written backwards, so that the lowest rank of a value comes last and stays.
        table[value_ids[::-1]] = ranks[::-1]
        levels.append(table)
        worse = table[value_ids] != ranks
        ranks, value_ids = ranks[worse], value_ids[worse]
    return tuple(levels)


def _improve(best: Ranks, offered: Ranks, taken: Sequence[Ranks]) -> None:
    """Take what is offered where it is better and not taken."""
    better = offered < best
    for others in taken:
        better &= offered != others
    best[better] = offered[better]
