"""Nodes on which pods ask for more than there is: seen, told apart, counted.

Schedulers that share nodes decide on what they have seen. Two of them can give the same room away
at the same moment, and the kubelet then rejects the pod that comes second. That is a race, and
worth knowing of. Other things fill a node beyond its room too and are no race: a pod that the
kubelet resizes in place, one that was put there without a scheduler (static pods, a node name in
its spec), a node that offers less than before, or a state that was so when this process first
looked.

Only pods that the API server has on the node count. One that is merely assumed may yet fail to be
bound, so it is judged when the watch confirms it.

    RACE         a Binding was seen that brought more than fits, and would not have without pods of
                 other schedulers that its sender may not have seen
    BINDING      the same, but for such pods: its scheduler does not go by these resources
    DIRECT       a pod came without a Binding
    RESIZE       a pod that was there asks for more
    ALLOCATABLE  the node offers less
    FOUND        it was so at first sight: the kubelet had taken the pod already, or the node came
                 after its pods
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from k8s_scheduler.api.annotations import MIRROR
from k8s_scheduler.api.meta import NodeName, PodUid, key_of
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.messages.outgoing import (
    EventType,
    Log,
    PodReference,
    RecordEvent,
    Severity,
    attempt_at,
)
from k8s_scheduler.core.state.amounts.names import NATIVE
from k8s_scheduler.core.state.amounts.overdrawn import Overdrawn
from k8s_scheduler.core.state.cache import Sighting
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.protocols import RoomTaken
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

# Label values come from a fixed set; the log has the name.
_TOLD: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_MOST_NAMES: Final = 5
_MOST_AMOUNTS: Final = 16
_NOBODY: Final = "nobody"


class Cause(StrEnum):
    """Why a node is overfilled; the values are label values."""

    RACE = "race"
    BINDING = "binding"
    DIRECT = "direct"
    RESIZE = "resize"
    ALLOCATABLE = "allocatable"
    FOUND = "found"


class Overfilled:
    """Which nodes are overfilled now, and which pods did it."""

    def __init__(self, state: CoreState) -> None:
        self._cache = state.cache
        self._metrics = state.meter.metrics
        self._profiles = state.profiles
        self._out = state.out
        # By node: the resources that are overdrawn. Dicts stand for ordered sets.
        self._now: dict[NodeName, dict[str, None]] = {}
        # A standby sees the same; only a scheduler that has decided something tells users of it.
        self.may_tell_users = False

    # What happens

    def pod_seen(self, pod: Pod, sighting: Sighting, before: RoomTaken | None) -> None:
        """Look at the node of a pod that the watch has shown there; `before` is where it was.

        Only what this pod takes, or took, can have become too much or be enough again.
        """
        if sighting is Sighting.SAME:
            return
        name = NodeName(pod.spec.node_name)
        after = self._cache.place_of(PodUid(pod.metadata.uid))
        fresh = self._look(name, _resources(before, after))
        if not fresh:
            return
        if sighting is Sighting.RESIZED:
            self._tell(name, fresh, Cause.RESIZE, pod)
        else:
            self._tell(name, fresh, self._cause(name, pod, fresh), pod)

    def node_seen(self, node: Node, before: Node | None) -> None:
        """Look at a node that has come, or is another than before."""
        name = NodeName(node.metadata.name)
        if before is None:
            fresh = self._look(name)
        else:
            # Only what it offers, or offered, can have become too little or be enough again.
            offered = (node.status.allocatable or {}) | (before.status.allocatable or {})
            fresh = self._look(name, offered)
        if fresh:
            self._tell(name, fresh, Cause.FOUND if before is None else Cause.ALLOCATABLE)

    def pod_left(self, place: RoomTaken | None) -> None:
        """Look again at a node that a pod has left."""
        if place is not None and place.node in self._now:
            self._look(place.node, _resources(place))

    def node_left(self, name: NodeName) -> None:
        if name in self._now:
            self._look(name)

    def reset(self) -> None:
        """Take everything as it is now, without a word."""
        self._now.clear()
        for row in self._cache.nodes.present_rows().tolist():
            self._look(self._cache.nodes.name_of(NodeRow(row)))

    def _look(
        self, name: NodeName, resources: Iterable[str] | None = None
    ) -> tuple[Overdrawn, ...]:
        """Return what has come to be overdrawn since the last look.

        Looks at native resources and at those given; at all that there are, if none are.
        """
        row, known = self._cache.nodes.row_of(name), self._now.get(name, {})
        had_any = bool(known)
        if row is None or self._cache.nodes.node_at(row) is None:
            fresh: tuple[Overdrawn, ...] = ()
            known = {}
        else:
            if resources is None:
                resources = dict.fromkeys((*self._cache.resources_on(row), *known))
            found = self._cache.overdrawn(row, resources)
            if not found and not had_any:
                return ()
            fresh = tuple(each for each in found if each.resource not in known)
            for resource in (*NATIVE, *resources):
                known.pop(resource, None)
            known.update(dict.fromkeys(each.resource for each in found))
        if known:
            self._now[name] = compact(known)
        else:
            self._now.pop(name, None)
        if bool(known) != had_any:
            self._metrics.overfilled_nodes.set(len(self._now))
        return fresh

    # Which pod did it

    def _cause(self, name: NodeName, pod: Pod, fresh: tuple[Overdrawn, ...]) -> Cause:
        if pod.status.start_time is not None:
            return Cause.FOUND
        if not _was_bound(pod):
            return Cause.DIRECT
        return Cause.RACE if _have_filled(self._rivals(name, pod), fresh) else Cause.BINDING

    def _rivals(self, name: NodeName, pod: Pod) -> list[PlacedPod]:
        """Return the pods of other schedulers that the one of this pod may not have seen."""
        return [other for other in self._others(name, pod) if _may_be_unseen(other.pod, pod)]

    def _others(self, name: NodeName, pod: Pod | None) -> list[PlacedPod]:
        """Return the other pods that the API server has there, the latest first."""
        row = self._cache.nodes.row_of(name)
        if row is None:
            return []
        uid = None if pod is None else pod.metadata.uid
        here = [
            other
            for other in self._cache.pods_on(row)
            if other.uid != uid
            and not self._cache.is_assumed(other.uid)
            and not _is_static(other.pod)
        ]
        return here[::-1]

    def _is_ours(self, pod: Pod) -> bool:
        return self._profiles.serves(pod)

    # Telling

    def _tell(
        self,
        name: NodeName,
        fresh: tuple[Overdrawn, ...],
        cause: Cause,
        pod: Pod | None = None,
    ) -> None:
        others = self._others(name, pod)
        rival = None
        if cause is Cause.RACE and pod is not None:
            rival = self._rivals(name, pod)[0].pod
        first = _NOBODY if rival is None else "ours" if self._is_ours(rival) else "others"
        for each in fresh:
            resource = each.resource if each.resource in _TOLD else "other"
            self._metrics.overfilled.labels(cause.value, resource, first).inc()
        amounts = ", ".join(map(str, fresh[:_MOST_AMOUNTS]))
        if len(fresh) > _MOST_AMOUNTS:
            amounts += f" and {len(fresh) - _MOST_AMOUNTS} more"
        fields: dict[str, str | int] = {"node": name, "cause": cause.value, "amounts": amounts}
        if pod is not None:
            fields |= {"pod": key_of(pod.metadata), "scheduler": pod.spec.scheduler_name}
        if rival is not None:
            fields |= {"first": key_of(rival.metadata), "by": rival.spec.scheduler_name}
        fields["pods"] = ", ".join(key_of(other.pod.metadata) for other in others[:_MOST_NAMES])
        severity = Severity.WARNING if cause in (Cause.RACE, Cause.BINDING) else Severity.INFO
        self._out.append(Log(severity, "a node is overfilled", fields))
        if pod is not None and rival is not None and self.may_tell_users:
            self._tell_users(name, amounts, pod, rival)

    def _tell_users(self, name: NodeName, amounts: str, pod: Pod, rival: Pod) -> None:
        """Tell of a race at a pod of ours: which other pod was given the room."""
        about, other = (pod, rival) if self._is_ours(pod) else (rival, pod)
        if not self._is_ours(about):
            return
        when = "second" if about is pod else "first"
        event = RecordEvent(
            **attempt_at(about, 0),
            scheduler_name=about.spec.scheduler_name,
            type=EventType.WARNING,
            reason="NodeOverfilled",
            action="Binding",
            note=(
                f"node {name} was filled by two schedulers at once: {amounts}; this pod came "
                f"{when}, {key_of(other.metadata)} is of {other.spec.scheduler_name}"
            ),
            related=PodReference.of(other),
        )
        self._out.append(event)


def _was_bound(pod: Pod) -> bool:
    """Return whether a Binding put the pod where it is: the server notes it in the same write."""
    return not _is_static(pod) and any(
        c.type == "PodScheduled" and c.status == "True" for c in pod.status.conditions or ()
    )


def _have_filled(pods: list[PlacedPod], fresh: tuple[Overdrawn, ...]) -> bool:
    taken = {PODS: len(pods)}
    for other in pods:
        for resource, amount in other.requests.amounts:
            taken[resource] = taken.get(resource, 0) + amount
    return any(each.requested - taken.get(each.resource, 0) <= each.allocatable for each in fresh)


def _resources(*places: RoomTaken | None) -> tuple[str, ...]:
    """Return the resources of which a pod takes any."""
    found = {name: None for place in places if place for name, _ in place.requests.amounts}
    return tuple(found)


def _may_be_unseen(other: Pod, pod: Pod) -> bool:
    """Return whether another scheduler bound `other`, and that of `pod` may not have known.

    All pods come by one watch, in the order of writes: a scheduler that had seen the pod at all had
    seen what was bound before it was created. Nearly every node has pods of another scheduler, of
    DaemonSets for one, and they are no rivals for having been there.
    """
    if other.spec.scheduler_name == pod.spec.scheduler_name:
        return False
    started, created = other.status.start_time, pod.metadata.creation_timestamp
    # Of the same form, in UTC and whole seconds: as texts they sort by time.
    return not (started and created and started < created)


def _is_static(pod: Pod) -> bool:
    owners = pod.metadata.owner_references or ()
    return MIRROR in (pod.metadata.annotations or {}) or any(o.kind == "Node" for o in owners)
