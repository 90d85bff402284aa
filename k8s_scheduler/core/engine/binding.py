"""Pods on their way: decided and assumed, the API server not heard from yet.

A pod enters when its Bind goes out and leaves when the definite result for that very attempt
comes back, or when the pod is gone. Its room in the cache stays taken all the while.
"""

from dataclasses import dataclass

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.checkpoint import FlightEntry
from k8s_scheduler.core.messages.incoming import BindResult
from k8s_scheduler.core.messages.outgoing import Bind, EventType, RecordEvent
from k8s_scheduler.core.queue.queued_pod import QueuedPod


@dataclass(slots=True)
class Flight:
    """A binding under way."""

    queued: QueuedPod
    node: NodeName
    started: float

    def bind(self) -> Bind:
        """Return the instruction that starts it."""
        metadata = self.queued.pod.metadata
        return Bind(
            uid=self.queued.uid,
            namespace=metadata.namespace,
            name=metadata.name,
            attempt=self.queued.attempts,
            node=self.node,
        )

    def entry(self) -> FlightEntry:
        """Return this as checkpoint data."""
        return FlightEntry(queued=self.queued.entry(), node=self.node, started=self.started)

    @staticmethod
    def from_entry(entry: FlightEntry) -> "Flight":
        """Return what `entry` recorded."""
        return Flight(QueuedPod.from_entry(entry.queued), entry.node, entry.started)


class Flights:
    """All bindings under way, by pod."""

    def __init__(self) -> None:
        self._flights: dict[PodUid, Flight] = {}

    def start(self, flight: Flight) -> None:
        """Take note of a binding."""
        self._flights[flight.queued.uid] = flight

    def land(self, result: BindResult) -> Flight | None:
        """Return the flight a result belongs to, and end it; None for any other attempt."""
        flight = self._flights.get(result.uid)
        if flight is None or flight.queued.attempts != result.attempt:
            return None
        return self._flights.pop(result.uid)

    def update(self, pod: Pod) -> bool:
        """Take a newer version of a pod under way; False if it is not."""
        flight = self._flights.get(PodUid(pod.metadata.uid))
        if flight is None:
            return False
        flight.queued.replace_pod(pod)
        return True

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is gone; a result that still comes is nobody's."""
        self._flights.pop(uid, None)

    def entries(self) -> tuple[FlightEntry, ...]:
        """Return all of them as checkpoint data."""
        return tuple(flight.entry() for flight in self._flights.values())

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._flights


def tell_success(pod: Pod, *, attempt: int, node: NodeName) -> RecordEvent:
    """Return the event of a pod that was bound."""
    metadata = pod.metadata
    return RecordEvent(
        uid=PodUid(metadata.uid),
        namespace=metadata.namespace,
        name=metadata.name,
        attempt=attempt,
        scheduler_name=pod.spec.scheduler_name,
        type=EventType.NORMAL,
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}",
    )
