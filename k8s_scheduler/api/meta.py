"""What every Kubernetes object shares: the base of wire types, metadata, references, keys.

Wire types decode only the fields scheduling reads. They are frozen (informer and core share
them) and left out of the garbage collector's sight (they hold no cycles, and there are
hundreds of thousands of them). Optional collections are `| None` because the API server and
other writers do send `null`; the accessors give the empty collection instead.
"""

from typing import Annotated, NewType, TypeAlias

import msgspec

PodUid = NewType("PodUid", str)
NodeName = NewType("NodeName", str)

Labels: TypeAlias = dict[str, str]
# The API's integers have a size, and so do columns: an object with a larger one can't be read.
Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Base of everything decoded from the API server."""


class OwnerReference(Wire, frozen=True, gc=False):
    """The owner of an object; `controller` marks the one that manages it."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(Wire, frozen=True, gc=False):
    """Identity, labels and life of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    owner_references: list[OwnerReference] | None = None


class ClusterObject(Wire, frozen=True, gc=False):
    """Base of every object, besides pods and nodes, that decisions depend on."""

    metadata: ObjectMeta


class ListMeta(Wire, frozen=True, gc=False):
    """Where a list or a bookmark stands in history, and where its next page starts."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class ObjectReference(Wire, frozen=True, gc=False):
    """What an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"
    resource_version: str = ""


class Condition(Wire, frozen=True, gc=False):
    """A condition in a status, of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    observed_generation: Int64 | None = None


def key_of(metadata: ObjectMeta) -> str:
    """Return `namespace/name`, or the name alone for cluster-scoped objects."""
    if metadata.namespace:
        return f"{metadata.namespace}/{metadata.name}"
    return metadata.name
