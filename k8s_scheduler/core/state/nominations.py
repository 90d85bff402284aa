"""Pods that were promised room on a node where others still have to leave.

A nomination holds the place against pods that are not more important. It ends when the pod is
placed, gone, or nominated elsewhere.
"""

from collections.abc import Iterator, Mapping

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod

_NOBODY: Mapping[PodUid, Pod] = {}


class Nominations:
    """Nominated pods, by node."""

    def __init__(self) -> None:
        self._nodes: dict[PodUid, NodeName] = {}
        self._pods: dict[NodeName, dict[PodUid, Pod]] = {}

    def put(self, pod: Pod, node: NodeName) -> None:
        """Nominate a pod, in place of where it was nominated before."""
        uid = PodUid(pod.metadata.uid)
        self.remove(uid)
        self._nodes[uid] = node
        self._pods.setdefault(node, {})[uid] = pod

    def remove(self, uid: PodUid) -> None:
        """End a pod's nomination, if it has one."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        pods = self._pods[node]
        del pods[uid]
        if not pods:
            del self._pods[node]

    def on(self, node: NodeName) -> Mapping[PodUid, Pod]:
        """Return the pods nominated to a node."""
        return self._pods.get(node, _NOBODY)

    def nodes(self) -> tuple[NodeName, ...]:
        """Return the nodes with nominated pods, sorted."""
        return tuple(sorted(self._pods))

    def node_of(self, uid: PodUid) -> NodeName | None:
        """Return where a pod is nominated."""
        return self._nodes.get(uid)

    def entries(self) -> Iterator[tuple[NodeName, Pod]]:
        """Yield every nomination, in the order they were made, for checkpoints."""
        for uid, node in self._nodes.items():
            yield node, self._pods[node][uid]

    def __len__(self) -> int:
        return len(self._nodes)
