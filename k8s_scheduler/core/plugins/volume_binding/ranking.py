"""The first of several things, in their order of preference, that reaches a node.

Things that are pinned to labels are sorted by key and value once; the best of each value is then
one look into a table by value id. What reaches everywhere is the same for all rows, and equal
selectors are matched once. So the work grows with the things plus the rows, not with their
product, unless every thing has a selector of its own that is more than a pin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.core.framework.remembered import Remembered
from k8s_scheduler.core.framework.views import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.reach import Reach

Ranks = npt.NDArray[np.int64]

# The rank of nothing: worse than any other.
NONE: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Pinned:
    """Pins on one label: (rank, value id) pairs, by rank."""

    key: str
    ranks: Ranks
    value_ids: npt.NDArray[np.int64]


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
        self._by_key: dict[str, list[tuple[int, str]]] = {}
        by_selector: dict[bytes, tuple[Reach, list[int]]] = {}
        for rank, reach in enumerate(reaches):
            if reach.pins is None:
                by_selector.setdefault(reach.key, (reach, []))[1].append(rank)
            for key, value in reach.pins or ():
                self._by_key.setdefault(key, []).append((rank, value))
        self._selected = [(reach, np.array(ranks)) for reach, ranks in by_selector.values()]
        self._known: Remembered[list[_Pinned]] = Remembered()

    def choices(self, allowed: Mask, depth: int, rows: RowsView) -> Choices:
        """Return the choice among the allowed when at most `depth - 1` are taken before."""
        tables = tuple(
            (pinned.key, _levels(pinned, allowed, depth, rows.label_value_count))
            for pinned in self._pinned(rows)
        )
        selected = tuple(
            (reach, tuple(ranks[allowed[ranks]][:depth].tolist()))
            for reach, ranks in self._selected
        )
        return Choices(
            tuple((key, levels) for key, levels in tables if levels),
            tuple((reach, ranks) for reach, ranks in selected if ranks),
        )

    def _pinned(self, rows: RowsView) -> list[_Pinned]:
        # A value has an id from the moment its label is first asked for after some node has it;
        # asked for all labels here, no new id means that the same values have the same ids.
        for key in self._by_key:
            rows.label(key)
        inputs = (rows.layout, rows.label_value_count)
        return self._known.get(
            inputs, lambda: [_pinned(key, pins, rows) for key, pins in self._by_key.items()]
        )


def _pinned(key: str, pins: list[tuple[int, str]], rows: RowsView) -> _Pinned:
    known = [(rank, value_id) for rank, v in pins if (value_id := rows.label_id(v)) >= 0]
    ranks = np.array([rank for rank, _ in known], dtype=np.int64)
    return _Pinned(key, ranks, np.array([value_id for _, value_id in known], dtype=np.int64))


def _levels(pinned: _Pinned, allowed: Mask, depth: int, value_count: int) -> tuple[Ranks, ...]:
    """Return tables by value id: the best rank, the second best, and so on."""
    usable = allowed[pinned.ranks]
    ranks, value_ids = pinned.ranks[usable], pinned.value_ids[usable]
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
