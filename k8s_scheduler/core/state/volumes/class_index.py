"""The offers of one class by where they can be reached: the best one on a node is looked up.

Offers that are pinned to labels are filed by key and value. For each demand that was asked about
there are tables by the id of the label's value with the best offer of that value, the second best
and so on, so that one look gives the best offer of every row. When an offer comes or goes, only the
entries of its values are worked out again. Equal selectors that are no pins are matched once.

An offer has a *slot*, a small number that it keeps as long as it is in the index. Which of two is
better is told by `rank`, by slot.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.storage.reach import Reach
from k8s_scheduler.core.state.volumes.offers import Place, StorageDemand, StorageOffer

Slots: TypeAlias = npt.NDArray[np.int64]
# In place of a slot; arrays by slot have a last entry for it.
NONE: Final = -1
# The rank of nothing: worse than any other.
_WORST: Final = np.iinfo(np.int64).max
# Between the ranks of neighbours, so that there is room for others.
_GAP: Final = 1 << 24
# So many demands have tables; the one that was not asked about for longest loses them.
_DEMANDS: Final = 16

# Namespace and name.
ObjectKey: TypeAlias = tuple[str, str]
# The key and the value of a label.
_Pin = tuple[str, str]
# The best comes first.
_Sorted = list[tuple[Place, int]]


_FileKey = TypeVar("_FileKey")
_Entry = TypeVar("_Entry", bound=tuple[Any, int])


class LabelIds(Protocol):
    """The values of node labels as numbers."""

    epoch: int
    generation: int
    value_count: int

    def column(self, key: str) -> npt.NDArray[np.int64]:
        """Return each row's value of a label; every value in it has an id from then on."""
        ...

    def known_id(self, value: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen on each row, ready to be cut to rows.

    By source, and for each as many levels as there may be offers taken before: slots by value id
    for pins, where the last entry is for nodes without the label; single slots for a selector.
    """

    tables: tuple[tuple[str, tuple[Slots, ...]], ...]
    selected: tuple[tuple[Reach, tuple[int, ...]], ...]
    rank: Slots


class ClassIndex:
    """The offers of one class."""

    def __init__(self) -> None:
        # Another object whenever something has changed.
        self.stamp = object()
        self._slots: dict[ObjectKey, int] = {}
        self._offers: list[StorageOffer | None] = []
        self._vacant: list[int] = []
        self.rank: Slots = np.full(1, _WORST)
        self.capacity_bytes: Slots = np.zeros(1, dtype=np.int64)
        # The classes written in specs, by number, and by slot which one.
        self.written_classes: dict[str, int] = {}
        self.written: Slots = np.zeros(1, dtype=np.int64)
        self._sorted: _Sorted = []
        self._by_pin: dict[_Pin, _Sorted] = {}
        self._by_selector: dict[bytes, tuple[Reach, _Sorted]] = {}
        # By claim: name and slot of the volumes that are kept for it.
        self._kept: dict[tuple[str, str], list[tuple[ObjectKey, int]]] = {}
        self._pin_counts: dict[str, int] = {}
        self._tables: dict[StorageDemand, _Tables] = {}
        # How many entries of tables were worked out, ever.
        self.entries_made = 0

    def __len__(self) -> int:
        return len(self._slots)

    def offer(self, slot: int) -> StorageOffer:
        found = self._offers[slot]
        if found is None:
            raise KeyError(slot)
        return found

    # Changes

    def put(self, key: ObjectKey, offer: StorageOffer) -> None:
        self.stamp = object()
        slot = self._slots[key] = self._vacant.pop() if self._vacant else self._new_slot()
        self._offers[slot] = offer
        self.capacity_bytes[slot] = offer.capacity_bytes
        names = self.written_classes
        self.written[slot] = names.setdefault(offer.written_class, len(names))
        if offer.kept_for is not None:
            insort(self._kept.setdefault(offer.kept_for, []), (key, slot))
        if offer.place is not None:
            self._file(offer, (offer.place, slot))

    def remove(self, key: ObjectKey) -> None:
        self.stamp = object()
        slot = self._slots.pop(key)
        offer = self.offer(slot)
        self._offers[slot] = None
        self._vacant.append(slot)
        if offer.kept_for is not None:
            _take_out(self._kept, offer.kept_for, (key, slot))
        if offer.place is not None:
            self._take_out_of_files(offer, (offer.place, slot))

    def _new_slot(self) -> int:
        slot = len(self._offers)
        self._offers.append(None)
        if slot + 1 >= len(self.rank):
            self.rank = _longer(self.rank, 2 * slot + 2)
            self.capacity_bytes = _longer(self.capacity_bytes, 2 * slot + 2)
            self.written = _longer(self.written, 2 * slot + 2)
        return slot

    def _file(self, offer: StorageOffer, entry: tuple[Place, int]) -> None:
        at = bisect_left(self._sorted, entry)
        self._sorted.insert(at, entry)
        self._give_rank(at)
        if offer.reach.pins is None:
            selector = offer.reach.key
            insort(self._by_selector.setdefault(selector, (offer.reach, []))[1], entry)
            return
        for pin in offer.reach.pins:
            insort(self._by_pin.setdefault(pin, []), entry)
            self._pin_counts[pin[0]] = self._pin_counts.get(pin[0], 0) + 1
            self._changed(pin)

    def _take_out_of_files(self, offer: StorageOffer, entry: tuple[Place, int]) -> None:
        del self._sorted[bisect_left(self._sorted, entry)]
        if offer.reach.pins is None:
            selector = offer.reach.key
            found = self._by_selector[selector][1]
            del found[bisect_left(found, entry)]
            if not found:
                del self._by_selector[selector]
            return
        for pin in offer.reach.pins:
            _take_out(self._by_pin, pin, entry)
            self._pin_counts[pin[0]] -= 1
            if not self._pin_counts[pin[0]]:
                del self._pin_counts[pin[0]]
            self._changed(pin)

    def _changed(self, pin: _Pin) -> None:
        for tables in self._tables.values():
            tables.stale[pin] = None

    def _give_rank(self, at: int) -> None:
        """Rank an offer between its neighbours, or all anew if there is no room between them."""
        in_order, rank = self._sorted, self.rank
        before = int(rank[in_order[at - 1][1]]) if at else 0
        if at + 1 < len(in_order):
            found = (before + int(rank[in_order[at + 1][1]])) // 2
        else:
            found = before + _GAP
        if found > before:
            rank[in_order[at][1]] = found
            return
        slots = [slot for _, slot in in_order]
        rank[slots] = np.arange(1, len(slots) + 1) * _GAP

    # Questions

    def kept_for(self, namespace: str, claim: str) -> list[tuple[int, StorageOffer]]:
        kept = self._kept.get((namespace, claim), ())
        return [(slot, self.offer(slot)) for _, slot in kept]

    def choices(self, demand: StorageDemand, depth: int, labels: LabelIds) -> Choices:
        """Return the choice among what suits a demand, when at most `depth - 1` are taken before.

        It is right until the index changes.
        """
        tables = self._tables.pop(demand, None)
        for key in self._pin_counts:
            labels.column(key)
        if tables is None or tables.depth < depth or tables.epoch != labels.epoch:
            tables = _Tables(depth, labels.epoch, dict.fromkeys(self._by_pin))
        self._tables[demand] = tables
        if len(self._tables) > _DEMANDS:
            del self._tables[next(iter(self._tables))]
        self._catch_up(tables, demand, labels)
        count = labels.value_count
        selected = (
            (reach, self._first(found, demand, depth))
            for reach, found in self._by_selector.values()
        )
        return Choices(
            tuple((key, tuple(tables.of(key, count)[:depth])) for key in self._pin_counts),
            tuple((reach, slots) for reach, slots in selected if slots),
            self.rank,
        )

    def _catch_up(self, tables: "_Tables", demand: StorageDemand, labels: LabelIds) -> None:
        """Work out the entries that have changed, and those of values that have got an id."""
        if tables.generation != labels.generation:
            tables.generation = labels.generation
            tables.stale.update(tables.unseen)
            tables.unseen.clear()
        if not tables.stale:
            return
        for pin in tables.stale:
            value_id = labels.known_id(pin[1])
            if value_id < 0:
                tables.unseen[pin] = None
                continue
            found = self._first(self._by_pin.get(pin, []), demand, tables.depth)
            for level, table in enumerate(tables.of(pin[0], labels.value_count)):
                table[value_id] = found[level] if level < len(found) else NONE
        self.entries_made += len(tables.stale)
        tables.stale.clear()

    def _first(self, found: _Sorted, demand: StorageDemand, depth: int) -> tuple[int, ...]:
        chosen: list[int] = []
        for at in range(bisect_left(found, (demand.first_place,)), len(found)):
            slot = found[at][1]
            if demand.suits(self.offer(slot)):
                chosen.append(slot)
                if len(chosen) == depth:
                    break
        return tuple(chosen)


class _Tables:
    """The best offers for one demand, by key and value id."""

    __slots__ = ("depth", "epoch", "generation", "levels", "stale", "unseen")

    def __init__(self, depth: int, epoch: int, pins: dict[_Pin, None]) -> None:
        self.depth = depth
        # Of the ids of values: what they mean, and which there are.
        self.epoch = epoch
        self.generation = -1
        self.levels: dict[str, list[Slots]] = {}
        # Pins whose entries have to be worked out, and those whose values have no id.
        self.stale = pins
        self.unseen: dict[_Pin, None] = {}

    def of(self, key: str, value_count: int) -> list[Slots]:
        """Return the tables of a key, with an entry for each value and one for none."""
        found = self.levels.get(key)
        if found is None:
            found = self.levels[key] = [np.full(1, NONE) for _ in range(self.depth)]
        if len(found[0]) <= value_count:
            # Values come one by one with their nodes: some of room for those to come.
            length = value_count + value_count // 8 + 1
            found[:] = [np.append(each, np.full(length - len(each), NONE)) for each in found]
        return found


def _longer(column: Slots, length: int) -> Slots:
    """Return a column of another length, whose last entry, for nothing, stays the last."""
    found = np.full(length, column[-1])
    found[: len(column) - 1] = column[:-1]
    return found


def _take_out(files: dict[_FileKey, list[_Entry]], key: _FileKey, entry: _Entry) -> None:
    found = files[key]
    del found[bisect_left(found, entry)]
    if not found:
        del files[key]
