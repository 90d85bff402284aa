"""What the cluster did, one change at a time, each with the way back.

A change is told to the core as the messages any change is; the messages of its way back bring the
core to where it was. So a state that another scheduler may have seen can be set up, looked at and
left again, without a second kind of state.
"""

from dataclasses import dataclass

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, NodeName, PodUid, key_of
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.core.messages.incoming import Message, NodeChanged, ObjectChanged, PodChanged


@dataclass(frozen=True, slots=True)
class Binding:
    """A pod that another scheduler has put on a node.

    `pod` is as it was before; `queued` is its place in the order in which pods came to wait.
    """

    pod: Pod
    node: NodeName
    queued: int

    @property
    def uid(self) -> PodUid:
        """Return which pod it is."""
        return PodUid(self.pod.metadata.uid)

    @property
    def priority(self) -> int:
        """Return how important it is."""
        return self.pod.spec.priority or 0


@dataclass(frozen=True, slots=True)
class SeenChange:
    """One change: when it was seen, its place in the order of all, how to tell it and take it back.

    `matters` is False of changes that no decision depends on. `binding` is set for a binding by a
    scheduler that is followed, `pod` for any pod that is there afterwards.
    """

    at: float
    place: int
    key: str
    text: str
    forward: Message
    back: tuple[Message, ...]
    matters: bool
    binding: Binding | None = None
    pod: Pod | None = None


def pod_change(
    old: Pod | None, new: Pod | None, *, at: float, place: int, queued: int | None
) -> SeenChange:
    """Return the change of a pod; `queued` is set if a scheduler that is followed bound it."""
    known = new if new is not None else old
    if known is None:
        raise ValueError("a change has a before or an after")
    uid = PodUid(known.metadata.uid)
    back: tuple[Message, ...] = (PodChanged(at, uid, old),)
    if old is not None and not old.spec.node_name:
        # A version without a node is taken for an old one as long as the pod has a place.
        back = (PodChanged(at, uid, None), *back)
    binding = None
    if old is not None and new is not None and queued is not None:
        binding = Binding(old, NodeName(new.spec.node_name), queued)
    return SeenChange(
        at=at,
        place=place,
        key=uid,
        text=f"pod {key_of(known.metadata)} {_what_happened(old, new)}",
        forward=PodChanged(at, uid, new),
        back=back,
        matters=_place_facts(old) != _place_facts(new),
        binding=binding,
        pod=new,
    )


def node_change(old: Node | None, new: Node | None, *, at: float, place: int) -> SeenChange:
    """Return the change of a node."""
    known = new if new is not None else old
    if known is None:
        raise ValueError("a change has a before or an after")
    name = NodeName(known.metadata.name)
    what = "came" if old is None else "went" if new is None else "changed"
    return SeenChange(
        at=at,
        place=place,
        key=f"node/{name}",
        text=f"node {name} {what}",
        forward=NodeChanged(at, name, new),
        back=(NodeChanged(at, name, old),),
        matters=old is None or new is None or not same_but_version(old, new),
    )


def object_change(
    kind: Kind, old: ClusterObject | None, new: ClusterObject | None, *, at: float, place: int
) -> SeenChange:
    """Return the change of an object of another kind."""
    known = new if new is not None else old
    if known is None:
        raise ValueError("a change has a before or an after")
    metadata = known.metadata
    what = "came" if old is None else "went" if new is None else "changed"
    return SeenChange(
        at=at,
        place=place,
        key=f"{kind}/{key_of(metadata)}",
        text=f"{kind.name} {key_of(metadata)} {what}",
        forward=ObjectChanged(at, kind, metadata.namespace, metadata.name, new),
        back=(ObjectChanged(at, kind, metadata.namespace, metadata.name, old),),
        matters=True,
    )


def same_but_version(old: Node, new: Node) -> bool:
    """Return whether two versions of a node differ in nothing that scheduling reads."""
    metadata = msgspec.structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return msgspec.structs.replace(old, metadata=metadata) == new


def _what_happened(old: Pod | None, new: Pod | None) -> str:
    if new is None:
        return "went"
    if new.spec.node_name and (old is None or not old.spec.node_name):
        return f"was bound to {new.spec.node_name}"
    return "came" if old is None else "changed"


def _place_facts(pod: Pod | None) -> tuple[object, ...] | None:
    """Return what decisions about other pods read of a pod; nothing of one without a place."""
    if pod is None or not (pod.spec.node_name or pod.status.nominated_node_name):
        return None
    return (
        pod.spec,
        pod.metadata.labels,
        is_terminating(pod),
        pod.status.nominated_node_name,
        pod.status.container_statuses,
    )
