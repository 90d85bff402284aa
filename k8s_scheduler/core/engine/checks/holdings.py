"""What a core holds, to be compared and printed; nothing changes by looking.

The caller that compares knows the objects as the API server has them. A core that was told
everything holds each of them in one place, in its newest version; a pod or node whose amounts can't
be read is left out on purpose.
"""

from collections.abc import Iterator

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, NodeName, PodUid, key_of
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.api.resources import allocatable, pod_requests
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.pods.directory import Where
from k8s_scheduler.core.state.amounts.names import ALLOCATABLE, REQUESTED
from k8s_scheduler.core.state.rows import NodeRow

_SHOWN = ("cpu", "memory", "pods")


class Holdings:
    """A look at the state of one core."""

    def __init__(self, state: CoreState) -> None:
        self._state = state

    # Against the API server

    def pod_problem(self, pod: Pod) -> str:
        """Say what is wrong about a pod that there is; empty if nothing is."""
        if pod.spec.node_name:
            return self._bound_problem(pod)
        if not self._state.profiles.serves(pod) or is_terminating(pod) or self.has_pod(pod):
            return ""
        return "it waits nowhere"

    def _bound_problem(self, pod: Pod) -> str:
        uid, cache = PodUid(pod.metadata.uid), self._state.cache
        node, held = cache.node_of(uid), cache.pod(uid)
        if node is None or held is None:
            return "it takes no room" if _is_readable(pod) else ""
        if node != pod.spec.node_name:
            return f"it takes room on {node}"
        if held.metadata.resource_version != pod.metadata.resource_version and _is_readable(pod):
            return "another version of it takes room"
        return ""

    def pods(self) -> Iterator[Pod]:
        state = self._state
        for _, pod, _ in state.cache.placed_pods():
            yield pod
        for queued in (*state.queue, *state.suspensions):
            yield queued.pod

    def is_bound(self, uid: PodUid) -> bool:
        """Return whether the API server has said that the pod is on a node, as far as is known."""
        return self._state.pods.is_on_node(uid)

    def has_pod(self, pod: Pod) -> bool:
        return self._state.pods.where(PodUid(pod.metadata.uid)) is not Where.UNKNOWN

    def node_problem(self, node: Node) -> str:
        """Say what is wrong about a node that there is; empty if nothing is."""
        table = self._state.cache.nodes
        row = table.row_of(NodeName(node.metadata.name))
        held = None if row is None else table.node_at(row)
        if held is not None and held.metadata.resource_version == node.metadata.resource_version:
            return ""
        try:
            allocatable(node.status.allocatable)
        except QuantityError:
            return ""
        return "it is not known" if held is None else "another version of it is known"

    def has_node(self, node: Node) -> bool:
        table = self._state.cache.nodes
        row = table.row_of(NodeName(node.metadata.name))
        return row is not None and table.node_at(row) is not None

    def nodes(self) -> Iterator[Node]:
        table = self._state.cache.nodes
        for row, _ in table.used_rows():
            node = table.node_at(row)
            if node is not None:
                yield node

    def object(self, kind: Kind, namespace: str, name: str) -> ClusterObject | None:
        found: ClusterObject | None = self._state.cache.objects.original(kind, namespace, name)
        return found

    def objects(self, kind: Kind) -> Iterator[ClusterObject]:
        for each, _, _, found, _ in self._state.cache.objects.entries():
            if each == kind:
                yield found

    @property
    def row_count(self) -> int:
        return self._state.cache.nodes.row_count

    @property
    def quarantined(self) -> tuple[PodUid, ...]:
        return self._state.queue.quarantine.uids

    # For people

    def totals(self) -> dict[str, int]:
        cache, queue = self._state.cache, self._state.queue
        return {
            "nodes": len(cache.nodes),
            "pods": cache.pod_count,
            "assumed_pods": cache.assumed_count,
            "pending_pods": len(queue),
            "on_their_way": len(self._state.in_flight),
            "not_seen_bound": len(self._state.unconfirmed),
        }

    def node_lines(self) -> Iterator[dict[str, str | int]]:
        """Yield what is known of each node, and what is taken of it."""
        cache = self._state.cache
        for row, name in cache.nodes.used_rows():
            line: dict[str, str | int] = {"node": name, "deleted": cache.nodes.node_at(row) is None}
            line |= {f"requested_{r}": self._amount(REQUESTED, r, row) for r in _SHOWN}
            line |= {f"allocatable_{r}": self._amount(ALLOCATABLE, r, row) for r in _SHOWN}
            line["scheduled_pods"] = len(cache.pods_on(row))
            yield line

    def queue_lines(self) -> Iterator[dict[str, str | int]]:
        for queued in self._state.queue:
            yield {
                "pod": key_of(queued.pod.metadata),
                "queue": queued.place.value,
                "attempts": queued.attempts,
                "rejected_by": ",".join(sorted(queued.rejectors)),
            }

    def _amount(self, family: str, resource: str, row: NodeRow) -> int:
        return int(self._state.cache.nodes.column(f"{family}{resource}")[row])


def _is_readable(pod: Pod) -> bool:
    try:
        pod_requests(pod, from_status=True)
    except QuantityError:
        return False
    return True
