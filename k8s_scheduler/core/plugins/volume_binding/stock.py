"""What claims can be bound to: the volumes of each class, and the capacities of each.

Both are sorted out once and kept for as long as no volume (or no capacity) changed. Upstream looks
at both in no particular order; here names decide among equals.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping

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
from k8s_scheduler.core.framework.remembered import Remembered
from k8s_scheduler.core.framework.views import Mask, RowsView
from k8s_scheduler.core.plugins.volume_binding.ranking import Ranking, Ranks
from k8s_scheduler.core.plugins.volume_binding.reach import reach_of_affinity, reach_of_topology


class ClassVolumes:
    """The volumes of one class, smallest first."""

    def __init__(self, volumes: Iterable[PersistentVolume]) -> None:
        sized = sorted(
            ((storage_nano(v.spec.capacity) or 0, v.metadata.name, v) for v in volumes),
            key=lambda entry: entry[:2],
        )
        self.volumes = tuple(volume for _, _, volume in sized)
        self.ranking = Ranking([reach_of_affinity(v.spec.node_affinity) for v in self.volumes])
        self.capacity_bytes = np.array([whole(size) for size, _, _ in sized], dtype=np.int64)
        self._sizes_nano = [size for size, _, _ in sized]
        self._free = np.array([is_free(volume) for volume in self.volumes], dtype=np.bool_)
        self._kinds, self._kind_ids = _kinds(self.volumes)
        # The classes as written in the spec; where an annotation names the class, any will do.
        written = [v.spec.storage_class_name for v in self.volumes]
        self._written = sorted(set(written))
        self._written_ids = np.array([self._written.index(name) for name in written])
        # By claim: the ranks of the volumes kept for it, by volume name.
        self._kept: dict[tuple[str, str], list[int]] = {}
        by_name = sorted(enumerate(self.volumes), key=lambda entry: entry[1].metadata.name)
        for rank, volume in by_name:
            if (kept := volume.spec.claim_ref) is not None:
                self._kept.setdefault((kept.namespace, kept.name), []).append(rank)

    def suitable(
        self, claim: PersistentVolumeClaim, size_nano: int, requirements: Requirements | None
    ) -> Mask:
        """Return which volumes are free and suit a claim; requirements of None are no selector."""
        fits = np.array(
            [is_alike(v, claim) and allows_access(v, claim) for v in self._kinds], dtype=np.bool_
        )
        found: Mask = self._free & fits[self._kind_ids]
        found[: bisect_left(self._sizes_nano, size_nano)] = False
        if requirements is not None:
            for rank in np.flatnonzero(found).tolist():
                found[rank] = matches(requirements, self.volumes[rank].metadata.labels or {})
        return found

    def by_written_class(self, ranks: Ranks) -> list[tuple[str, Mask]]:
        """Return the classes written in the specs of volumes, and which of the volumes say so."""
        ids = self._written_ids[ranks]
        return [(name, ids == position) for position, name in enumerate(self._written)]

    def kept_for(self, claim: PersistentVolumeClaim, size_nano: int) -> tuple[int, ...]:
        """Return the ranks of volumes that are kept for a claim and could serve it, by name."""
        metadata = claim.metadata
        return tuple(
            rank
            for rank in self._kept.get((metadata.namespace, metadata.name), ())
            if self._sizes_nano[rank] >= size_nano
            and is_kept_for(self.volumes[rank], claim)
            and is_alike(self.volumes[rank], claim)
            and self.volumes[rank].metadata.deletion_timestamp is None
        )


def _kinds(
    volumes: tuple[PersistentVolume, ...],
) -> tuple[list[PersistentVolume], npt.NDArray[np.int64]]:
    """Return one volume of each kind (mode, attributes class, access), and each one's kind."""
    ids: dict[tuple[object, ...], int] = {}
    examples: list[PersistentVolume] = []
    column = np.zeros(len(volumes), dtype=np.int64)
    for rank, volume in enumerate(volumes):
        spec = volume.spec
        modes = tuple(spec.access_modes or ())
        kind = (spec.volume_mode, spec.volume_attributes_class_name, modes)
        found = ids.setdefault(kind, len(examples))
        if found == len(examples):
            examples.append(volume)
        column[rank] = found
    return examples, column


class ClassCapacities:
    """The capacities that drivers report for one class."""

    def __init__(self, capacities: list[CsiStorageCapacity]) -> None:
        self.ranking = Ranking([reach_of_topology(c.node_topology) for c in capacities])
        self.capacities = tuple(capacities)
        self.capacity_bytes = np.array([_bytes(c.capacity) or 0 for c in capacities], np.int64)
        # What is not known is less than any size.
        limits = [_limit(capacity) for capacity in capacities]
        self._limits = np.array([-1 if limit is None else limit for limit in limits], np.int64)

    def sufficient(self, size_bytes: int) -> Mask:
        """Return which capacities let a volume of this size be made."""
        found: Mask = self._limits >= size_bytes
        return found


def _limit(capacity: CsiStorageCapacity) -> int | None:
    """Return the largest volume that can be made, as far as it is known."""
    if capacity.maximum_volume_size is not None:
        return _bytes(capacity.maximum_volume_size)
    return _bytes(capacity.capacity)


def _bytes(quantity: str | float | None) -> int | None:
    return None if quantity is None else whole(nano(quantity))


class Stock:
    """Volumes and capacities by class."""

    def __init__(self) -> None:
        self._volumes: Remembered[dict[str, ClassVolumes]] = Remembered()
        self._capacities: Remembered[dict[str, ClassCapacities]] = Remembered()

    def volumes(self, rows: RowsView) -> Mapping[str, ClassVolumes]:
        """Return the volumes of each class."""
        found: tuple[PersistentVolume, ...] = rows.objects(Kind.PERSISTENT_VOLUME, "")
        return self._volumes.get((found,), lambda: _volumes_by_class(found))

    def capacities(self, rows: RowsView) -> Mapping[str, ClassCapacities]:
        """Return the capacities of each class."""
        found: tuple[CsiStorageCapacity, ...] = rows.all_objects(Kind.CSI_STORAGE_CAPACITY)
        return self._capacities.get((found,), lambda: _capacities_by_class(found))


def _volumes_by_class(volumes: tuple[PersistentVolume, ...]) -> dict[str, ClassVolumes]:
    by_class: dict[str, list[PersistentVolume]] = {}
    for volume in volumes:
        by_class.setdefault(class_of_volume(volume), []).append(volume)
    return {name: ClassVolumes(found) for name, found in by_class.items()}


def _capacities_by_class(
    capacities: tuple[CsiStorageCapacity, ...],
) -> dict[str, ClassCapacities]:
    by_class: dict[str, list[CsiStorageCapacity]] = {}
    for capacity in capacities:
        by_class.setdefault(capacity.storage_class_name, []).append(capacity)
    return {name: ClassCapacities(found) for name, found in by_class.items()}
