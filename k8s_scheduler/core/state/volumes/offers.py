"""What a claim can be served from, and what a claim demands of it.

An offer is a volume, or the capacity that a driver reports for a class. Upstream looks at both in
no particular order; here a volume's size and then names decide among those that suit a claim.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from k8s_scheduler.api.quantity import nano, whole
from k8s_scheduler.api.selectors.labels import Requirements, matches
from k8s_scheduler.api.storage.claims import storage_nano
from k8s_scheduler.api.storage.matching import allows_access, is_alike, is_free
from k8s_scheduler.api.storage.objects import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from k8s_scheduler.api.storage.reach import (
    EVERYWHERE,
    Reach,
    reach_of_affinity,
    reach_of_topology,
)

# What offers are sorted by, the best first; no two of a class have the same.
Place = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StorageOffer:
    """A volume or a capacity, and what matching asks of it.

    `place` is None for a volume that is kept for a claim: no other can have it, and its reach is
    worked out when that claim asks. `size` is what is compared with the size that is demanded.
    """

    thing: Any
    place: Place | None
    size: int
    reach: Reach
    capacity_bytes: int
    # The class in the spec; where an annotation names the class of a volume, it can be any.
    written_class: str
    kept_for: tuple[str, str] | None = None


def offer_of_volume(volume: PersistentVolume) -> StorageOffer | None:
    """Return the offer of a volume; None if no claim can have it."""
    spec = volume.spec
    size_nano = storage_nano(spec.capacity) or 0
    place, reach, kept_for = None, EVERYWHERE, None
    if is_free(volume):
        place = (size_nano, volume.metadata.name)
        reach = reach_of_affinity(spec.node_affinity)
    elif spec.claim_ref is not None:
        kept_for = (spec.claim_ref.namespace, spec.claim_ref.name)
    else:
        return None
    written = spec.storage_class_name
    return StorageOffer(volume, place, size_nano, reach, whole(size_nano), written, kept_for)


def offer_of_capacity(capacity: CsiStorageCapacity) -> StorageOffer:
    """Return the offer of a capacity; one that does not say how large it is suits no size."""
    there = _bytes(capacity.capacity)
    # The largest volume that can be made is the better answer, where it is given.
    limit = there if capacity.maximum_volume_size is None else _bytes(capacity.maximum_volume_size)
    metadata = capacity.metadata
    return StorageOffer(
        capacity,
        (metadata.namespace, metadata.name),
        -1 if limit is None else limit,
        reach_of_topology(capacity.node_topology),
        there or 0,
        capacity.storage_class_name,
    )


def _bytes(quantity: str | float | None) -> int | None:
    return None if quantity is None else whole(nano(quantity))


class StorageDemand(Protocol):
    """What is demanded of an offer. Equal demands are suited by the same offers."""

    @property
    def first_place(self) -> Place:
        """No offer with a better place suits."""
        ...

    def __hash__(self) -> int: ...

    def suits(self, offer: StorageOffer) -> bool:
        """Return whether an offer will do, wherever the pod goes."""
        ...


@dataclass(frozen=True, slots=True)
class VolumeDemand:
    """What a claim demands of volumes."""

    size_nano: int
    mode: str | None
    attributes_class: str | None
    access_modes: tuple[str, ...]
    # None is no selector.
    requirements: Requirements | None
    # One that demands this; others that do are as good.
    claim: PersistentVolumeClaim = field(compare=False)

    @staticmethod
    def of(
        claim: PersistentVolumeClaim, size_nano: int, requirements: Requirements | None
    ) -> "VolumeDemand":
        spec = claim.spec
        modes: Iterable[str] = spec.access_modes or ()
        attributes = spec.volume_attributes_class_name
        return VolumeDemand(
            size_nano, spec.volume_mode, attributes, tuple(modes), requirements, claim
        )

    @property
    def first_place(self) -> Place:
        """No smaller volume suits."""
        return (self.size_nano,)

    def suits(self, offer: StorageOffer) -> bool:
        volume: PersistentVolume = offer.thing
        return (
            offer.size >= self.size_nano
            and is_alike(volume, self.claim)
            and allows_access(volume, self.claim)
            and (
                self.requirements is None
                or matches(self.requirements, volume.metadata.labels or {})
            )
        )


@dataclass(frozen=True, slots=True)
class CapacityDemand:
    """The size of a volume that is to be made."""

    size_bytes: int

    @property
    def first_place(self) -> Place:
        """Capacities are not sorted by size."""
        return ()

    def suits(self, offer: StorageOffer) -> bool:
        return offer.size >= self.size_bytes
