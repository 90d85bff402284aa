"""Changes of objects: which of them matter, and how those that are known are told again."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.core.messages.incoming import Message, NodeChanged, ObjectChanged, PodChanged
from k8s_scheduler.lib.slices import SliceMeter

# Binding a volume writes these, and a write must name the version it was decided on.
_VERSIONED: Final = frozenset({Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM})
Known = TypeVar("Known")


def is_end(message: Message) -> bool:
    match message:
        case PodChanged(pod=None) | NodeChanged(node=None) | ObjectChanged(object=None):
            return True
    return False


def reads_the_same(kind: Kind, old: ClusterObject, new: ClusterObject) -> bool:
    """Return whether an update changed nothing that scheduling reads."""
    if kind in _VERSIONED:
        return False
    metadata = msgspec.structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return msgspec.structs.replace(old, metadata=metadata) == new


async def for_each(
    meter: SliceMeter, owner: str, store: Mapping[str, Known], act: Callable[[Known], None]
) -> None:
    """Act on each object of a store, in slices: on each as it is when its turn comes."""
    part = meter.start(owner)
    for key in list(store):
        known = store.get(key)
        if known is not None:
            act(known)
        if part.full():
            await part.breathe()
    part.finish()
