"""What can be watched: where a resource lives on the API server and what it decodes to.

A field selector is part of a resource, because two informers on one kind with different
selectors hold different sets: with one on phases, a pod that finishes is a *delete*.
"""

import re
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod

_NUMBER = re.compile(r"[1-9][0-9]*")


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

    @property
    def prefix(self) -> str:
        """The path of the resource's API version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def list_path(self) -> str:
        """The path of all objects, in all namespaces."""
        return f"{self.prefix}/{self.plural}"

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


def has_reached(seen: str, wanted: str) -> bool:
    """Return whether resource version `seen` is `wanted` or newer.

    Versions of one server are numbers that grow; anything else cannot be compared and has
    reached nothing.
    """
    if not (_NUMBER.fullmatch(seen) and _NUMBER.fullmatch(wanted)):
        return False
    return int(seen) >= int(wanted)
