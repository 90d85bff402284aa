"""Nodes in a ring, and pods that get the next one: placement without a decision."""

import logging
from collections.abc import Collection, Iterable
from typing import Protocol

from k8s_scheduler.api.meta import NodeName, ObjectReference, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.events.event import NORMAL, EventNote
from k8s_scheduler.kube.write.binding import BindOutcome, BindRequest

logger = logging.getLogger("k8s_scheduler.null_binder")

_ATTEMPT = 1


class Binds(Protocol):
    """Where Bindings go: what is used of a Dispatcher."""

    def bind_room(self) -> int:
        """Return how many more are welcome."""
        ...

    def submit_bind(self, request: BindRequest) -> None:
        """Take one; its outcome comes later."""
        ...


class Events(Protocol):
    """Where events go: what is used of an EventRecorder."""

    def record(self, note: EventNote) -> None:
        """Take one."""
        ...


class Ring:
    """Gives each pod that waits the next node, in the order in which pods came."""

    def __init__(self, scheduler_names: Collection[str], *, leave: Iterable[str] = ()) -> None:
        """Serve the pods of these schedulers; pods and nodes named with a prefix in `leave` stay.

        Workloads have pods that fit nowhere and nodes that are full, which only a decision tells.
        """
        self._scheduler_names = frozenset(scheduler_names)
        self._leave = tuple(leave)
        self._nodes: list[NodeName] = []
        self._known: set[NodeName] = set()
        self._next = 0
        self._waiting: dict[PodUid, Pod] = {}
        self._under_way: dict[PodUid, Pod] = {}
        self._turning = False
        self._binds: Binds | None = None
        self._events: Events | None = None
        self.bound = 0
        self.failed = 0

    def connect(self, binds: Binds, events: Events) -> None:
        """Say where Bindings and events go; before `allow`."""
        self._binds, self._events = binds, events

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Take a change from the node informer."""
        if new is not None:
            name = NodeName(new.metadata.name)
            if name not in self._known and not name.startswith(self._leave):
                self._known.add(name)
                self._nodes.append(name)
                self._feed()
        elif old is not None:
            self._known.discard(NodeName(old.metadata.name))
            self._nodes = [name for name in self._nodes if name in self._known]

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take a change from the pod informer."""
        if new is None:
            if old is not None:
                self._waiting.pop(PodUid(old.metadata.uid), None)
            return
        uid = PodUid(new.metadata.uid)
        if not self._is_due(new):
            self._waiting.pop(uid, None)
        elif uid not in self._under_way:
            self._waiting[uid] = new
            self._feed()

    def bind_ended(self, outcome: BindOutcome) -> None:
        """Take the outcome of a Binding: a success is told as the daemon tells it."""
        pod = self._under_way.pop(outcome.uid)
        if outcome.bound and self._events is not None:
            self.bound += 1
            self._events.record(scheduled_event(pod, outcome.node))
        else:
            self.failed += 1
            fields = {"pod": pod.metadata.name, "node": outcome.node, "reason": outcome.message}
            logger.warning("A Binding failed", extra={"fields": fields})
        self._feed()

    def allow(self) -> None:
        """Begin: everything is known."""
        self._turning = True
        self._feed()

    def forbid(self) -> None:
        """Bind nothing more."""
        self._turning = False

    def _is_due(self, pod: Pod) -> bool:
        spec, metadata = pod.spec, pod.metadata
        return (
            not spec.node_name
            and spec.scheduler_name in self._scheduler_names
            and metadata.deletion_timestamp is None
            and not metadata.name.startswith(self._leave)
        )

    def _feed(self) -> None:
        """Submit as many as there is room for; a Binding that ends makes room, and calls again."""
        if not (self._turning and self._nodes and self._waiting and self._binds is not None):
            return
        for _ in range(min(self._binds.bind_room(), len(self._waiting))):
            uid = next(iter(self._waiting))
            pod = self._under_way[uid] = self._waiting.pop(uid)
            node = self._nodes[self._next % len(self._nodes)]
            self._next += 1
            self._binds.submit_bind(
                BindRequest(uid, pod.metadata.namespace, pod.metadata.name, node, _ATTEMPT)
            )


def scheduled_event(pod: Pod, node: NodeName) -> EventNote:
    """Return the event that the daemon writes about a pod that was bound."""
    metadata = pod.metadata
    return EventNote(
        regarding=ObjectReference(
            kind="Pod", name=metadata.name, namespace=metadata.namespace, uid=metadata.uid
        ),
        type=NORMAL,
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}",
        reporting_controller=pod.spec.scheduler_name,
    )
