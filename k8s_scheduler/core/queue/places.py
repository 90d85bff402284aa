"""The structures that hold pending pods: each pod is in exactly one of them, by its `place`.

What a pod in quarantine, or one that is set aside, waits for comes on top of its place: it keeps
the place, and another structure holds it. Gated pods need none.
"""

from collections.abc import Callable, Iterator

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.queue.backoff import is_over
from k8s_scheduler.core.queue.giving_way import GivingWay
from k8s_scheduler.core.queue.heap import Heap
from k8s_scheduler.core.queue.line import Line
from k8s_scheduler.core.queue.namespace_heaps import NamespaceHeaps
from k8s_scheduler.core.queue.parked import Parked
from k8s_scheduler.core.queue.quarantine import QuarantinedPods
from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueuePlace

SortKey = Callable[[Pod, float], tuple[float, ...]]

# Of each kind, so many pods at most are made active by one tick; the others by the next ones.
MOST_FLUSHED = 500


class Places:
    """Puts pods into the structure of a place, and takes them out."""

    def __init__(self, sort_key: SortKey) -> None:
        self.sort_key = sort_key
        self.giving_way = GivingWay()
        self.active: NamespaceHeaps[QueuedPod] = NamespaceHeaps(giving_way=self.giving_way)
        # Rejected pods may be tried early when there is nothing else to do; errors may not.
        self.backoff: Heap[QueuedPod] = Heap()
        self.error_backoff: Heap[QueuedPod] = Heap()
        self.parked = Parked()
        self.quarantine = QuarantinedPods()
        # Active pods that have to wait until a decision of their profile is no longer suspended.
        self.aside: dict[PodUid, QueuedPod] = {}
        # Some of the parked pods.
        self.line = Line()
        self.next_sequence = 0

    def sort_by(self, sort_key: SortKey) -> None:
        """Go by another order. The caller puts all active pods and those in backoff in again."""
        self.sort_key = sort_key
        self.active = NamespaceHeaps(self.active.held, giving_way=self.giving_way)
        self.backoff, self.error_backoff = Heap(), Heap()

    @property
    def has_ordinary(self) -> bool:
        """Whether there is a pod to try that is not in quarantine."""
        return self.active.has_free or bool(len(self.backoff) or len(self.line))

    def put(self, queued: QueuedPod, place: QueuePlace, *, sequence: int | None = None) -> None:
        queued.place = place
        if sequence is None:
            sequence = self.next_sequence
            self.next_sequence += 1
        queued.sequence = sequence
        if queued.uid in self.quarantine and place in (QueuePlace.ACTIVE, QueuePlace.BACKOFF):
            self.quarantine.hold(queued)
            return
        order = self.sort_key(queued.pod, queued.timestamp)
        if place is QueuePlace.ACTIVE:
            namespace = queued.pod.metadata.namespace
            self.active.push(
                queued.uid, queued, namespace=namespace, order=order, sequence=sequence
            )
        elif place is QueuePlace.BACKOFF:
            heap = self.error_backoff if queued.consecutive_errors else self.backoff
            heap.push(queued.uid, queued, order=(queued.backoff_expiry, *order), sequence=sequence)
        elif place is QueuePlace.PARKED:
            self.parked.add(queued)

    def take(self, queued: QueuedPod) -> None:
        if self.aside.pop(queued.uid, None) is not None or self.quarantine.take(queued.uid):
            return
        if queued.place is QueuePlace.ACTIVE:
            self.active.remove(queued.uid)
        elif queued.place is QueuePlace.BACKOFF:
            heap = self.error_backoff if queued.consecutive_errors else self.backoff
            heap.remove(queued.uid)
        elif queued.place is QueuePlace.PARKED:
            self.parked.remove(queued.uid)
            self.line.remove(queued)


def pop_expired(heap: Heap[QueuedPod], now: float) -> Iterator[QueuedPod]:
    for _ in range(MOST_FLUSHED):
        first = heap.peek()
        if first is None or not is_over(first[0][0], now):
            return
        heap.pop()
        yield first[1]
