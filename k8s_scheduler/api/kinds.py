"""The kinds of objects, besides pods and nodes, that decisions depend on: one table.

To add a built-in kind: its type, derived from `ClusterObject`, and one entry in `Kind`. Everything
else follows from the entry: the informer and its path, rights, the form in recordings, `evaluate`.

The table is open. A plugin that depends on a custom resource declares a kind of its own, made by
`custom_kind`, in code or from its arguments. Kinds are compared by `group/kind` alone, so one is
found whatever paths were declared for it; a kind that was read from a recording has no more than
these two names.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final, Self, TypeAlias

from k8s_scheduler.api.custom_objects import CustomObject, names_of
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.storage.objects import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from k8s_scheduler.api.workloads import (
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

_ObjectType: TypeAlias = type[ClusterObject]


class _Entry:
    """An entry of the table, which becomes a kind as soon as `Kind` is there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args, self._kwargs = args, kwargs

    def __set_name__(self, owner: "type[Kind]", name: str) -> None:
        setattr(owner, name, owner(*self._args, **self._kwargs))


def _built_in(
    name: str, full_name: str, read_as: _ObjectType, *, namespaced: bool = True
) -> "Kind":
    entry: Any = _Entry(name, full_name, read_as, namespaced=namespaced)
    found: Kind = entry
    return found


class Kind(str):
    """A kind, and how the API server serves it.

    As text it is `group/kind`, as recordings have it; the kind alone in the core group. Text in
    place of a dataclass: kinds are keys of what every decision looks up.
    """

    __slots__ = ("group", "name", "namespaced", "paths", "resource", "type", "versions")

    NAMESPACE: Final = _built_in("Namespace", "namespaces", Namespace, namespaced=False)
    SERVICE: Final = _built_in("Service", "services", Service)
    REPLICATION_CONTROLLER: Final = _built_in(
        "ReplicationController", "replicationcontrollers", ReplicationController
    )
    REPLICA_SET: Final = _built_in("ReplicaSet", "replicasets.apps", ReplicaSet)
    STATEFUL_SET: Final = _built_in("StatefulSet", "statefulsets.apps", StatefulSet)
    POD_DISRUPTION_BUDGET: Final = _built_in(
        "PodDisruptionBudget", "poddisruptionbudgets.policy", PodDisruptionBudget
    )
    PERSISTENT_VOLUME: Final = _built_in(
        "PersistentVolume", "persistentvolumes", PersistentVolume, namespaced=False
    )
    PERSISTENT_VOLUME_CLAIM: Final = _built_in(
        "PersistentVolumeClaim", "persistentvolumeclaims", PersistentVolumeClaim
    )
    STORAGE_CLASS: Final = _built_in(
        "StorageClass", "storageclasses.storage.k8s.io", StorageClass, namespaced=False
    )
    CSI_NODE: Final = _built_in("CSINode", "csinodes.storage.k8s.io", CsiNode, namespaced=False)
    CSI_DRIVER: Final = _built_in(
        "CSIDriver", "csidrivers.storage.k8s.io", CsiDriver, namespaced=False
    )
    CSI_STORAGE_CAPACITY: Final = _built_in(
        "CSIStorageCapacity", "csistoragecapacities.storage.k8s.io", CsiStorageCapacity
    )
    VOLUME_ATTACHMENT: Final = _built_in(
        "VolumeAttachment", "volumeattachments.storage.k8s.io", VolumeAttachment, namespaced=False
    )
    DEVICE_CLASS: Final = _built_in(
        "DeviceClass", "deviceclasses.resource.k8s.io", DeviceClass, namespaced=False
    )

    group: str
    name: str
    # The name in paths and roles, in the plural.
    resource: str
    # In order of preference; the first is asked for.
    versions: tuple[str, ...]
    namespaced: bool
    # What is read of a custom object; a built-in type says so itself.
    paths: tuple[str, ...]
    type: _ObjectType

    def __new__(
        cls,
        name: str,
        full_name: str,
        read_as: _ObjectType,
        *,
        namespaced: bool,
        versions: tuple[str, ...] = ("v1",),
        paths: tuple[str, ...] = (),
    ) -> Self:
        """Make a kind; `full_name` is `resource.group`, the resource alone in the core group."""
        resource, _, group = full_name.partition(".")
        kind = super().__new__(cls, f"{group}/{name}" if group else name)
        for attribute, value in (
            ("group", group),
            ("name", name),
            ("resource", resource),
            ("versions", versions),
            ("namespaced", namespaced),
            ("paths", paths),
            ("type", read_as),
        ):
            object.__setattr__(kind, attribute, value)
        return kind

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of a kind can't be changed")

    @property
    def is_custom(self) -> bool:
        return self.type is CustomObject

    @property
    def label(self) -> str:
        """The name in metrics and logs; short where no other group can have it, too."""
        return f"{self.resource}.{self.group}" if self.is_custom else self.resource


BUILT_IN: Final = tuple(found for found in vars(Kind).values() if isinstance(found, Kind))
_BY_TEXT: Final = {text: kind for kind in BUILT_IN for text in (str(kind), kind.name)}


class KindError(ValueError):
    """A kind that can't be declared. Where a plugin's arguments name it, they are wrong."""


def custom_kind(
    name: str, full_name: str, *, version: str, paths: Iterable[str], namespaced: bool = True
) -> Kind:
    """Return the kind of a custom resource; KindError if it can't be declared like this.

    `full_name` is the name of its CustomResourceDefinition, `podgroups.scheduling.x-k8s.io`. What
    the paths mean is told in `api.custom_objects`.
    """
    declared = tuple(sorted(set(paths)))
    try:
        for path in declared:
            names_of(path)
    except ValueError as error:
        raise KindError(str(error)) from error
    kind = Kind(
        name, full_name, CustomObject, namespaced=namespaced, versions=(version,), paths=declared
    )
    if not (kind.group and kind.resource and name and version):
        raise KindError(f"a custom kind needs a name, resource.group and a version: {full_name!r}")
    if kind in _BY_TEXT:
        raise KindError(f"{kind} is a built-in kind")
    return kind


def joined(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """Return each kind once, in order, with the paths of all that declare it.

    Where they do not agree on version or resource, the first in order of their names counts.
    """
    ordered = sorted(kinds, key=lambda k: (k, k.versions, k.resource, k.namespaced, k.paths))
    return tuple(_with_all_paths(list(same)) for _, same in groupby(ordered))


def _with_all_paths(same: list[Kind]) -> Kind:
    first = same[0]
    if len({kind.paths for kind in same}) == 1:
        return first
    return custom_kind(
        first.name,
        f"{first.resource}.{first.group}",
        version=first.versions[0],
        paths=(path for kind in same for path in kind.paths),
        namespaced=first.namespaced,
    )


def kind_named(text: str) -> Kind:
    """Return the kind `group/kind`; a built-in one also by its kind alone, as it once was written.

    Of a custom one no more is known than its names.
    """
    known = _BY_TEXT.get(text)
    if known is not None:
        return known
    group, _, name = text.rpartition("/")
    return Kind(name, f".{group}", CustomObject, namespaced=True, versions=())


def as_text(value: object) -> str:
    if isinstance(value, Kind):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} can't be encoded")


def from_text(wanted: type, value: Any) -> Kind:
    if wanted is Kind and isinstance(value, str):
        return kind_named(value)
    raise NotImplementedError(f"{wanted.__name__} can't be decoded")
