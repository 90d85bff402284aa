"""Things in their order of preference, and what becomes of their ranks when some come and go.

Of thousands of volumes one is taken between two decisions. An order never changes; it is asked
for the one that follows, and says how the ranks moved, so that whoever keeps columns by rank can
move them along instead of making them anew.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Thing = TypeVar("Thing")

Ranks = npt.NDArray[np.int64]
# What things are sorted by; no two have the same.
Place = tuple[Any, ...]

# The rank of what is not there.
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Moves(Generic[Thing]):
    """From one order to the next.

    `before` is by rank the rank that a thing had before, `after` by former rank the rank that it
    has now; NOWHERE for what has come, or has gone. `come` is what has come, by rank.
    """

    before: Ranks
    after: Ranks
    come: tuple[tuple[int, Thing], ...]

    def column(self, column: Ranks, values: Iterable[int]) -> Ranks:
        """Return a column by rank as it is now, with values for what has come."""
        moved = column[self.before] if len(column) else np.empty(len(self.before), np.int64)
        moved[[rank for rank, _ in self.come]] = list(values)
        return moved

    def first(self, count_before: int, count: int) -> "Moves[Thing]":
        """Return the moves among the first so many, if none of them moves out and no other in."""
        come = tuple((rank, thing) for rank, thing in self.come if rank < count)
        return Moves(self.before[:count], self.after[:count_before], come)


class Order(Generic[Thing]):
    """Things by rank: the first is the best."""

    def __init__(self, placed: Iterable[tuple[Place, Thing]]) -> None:
        in_order = sorted(placed, key=lambda pair: pair[0])
        self.places: Sequence[Place] = [place for place, _ in in_order]
        self.things: Sequence[Thing] = [thing for _, thing in in_order]

    def __len__(self) -> int:
        return len(self.places)

    def count_before(self, place: Place) -> int:
        """Return how many things have a better place than this one, which need not be taken."""
        return bisect_left(self.places, place)

    def changed(
        self, gone: Iterable[Place], come: Iterable[tuple[Place, Thing]]
    ) -> tuple["Order[Thing]", Moves[Thing]]:
        """Return the order without some things and with others, and how ranks have moved."""
        places, things = list(self.places), list(self.things)
        left = np.ones(len(places), dtype=np.bool_)
        for rank in sorted((self.count_before(place) for place in gone), reverse=True):
            del places[rank], things[rank]
            left[rank] = False
        before = np.flatnonzero(left)
        newcomers = sorted(come, key=lambda pair: pair[0])
        gaps = [bisect_left(places, place) for place, _ in newcomers]
        ranks = [gap + earlier for earlier, gap in enumerate(gaps)]
        for rank, (place, thing) in zip(ranks, newcomers, strict=True):
            places.insert(rank, place)
            things.insert(rank, thing)
        before = np.insert(before, gaps, NOWHERE)
        after = np.full(len(self.places), NOWHERE)
        stayed = np.flatnonzero(before != NOWHERE)
        after[before[stayed]] = stayed
        entered = tuple((rank, things[rank]) for rank in ranks)
        following: Order[Thing] = Order(())
        following.places, following.things = places, things
        return following, Moves(before, after, entered)
