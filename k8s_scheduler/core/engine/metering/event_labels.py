"""What kube-scheduler would call a change of the cluster, for its metrics.

The label says what happened, not all that changed: an update of a node is one `NodeUpdate`, where
kube-scheduler counts it once for each of its parts.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.incoming import (
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
)
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.news.changes import ObjectChange, object_event_label
from k8s_scheduler.core.state.protocols import PlacedPods

# Says the label of a message that has not been handled yet.
EventOf: TypeAlias = Callable[[Any, PlacedPods, SchedulingQueue], str]


def _object_event(message: ObjectChanged, cache: PlacedPods, _queue: SchedulingQueue) -> str:
    known = cache.objects.original(message.kind, message.namespace, message.name) is not None
    if message.object is None:
        change = ObjectChange.DELETE
    else:
        change = ObjectChange.UPDATE if known else ObjectChange.ADD
    return object_event_label(message.kind, change)


def _pod_event(message: PodChanged, cache: PlacedPods, queue: SchedulingQueue) -> str:
    uid, pod = message.uid, message.pod
    on_node = _is_bound(uid, cache)
    if pod is None:
        return "AssignedPodDelete" if on_node else "UnscheduledPodDelete"
    if pod.spec.node_name:
        return "AssignedPodUpdate" if on_node else "AssignedPodAdd"
    known = queue.get(uid) is not None or cache.node_of(uid) is not None
    return "UnscheduledPodUpdate" if known else "UnscheduledPodAdd"


def _is_bound(uid: PodUid, cache: PlacedPods) -> bool:
    """Return whether the API server has said that the pod is on a node."""
    return cache.node_of(uid) is not None and not cache.is_assumed(uid)


def _node_event(message: NodeChanged, cache: PlacedPods, _queue: SchedulingQueue) -> str:
    if message.node is None:
        return "NodeDelete"
    row = cache.nodes.row_of(message.name)
    known = row is not None and cache.nodes.node_at(row) is not None
    return "NodeUpdate" if known else "NodeAdd"


# Messages of other types are no change of the cluster.
EVENTS: Final[Mapping[type[Message], EventOf]] = {
    PodChanged: _pod_event,
    NodeChanged: _node_event,
    ObjectChanged: _object_event,
}
