"""Which pods take room on which node.

                    assume                      confirm (watch shows a node name)
        (unknown) ──────────▶ ASSUMED ─────────────────────────────▶ BOUND
            ▲  │                 │                                     │
            │  │ bind seen first │ forget (binding failed for certain) │ gone
            │  └─────────────────┼──────────────────────▶ BOUND        │
            └────────────────────┴─────────────────────────────────────┘
                         remove (deleted or finished)

Invariants: a pod takes room on exactly one row, from assume or first sight until forget or
remove; an assumed pod never expires (only a definite answer or the watch ends it). A
confirmation is a full update: the API server may have changed the pod while binding it, and it
may even name another node. Pods are known by uid, so a pod that was re-created under the same
name is another pod.
"""

from enum import Enum, auto
from typing import Final

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.resources import Requests, forget_sums, pod_requests
from k8s_scheduler.core.state.cluster_state import ClusterState
from k8s_scheduler.core.state.news.changes import Change
from k8s_scheduler.core.state.pods.pod_index import Placed
from k8s_scheduler.core.state.protocols import RoomTaken
from k8s_scheduler.core.state.rows import NodeRow


class Sighting(Enum):
    """What the watch has shown of a pod with a node, as far as room on nodes is concerned."""

    ARRIVED = auto()
    CONFIRMED = auto()
    RESIZED = auto()
    SAME = auto()


class CacheError(Exception):
    """The cache was asked for a move that its state machine does not have."""


# Read once: looking up an enum's member is slow, and this is done for every pod.
_ADDED: Final = Change.ASSIGNED_POD_ADD
# So many distinct requests are remembered, of so many resources at most: replicas ask for few.
_SHARED: Final = 4096
_SHARED_RESOURCES: Final = 16
# How often amounts are forgotten: thousands of pods that are gone may each have had its own.
_SHARED_SECONDS: Final = 600.0


class Cache(ClusterState):
    """The tables, and the machine that says how long a pod takes room in them."""

    def __init__(self, *, bounds_requests: bool = False) -> None:
        """Start empty; with `bounds_requests`, what bound pods claim to take always has a sum.

        Without, sums wrap around as kube-scheduler's do.
        """
        super().__init__()
        self._bounds_requests = bounds_requests
        # Pods that take the same share one record of it: replicas are many.
        self._requests: dict[Requests, Requests] = {}
        self._next_forgotten = 0.0

    # Pods

    def assume(self, pod: Pod, row: NodeRow, requests: Requests | None = None) -> None:
        """Let an unbound pod take room on a row, before the API server knows."""
        uid = PodUid(pod.metadata.uid)
        if uid in self._pods:
            raise CacheError(f"pod {uid} already takes room")
        requests = requests or pod_requests(pod)
        self._place(uid, Placed(pod, row, requests, host_ports(pod), assumed=True))

    def announce(self, uid: PodUid) -> None:
        """Note an assumed pod as a change for others, once it is clear that it keeps its room."""
        placed = self._pods[uid]
        self.changes.note(placed.row, _ADDED, placed.pod)

    def forget(self, uid: PodUid, *, quietly: bool = False) -> None:
        """Take an assumed pod's room back; quietly, if it was not announced."""
        placed = self._pods.get(uid)
        if placed is None or not placed.assumed:
            raise CacheError(f"pod {uid} is not assumed")
        self._displace(uid, placed, quietly=quietly)

    def put_bound(self, pod: Pod) -> Sighting:
        """Take a pod with a node name from the watch: add, update or confirm it.

        Raises QuantityError, and leaves things as they were, if its requests cannot be read.
        """
        uid = PodUid(pod.metadata.uid)
        requests = self._shared(pod_requests(pod, from_status=True))
        name = NodeName(pod.spec.node_name)
        placed = self._pods.get(uid)
        if placed is not None and self.nodes.name_of(placed.row) == name:
            was_assumed, asked = placed.assumed, placed.requests
            self._refresh(placed, pod, requests)
            if was_assumed:
                return Sighting.CONFIRMED
            return Sighting.SAME if asked == requests else Sighting.RESIZED
        if placed is not None:
            self._displace(uid, placed)
        row = self.nodes.claim_row(name)
        self._place(uid, Placed(pod, row, requests, host_ports(pod), assumed=False))
        self.changes.note(row, _ADDED, pod)
        return Sighting.ARRIVED

    def remove_pod(self, uid: PodUid) -> None:
        """Take a pod away, wherever it is; an unknown one is no error (the watch may repeat)."""
        placed = self._pods.get(uid)
        if placed is not None:
            self._displace(uid, placed)

    # Reading

    def is_assumed(self, uid: PodUid) -> bool:
        placed = self._pods.get(uid)
        return placed is not None and placed.assumed

    def node_of(self, uid: PodUid) -> NodeName | None:
        placed = self._pods.get(uid)
        return None if placed is None else self.nodes.name_of(placed.row)

    def place_of(self, uid: PodUid) -> RoomTaken | None:
        placed = self._pods.get(uid)
        return (
            None if placed is None else RoomTaken(self.nodes.name_of(placed.row), placed.requests)
        )

    def pod(self, uid: PodUid) -> Pod | None:
        placed = self._pods.get(uid)
        return None if placed is None else placed.pod

    def placed_pods(self) -> list[tuple[NodeRow, Pod, bool]]:
        return [(p.row, p.pod, p.assumed) for p in self._pods.values()]

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    @property
    def assumed_count(self) -> int:
        return self._assumed_count

    def age(self, *, now: float) -> None:
        """Forget, now and then, what may be of no pod any more: counters, amounts, names."""
        self.pods.counters.age(now=now)
        if now >= self._next_forgotten:
            self._next_forgotten = now + _SHARED_SECONDS
            self._requests = {}
            self._namespaces = {}
            forget_sums()

    def _shared(self, requests: Requests) -> Requests:
        if len(requests.amounts) > _SHARED_RESOURCES:
            return requests.bounded() if self._bounds_requests else requests
        known = self._requests.get(requests)
        if known is None:
            if len(self._requests) >= _SHARED:
                self._requests.clear()
            known = requests.bounded() if self._bounds_requests else requests
            self._requests[requests] = known
        return known
