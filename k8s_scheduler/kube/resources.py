"""What can be watched: where a resource lives on the API server and what it decodes to.

A field selector is part of a resource, because two informers on one kind with different
selectors hold different sets: with one on phases, a pod that finishes is a *delete*.

The core group is what makes a server a Kubernetes API server. Every other group can be older than
the version we ask for, or switched off, so its resources `may_be_absent`: then they are empty.
"""

import re
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, ObjectMeta
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod

# No server counts to more digits, and Python refuses to convert thousands of them.
_NUMBER = re.compile(r"[1-9][0-9]{,39}")


class KubeObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One resource of the API; the core group's name is empty."""

    group: str
    version: str
    plural: str
    # A `Kind` for all objects but pods and nodes.
    kind: str
    namespaced: bool
    type: type[T]
    field_selector: str = ""
    # The only namespace to look into; empty: all of them.
    namespace: str = ""

    @property
    def prefix(self) -> str:
        return f"/{'apis' if self.group else 'api'}/{self.api_version}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_path(self) -> str:
        """The path of all objects, in all namespaces or in the only one."""
        inside = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.prefix}{inside}/{self.plural}"

    @property
    def full_name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def label(self) -> str:
        """The name in metrics, logs and of tasks; a custom resource goes by its full name."""
        return self.kind.label if isinstance(self.kind, Kind) else self.plural

    @property
    def may_be_absent(self) -> bool:
        """Whether a server without this resource is still one that can be worked with."""
        return bool(self.group)

    def object_path(self, name: str, *, namespace: str = "", subresource: str = "") -> str:
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


def resource_of(kind: Kind) -> Resource[ClusterObject]:
    return Resource(
        group=kind.group,
        version=kind.versions[0],
        plural=kind.resource,
        kind=kind,
        namespaced=kind.namespaced,
        type=kind.type,
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
