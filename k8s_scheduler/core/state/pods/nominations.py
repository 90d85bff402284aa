"""Pods that were promised room on a node where others still have to leave.

A nomination holds the place against pods that are not more important. It ends when the pod is
placed, gone, or nominated elsewhere.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.state.delta import PlacedPod

_NO_PODS: Mapping[PodUid, Pod] = {}
# Of so many changes, and up to twice as many, it is known which nodes they concern.
_LOGGED: Final = 1024


class Nominations:
    """Nominated pods, by node."""

    def __init__(self) -> None:
        self._nodes: dict[PodUid, NodeName] = {}
        self._pods: dict[NodeName, dict[PodUid, Pod]] = {}
        # The same as if they were placed; what is not there is worked out when it is asked for.
        self._placed: dict[NodeName, tuple[PlacedPod, ...]] = {}
        self._sorted: tuple[NodeName, ...] | None = None
        # How many have which priority; and these priorities, ascending, unless they are others now.
        self._by_priority: dict[int, int] = {}
        self._priorities: tuple[int, ...] | None = None
        # Goes up with every change; and the node of each change, the latest ones.
        self.version = 0
        self._log: list[NodeName] = []

    def put(self, pod: Pod, node: NodeName) -> None:
        uid = PodUid(pod.metadata.uid)
        self.remove(uid)
        self._changed(node)
        self._count(pod, 1)
        self._nodes[uid] = node
        if node not in self._pods:
            self._sorted = None
        self._pods.setdefault(node, {})[uid] = pod
        self._placed.pop(node, None)

    def remove(self, uid: PodUid) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._changed(node)
        pods = self._pods[node]
        self._count(pods.pop(uid), -1)
        self._placed.pop(node, None)
        if not pods:
            del self._pods[node]
            self._sorted = None
        if not self._nodes:
            # Without the room that thousands took; what the log would say is asked for anew.
            self._nodes, self._log = {}, []

    def on(self, node: NodeName) -> Mapping[PodUid, Pod]:
        return self._pods.get(node, _NO_PODS)

    def nodes(self) -> tuple[NodeName, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._pods))
        return self._sorted

    def placed_on(self, node: NodeName) -> tuple[PlacedPod, ...]:
        """Return the pods nominated to a node as if they were there.

        The same tuple as long as nothing changes. One that can't be read takes nothing.
        """
        found = self._placed.get(node)
        if found is None:
            pods = self._pods.get(node, _NO_PODS).values()
            found = tuple(placed for pod in pods for placed in _as_placed(pod))
            self._placed[node] = found
        return found

    def least_counting(self, priority: int) -> int | None:
        """Return the lowest priority of any of them that is not below one; None if all are.

        The same ones count for all pods of priorities with the same answer.
        """
        if self._priorities is None:
            self._priorities = tuple(sorted(self._by_priority))
        place = bisect_left(self._priorities, priority)
        return None if place == len(self._priorities) else self._priorities[place]

    def changed_since(self, version: int) -> tuple[NodeName, ...] | None:
        """Return the nodes of all changes since a version; None if that is not known any more."""
        count = self.version - version
        if count > len(self._log):
            return None
        return tuple(dict.fromkeys(self._log[-count:])) if count else ()

    def _changed(self, node: NodeName) -> None:
        self.version += 1
        self._log.append(node)
        if len(self._log) > 2 * _LOGGED:
            del self._log[:_LOGGED]

    def _count(self, pod: Pod, difference: int) -> None:
        priority = pod.spec.priority or 0
        count = self._by_priority.get(priority, 0) + difference
        if count == 0 or priority not in self._by_priority:
            self._priorities = None
        if count:
            self._by_priority[priority] = count
        else:
            del self._by_priority[priority]

    def node_of(self, uid: PodUid) -> NodeName | None:
        return self._nodes.get(uid)

    def entries(self) -> Iterator[tuple[NodeName, Pod]]:
        """Yield every nomination, in the order they were made, for checkpoints."""
        for uid, node in self._nodes.items():
            yield node, self._pods[node][uid]

    def __len__(self) -> int:
        return len(self._nodes)


def _as_placed(pod: Pod) -> tuple[PlacedPod, ...]:
    try:
        return (PlacedPod(pod, pod_requests(pod), host_ports(pod)),)
    except QuantityError:
        return ()
