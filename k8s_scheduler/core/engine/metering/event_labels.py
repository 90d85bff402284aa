"""What kube-scheduler would call a change of the cluster, for its metrics.

The label says what happened, not all that changed: an update of a node is one `NodeUpdate`, where
kube-scheduler counts it once for each of its parts.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from k8s_scheduler.core.engine.pods.directory import PodDirectory, Where
from k8s_scheduler.core.messages.incoming import (
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
)
from k8s_scheduler.core.state.news.changes import ObjectChange, object_event_label

# Says the label of a message that has not been handled yet.
EventOf: TypeAlias = Callable[[Any, PodDirectory], str]


def _object_event(message: ObjectChanged, pods: PodDirectory) -> str:
    known = pods.cache.objects.original(message.kind, message.namespace, message.name) is not None
    if message.object is None:
        change = ObjectChange.DELETE
    else:
        change = ObjectChange.UPDATE if known else ObjectChange.ADD
    return object_event_label(message.kind, change)


def _pod_event(message: PodChanged, pods: PodDirectory) -> str:
    uid, pod = message.uid, message.pod
    on_node = pods.is_on_node(uid)
    if pod is None:
        return "AssignedPodDelete" if on_node else "UnscheduledPodDelete"
    if pod.spec.node_name:
        return "AssignedPodUpdate" if on_node else "AssignedPodAdd"
    known = pods.where(uid) is not Where.UNKNOWN
    return "UnscheduledPodUpdate" if known else "UnscheduledPodAdd"


def _node_event(message: NodeChanged, pods: PodDirectory) -> str:
    if message.node is None:
        return "NodeDelete"
    nodes = pods.cache.nodes
    row = nodes.row_of(message.name)
    known = row is not None and nodes.node_at(row) is not None
    return "NodeUpdate" if known else "NodeAdd"


# Messages of other types are no change of the cluster.
EVENTS: Final[Mapping[type[Message], EventOf]] = {
    PodChanged: _pod_event,
    NodeChanged: _node_event,
    ObjectChanged: _object_event,
}
