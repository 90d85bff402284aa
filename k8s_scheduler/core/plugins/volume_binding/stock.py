"""What claims can be bound to: the volumes of each class, and the capacities of each.

Upstream looks at both in no particular order; here names decide among equals. Neither kind of
shelf ever changes, because decisions are kept with what they were made from: when volumes come and
go, the shelf that follows is made from the one before.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.quantity import nano, whole
from k8s_scheduler.api.selectors.labels import Requirements, matches
from k8s_scheduler.api.storage.claims import class_of_volume, storage_nano
from k8s_scheduler.api.storage.matching import allows_access, is_alike, is_free, is_kept_for
from k8s_scheduler.api.storage.objects import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.order import Moves, Order, Place, Ranks
from k8s_scheduler.core.plugins.volume_binding.ranking import Ranking
from k8s_scheduler.core.plugins.volume_binding.reach import (
    EVERYWHERE,
    Reach,
    reach_of_affinity,
    reach_of_topology,
)
from k8s_scheduler.core.plugins.volume_binding.shelves import Shelves

# Mode, attributes class and access of a volume.
_Sort = tuple[str | None, str | None, tuple[str, ...]]

# Free volumes go before those that are kept for claims.
_FREE: Final = 0
_KEPT: Final = 1


@dataclass(frozen=True, slots=True)
class _VolumeFacts:
    """What matching asks of a volume; the reach of one that is not free is not worth knowing.

    `place` is by size and name for the free ones, and by claim and name for those kept for one;
    None for others.
    """

    volume: PersistentVolume
    place: Place | None
    size_nano: int
    reach: Reach
    sort: _Sort


def _volume_facts(volume: PersistentVolume) -> _VolumeFacts:
    spec, name = volume.spec, volume.metadata.name
    size = storage_nano(spec.capacity) or 0
    free = is_free(volume)
    place: Place | None = None
    if free:
        place = (_FREE, size, name)
    elif (claim := spec.claim_ref) is not None:
        place = (_KEPT, claim.namespace, claim.name, name)
    return _VolumeFacts(
        volume,
        place,
        size,
        reach_of_affinity(spec.node_affinity) if free else EVERYWHERE,
        (spec.volume_mode, spec.volume_attributes_class_name, tuple(spec.access_modes or ())),
    )


class ClassVolumes:
    """The volumes of one class: the free ones, smallest first, then those kept for claims.

    A volume's rank is its place here. `ranking` is about the free ones only.
    """

    def __init__(self, facts: Iterable[_VolumeFacts]) -> None:
        self._order = Order((f.place, f) for f in facts if f.place is not None)
        self._free_count = self._order.count_before((_KEPT,))
        found = self._order.things
        self.ranking = Ranking([f.reach for f in found[: self._free_count]])
        # Sorts of volumes, and classes as written in the spec (where an annotation names the class,
        # any will do), by number. Numbers stay: shelves that follow each other share them.
        self._sorts: dict[_Sort, tuple[int, PersistentVolume]] = {}
        self._written: dict[str, int] = {}
        self._sort_ids = _column(map(self._sort_id, found))
        self.capacity_bytes = _column(whole(f.size_nano) for f in found)
        self._written_ids = _column(map(self._written_id, found))

    def changed(self, gone: list[_VolumeFacts], come: list[_VolumeFacts]) -> "ClassVolumes":
        """Return the shelf that follows when volumes have gone and others have come."""
        order, moves = self._order.changed(
            (f.place for f in gone if f.place is not None),
            ((f.place, f) for f in come if f.place is not None),
        )
        following = ClassVolumes(())
        following._order = order
        following._free_count = count = order.count_before((_KEPT,))
        following._sorts, following._written = self._sorts, self._written
        news = [f for _, f in moves.come]
        following._sort_ids = moves.column(self._sort_ids, map(self._sort_id, news))
        following._written_ids = moves.column(self._written_ids, map(self._written_id, news))
        sizes = (whole(f.size_nano) for f in news)
        following.capacity_bytes = moves.column(self.capacity_bytes, sizes)
        following.ranking = _moved(self.ranking, moves.first(self._free_count, count))
        return following

    def _sort_id(self, facts: _VolumeFacts) -> int:
        return self._sorts.setdefault(facts.sort, (len(self._sorts), facts.volume))[0]

    def _written_id(self, facts: _VolumeFacts) -> int:
        return self._written.setdefault(facts.volume.spec.storage_class_name, len(self._written))

    def volume(self, rank: int) -> PersistentVolume:
        """Return the volume of a rank."""
        return self._order.things[rank].volume

    def suitable(
        self, claim: PersistentVolumeClaim, size_nano: int, requirements: Requirements | None
    ) -> Mask:
        """Return which free volumes suit a claim; requirements of None are no selector."""
        examples = (volume for _, volume in self._sorts.values())
        fits = [is_alike(v, claim) and allows_access(v, claim) for v in examples]
        found: Mask = np.array(fits, dtype=np.bool_)[self._sort_ids[: self._free_count]]
        found[: self._order.count_before((_FREE, size_nano))] = False
        if requirements is not None:
            for rank in np.flatnonzero(found).tolist():
                found[rank] = matches(requirements, self.volume(rank).metadata.labels or {})
        return found

    def kept_for(
        self, claim: PersistentVolumeClaim, size_nano: int
    ) -> tuple[tuple[int, Reach], ...]:
        """Return rank and reach of the volumes kept for a claim that can serve it, by name."""
        key = (_KEPT, claim.metadata.namespace, claim.metadata.name)
        kept = []
        for rank in range(self._order.count_before(key), len(self._order)):
            if self._order.places[rank][:3] != key:
                break
            facts = self._order.things[rank]
            volume = facts.volume
            if (
                facts.size_nano >= size_nano
                and is_kept_for(volume, claim)
                and is_alike(volume, claim)
                and volume.metadata.deletion_timestamp is None
            ):
                kept.append((rank, reach_of_affinity(volume.spec.node_affinity)))
        return tuple(kept)

    def by_written_class(self, ranks: Ranks) -> list[tuple[str, Mask]]:
        """Return the classes written in the specs of volumes, and which of the volumes say so."""
        ids = self._written_ids[ranks]
        return [(name, ids == number) for name, number in self._written.items()]


@dataclass(frozen=True, slots=True)
class _CapacityFacts:
    """What provisioning asks of a capacity; a limit that is not known is below any size."""

    capacity: CsiStorageCapacity
    limit_bytes: int
    capacity_bytes: int
    reach: Reach


def _capacity_facts(capacity: CsiStorageCapacity) -> _CapacityFacts:
    there = _bytes(capacity.capacity)
    # The largest volume that can be made is the better answer, where it is given.
    limit = there if capacity.maximum_volume_size is None else _bytes(capacity.maximum_volume_size)
    return _CapacityFacts(
        capacity,
        -1 if limit is None else limit,
        there or 0,
        reach_of_topology(capacity.node_topology),
    )


def _bytes(quantity: str | float | None) -> int | None:
    return None if quantity is None else whole(nano(quantity))


class ClassCapacities:
    """The capacities that drivers report for one class, by name."""

    def __init__(self, facts: Iterable[_CapacityFacts]) -> None:
        self._order = Order((_place_of(f), f) for f in facts)
        self.ranking = Ranking([f.reach for f in self._order.things])
        self.capacity_bytes = _column(f.capacity_bytes for f in self._order.things)
        self._limits = _column(f.limit_bytes for f in self._order.things)

    def changed(self, gone: list[_CapacityFacts], come: list[_CapacityFacts]) -> "ClassCapacities":
        """Return the shelf that follows when capacities have gone and others have come."""
        order, moves = self._order.changed(map(_place_of, gone), ((_place_of(f), f) for f in come))
        following = ClassCapacities(())
        following._order = order
        following.ranking = _moved(self.ranking, moves)
        news = [f for _, f in moves.come]
        sizes = (f.capacity_bytes for f in news)
        following.capacity_bytes = moves.column(self.capacity_bytes, sizes)
        following._limits = moves.column(self._limits, (f.limit_bytes for f in news))
        return following

    def capacity(self, rank: int) -> CsiStorageCapacity:
        """Return the capacity of a rank."""
        return self._order.things[rank].capacity

    def sufficient(self, size_bytes: int) -> Mask:
        """Return which capacities let a volume of this size be made."""
        found: Mask = self._limits >= size_bytes
        return found


def _place_of(facts: _CapacityFacts) -> Place:
    metadata = facts.capacity.metadata
    return metadata.namespace, metadata.name


def _moved(ranking: Ranking, moves: "Moves[_VolumeFacts] | Moves[_CapacityFacts]") -> Ranking:
    """Return the ranking that follows; the same one where nothing moved."""
    if not moves.come and len(moves.before) == len(moves.after):
        return ranking
    return ranking.moved(moves.after, [(rank, facts.reach) for rank, facts in moves.come])


def _column(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)


class Stock:
    """Volumes and capacities by class."""

    def __init__(self) -> None:
        self._volumes = Shelves(class_of_volume, _volume_facts, ClassVolumes)
        self._capacities = Shelves(_class_of_capacity, _capacity_facts, ClassCapacities)

    def volumes(self, class_name: str, rows: RowsView) -> ClassVolumes | None:
        """Return the volumes of a class; None if there are none."""
        return self._volumes.shelf(class_name, rows.objects(Kind.PERSISTENT_VOLUME, ""))

    def capacities(self, class_name: str, rows: RowsView) -> ClassCapacities | None:
        """Return the capacities of a class; None if there are none."""
        return self._capacities.shelf(class_name, rows.all_objects(Kind.CSI_STORAGE_CAPACITY))


def _class_of_capacity(capacity: CsiStorageCapacity) -> str:
    return capacity.storage_class_name
