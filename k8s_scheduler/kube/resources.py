"""What can be watched: where a resource lives on the API server and what it decodes to.

A field selector is part of a resource, because two informers on one kind with different
selectors hold different sets: with one on phases, a pod that finishes is a *delete*.

The core group is what makes a server a Kubernetes API server. Every other group can be older than
the version we ask for, or switched off, so its resources `may_be_absent`: then they are empty.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from k8s_scheduler.api.kinds import TYPES, ClusterObject, Kind
from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod

# No server counts to more digits, and Python refuses to convert thousands of them.
_NUMBER = re.compile(r"[1-9][0-9]{,39}")


class KubeObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Identity, labels and life of the object."""
        ...


T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One resource of the API; the core group's name is empty."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: type[T]
    field_selector: str = ""
    # The only namespace to look into; empty: all of them.
    namespace: str = ""

    @property
    def prefix(self) -> str:
        """The path of the resource's API version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def list_path(self) -> str:
        """The path of all objects, in all namespaces or in the only one."""
        inside = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.prefix}{inside}/{self.plural}"

    @property
    def full_name(self) -> str:
        """The name that roles and kubectl know: `pods`, `csinodes.storage.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def may_be_absent(self) -> bool:
        """Whether a server without this resource is still one that can be worked with."""
        return bool(self.group)

    def object_path(self, name: str, *, namespace: str = "", subresource: str = "") -> str:
        """Return the path of one object, or of a subresource of it."""
        inside = f"/namespaces/{namespace}" if self.namespaced else ""
        path = f"{self.prefix}{inside}/{self.plural}/{name}"
        return f"{path}/{subresource}" if subresource else path


PODS = Resource(
    group="",
    version="v1",
    plural="pods",
    kind="Pod",
    namespaced=True,
    type=Pod,
    # As kube-scheduler does: finished pods hold nothing and are most of many clusters' pods.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
NODES = Resource(group="", version="v1", plural="nodes", kind="Node", namespaced=False, type=Node)


def _other(
    kind: Kind, plural: str, *, group: str = "", namespaced: bool = False
) -> tuple[Kind, Resource[ClusterObject]]:
    return kind, Resource(
        group=group,
        version="v1",
        plural=plural,
        kind=kind.value,
        namespaced=namespaced,
        type=TYPES[kind],
    )


_APPS = "apps"
_STORAGE = "storage.k8s.io"

OTHERS: Final[Mapping[Kind, Resource[ClusterObject]]] = dict(
    (
        _other(Kind.NAMESPACE, "namespaces"),
        _other(Kind.SERVICE, "services", namespaced=True),
        _other(Kind.REPLICATION_CONTROLLER, "replicationcontrollers", namespaced=True),
        _other(Kind.REPLICA_SET, "replicasets", group=_APPS, namespaced=True),
        _other(Kind.STATEFUL_SET, "statefulsets", group=_APPS, namespaced=True),
        _other(Kind.POD_DISRUPTION_BUDGET, "poddisruptionbudgets", group="policy", namespaced=True),
        _other(Kind.PERSISTENT_VOLUME, "persistentvolumes"),
        _other(Kind.PERSISTENT_VOLUME_CLAIM, "persistentvolumeclaims", namespaced=True),
        _other(Kind.STORAGE_CLASS, "storageclasses", group=_STORAGE),
        _other(Kind.CSI_NODE, "csinodes", group=_STORAGE),
        _other(Kind.CSI_DRIVER, "csidrivers", group=_STORAGE),
        _other(Kind.CSI_STORAGE_CAPACITY, "csistoragecapacities", group=_STORAGE, namespaced=True),
        _other(Kind.VOLUME_ATTACHMENT, "volumeattachments", group=_STORAGE),
        _other(Kind.DEVICE_CLASS, "deviceclasses", group="resource.k8s.io"),
    )
)


def has_reached(seen: str, wanted: str) -> bool:
    """Return whether resource version `seen` is `wanted` or newer.

    Versions of one server are numbers that grow; anything else cannot be compared and has
    reached nothing.
    """
    if not (_NUMBER.fullmatch(seen) and _NUMBER.fullmatch(wanted)):
        return False
    return int(seen) >= int(wanted)


def is_newer(version: str, other: str) -> bool:
    """Return whether a resource version is certainly newer than another."""
    return version != other and has_reached(version, other)
