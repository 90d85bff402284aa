"""Volumes and reported capacities by class, as they come, are taken, assumed and go.

The object store tells of every change. Changes are only noted and taken in when the index is asked,
so that clusters in which no claim waits for its pod pay nothing for it.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.storage.claims import class_of_volume
from k8s_scheduler.api.storage.objects import CsiStorageCapacity
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.volumes.class_index import ClassIndex, ObjectKey
from k8s_scheduler.core.state.volumes.offers import StorageOffer, offer_of_capacity, offer_of_volume


def _class_of_capacity(capacity: CsiStorageCapacity) -> str:
    return capacity.storage_class_name


_ClassOf: TypeAlias = Callable[[Any], str]
_OfferOf: TypeAlias = Callable[[Any], StorageOffer | None]
_INDEXED: Final[dict[Kind, tuple[_ClassOf, _OfferOf]]] = {
    Kind.PERSISTENT_VOLUME: (class_of_volume, offer_of_volume),
    Kind.CSI_STORAGE_CAPACITY: (_class_of_capacity, offer_of_capacity),
}


class OffersByClass:
    """What claims of each class can be served from."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._by_class: dict[tuple[Kind, str], ClassIndex] = {}
        # By object: the class under which it is indexed.
        self._filed: dict[Kind, dict[ObjectKey, str]] = {kind: {} for kind in _INDEXED}
        # Objects that have changed since the index was asked.
        self._changed: dict[Kind, dict[ObjectKey, None]] = {kind: {} for kind in _INDEXED}
        objects.listen(self._object_changed)

    def of(self, kind: Kind, class_name: str) -> ClassIndex | None:
        """Return the index of a class, of volumes or of capacities; None if it is empty."""
        changed = self._changed[kind]
        if changed:
            for key in changed:
                self._renew(kind, key)
            changed.clear()
        return self._by_class.get((kind, class_name))

    def stamp(self, kind: Kind, class_name: str) -> object:
        """Return something that is the same object as long as nothing of a class has changed."""
        found = self.of(kind, class_name)
        return None if found is None else found.stamp

    def _object_changed(self, kind: Kind, namespace: str, name: str) -> None:
        changed = self._changed.get(kind)
        if changed is None:
            return
        key = (namespace, name)
        if key in self._filed[kind] or self._objects.get(kind, namespace, name) is not None:
            changed[key] = None
        else:
            # It came and went unseen.
            changed.pop(key, None)

    def _renew(self, kind: Kind, key: ObjectKey) -> None:
        class_of, offer_of = _INDEXED[kind]
        filed = self._filed[kind]
        before = filed.pop(key, None)
        if before is not None:
            self._by_class[kind, before].remove(key)
        found = self._objects.get(kind, *key)
        offer = None if found is None else offer_of(found)
        if offer is not None:
            name = filed[key] = class_of(found)
            index = self._by_class.get((kind, name))
            if index is None:
                index = self._by_class[kind, name] = ClassIndex()
            index.put(key, offer)
        if before is not None and not len(self._by_class[kind, before]):
            del self._by_class[kind, before]
