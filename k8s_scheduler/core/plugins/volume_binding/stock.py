"""What claims can be bound to: the volumes of each class, and the capacities of each.

Upstream looks at both in no particular order; here names decide among equals.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.label_selectors import Requirements, matches
from k8s_scheduler.api.quantity import nano, whole
from k8s_scheduler.api.storage import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from k8s_scheduler.api.volume_claims import class_of_volume, storage_nano
from k8s_scheduler.api.volume_matching import allows_access, is_alike, is_free, is_kept_for
from k8s_scheduler.core.framework.views import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.ranking import Ranking, Ranks
from k8s_scheduler.core.plugins.volume_binding.reach import (
    EVERYWHERE,
    Reach,
    reach_of_affinity,
    reach_of_topology,
)
from k8s_scheduler.core.plugins.volume_binding.shelves import Shelves

# Mode, attributes class and access of a volume.
_Sort = tuple[str | None, str | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _VolumeFacts:
    """What matching asks of a volume; the reach of one that is not free is not worth knowing."""

    volume: PersistentVolume
    order: tuple[int, str]
    size_bytes: int
    free: bool
    reach: Reach
    sort: _Sort


def _volume_facts(volume: PersistentVolume) -> _VolumeFacts:
    spec = volume.spec
    free = is_free(volume)
    size = storage_nano(spec.capacity) or 0
    return _VolumeFacts(
        volume,
        (size, volume.metadata.name),
        whole(size),
        free,
        reach_of_affinity(spec.node_affinity) if free else EVERYWHERE,
        (spec.volume_mode, spec.volume_attributes_class_name, tuple(spec.access_modes or ())),
    )


class ClassVolumes:
    """The volumes of one class: the free ones, smallest first, then those kept for claims.

    A volume's rank is its place here. `ranking` is about the free ones only.
    """

    def __init__(self, facts: list[_VolumeFacts]) -> None:
        free = sorted((f for f in facts if f.free), key=lambda f: f.order)
        kept = [f for f in facts if not f.free and f.volume.spec.claim_ref is not None]
        kept.sort(key=lambda f: f.order[1])
        self._facts = (*free, *kept)
        self.ranking = Ranking([f.reach for f in free])
        self._sizes_nano = [f.order[0] for f in free]
        sorts = {f.sort: f.volume for f in free}
        self._examples = tuple(sorts.values())
        ids = {sort: position for position, sort in enumerate(sorts)}
        self._sort_ids = _column([ids[f.sort] for f in free])
        self.capacity_bytes = _column([f.size_bytes for f in self._facts])
        # The classes as written in the spec; where an annotation names the class, any will do.
        written = [f.volume.spec.storage_class_name for f in self._facts]
        self._written = sorted(set(written))
        places = {name: position for position, name in enumerate(self._written)}
        self._written_ids = _column([places[name] for name in written])
        self._kept: dict[tuple[str, str], list[int]] = {}
        for rank, found in enumerate(kept, start=len(free)):
            if (reference := found.volume.spec.claim_ref) is not None:
                self._kept.setdefault((reference.namespace, reference.name), []).append(rank)

    def volume(self, rank: int) -> PersistentVolume:
        """Return the volume of a rank."""
        return self._facts[rank].volume

    def suitable(
        self, claim: PersistentVolumeClaim, size_nano: int, requirements: Requirements | None
    ) -> Mask:
        """Return which free volumes suit a claim; requirements of None are no selector."""
        fits = [is_alike(v, claim) and allows_access(v, claim) for v in self._examples]
        found: Mask = np.array(fits, dtype=np.bool_)[self._sort_ids]
        found[: bisect_left(self._sizes_nano, size_nano)] = False
        if requirements is not None:
            for rank in np.flatnonzero(found).tolist():
                found[rank] = matches(requirements, self.volume(rank).metadata.labels or {})
        return found

    def kept_for(
        self, claim: PersistentVolumeClaim, size_nano: int
    ) -> tuple[tuple[int, Reach], ...]:
        """Return rank and reach of the volumes kept for a claim that can serve it, by name."""
        metadata = claim.metadata
        return tuple(
            (rank, reach_of_affinity(volume.spec.node_affinity))
            for rank in self._kept.get((metadata.namespace, metadata.name), ())
            if self._facts[rank].order[0] >= size_nano
            and is_kept_for(volume := self.volume(rank), claim)
            and is_alike(volume, claim)
            and volume.metadata.deletion_timestamp is None
        )

    def by_written_class(self, ranks: Ranks) -> list[tuple[str, Mask]]:
        """Return the classes written in the specs of volumes, and which of the volumes say so."""
        ids = self._written_ids[ranks]
        return [(name, ids == position) for position, name in enumerate(self._written)]


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

    def __init__(self, facts: list[_CapacityFacts]) -> None:
        def name(found: _CapacityFacts) -> tuple[str, str]:
            return found.capacity.metadata.namespace, found.capacity.metadata.name

        in_order = sorted(facts, key=name)
        self.capacities = tuple(f.capacity for f in in_order)
        self.ranking = Ranking([f.reach for f in in_order])
        self.capacity_bytes = _column([f.capacity_bytes for f in in_order])
        self._limits = _column([f.limit_bytes for f in in_order])

    def sufficient(self, size_bytes: int) -> Mask:
        """Return which capacities let a volume of this size be made."""
        found: Mask = self._limits >= size_bytes
        return found


def _column(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


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
