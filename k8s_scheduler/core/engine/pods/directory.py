"""Where a pod is: the one answer for all that ask.

            ┌────────▶ SUSPENDED ────────┐
            │                            ▼
    ──▶ QUEUED ────────────────────▶ IN_FLIGHT ──▶ UNCONFIRMED ──▶ BOUND
            ▲                            │  it takes room on its node from here on
            └────────────────────────────┘

A pod of another scheduler is BOUND or unknown. A pod in flight may have been seen on its node, or
on another one, before the answer to its Bind came: it stays IN_FLIGHT until then.
"""

import enum
from dataclasses import dataclass

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.pods.in_flight import InFlightPods
from k8s_scheduler.core.engine.pods.suspensions import Suspensions
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.protocols import PlacedPods


class Where(enum.Enum):
    """The places of pods."""

    QUEUED = enum.auto()
    # Out of the queue, without room: extenders are being asked.
    SUSPENDED = enum.auto()
    # Assumed; the outcome of its Bind is not known.
    IN_FLIGHT = enum.auto()
    # Assumed and bound, and not seen on its node.
    UNCONFIRMED = enum.auto()
    BOUND = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=True, slots=True)
class PodDirectory:
    """Looks pods up in all tables that may hold them."""

    cache: PlacedPods
    queue: SchedulingQueue
    in_flight: InFlightPods
    suspensions: Suspensions

    def where(self, uid: PodUid) -> Where:
        if uid in self.in_flight:
            return Where.IN_FLIGHT
        if self.suspensions.queued(uid) is not None:
            return Where.SUSPENDED
        if self.cache.node_of(uid) is not None:
            return Where.UNCONFIRMED if self.cache.is_assumed(uid) else Where.BOUND
        return Where.UNKNOWN if self.queue.get(uid) is None else Where.QUEUED

    def unbound(self, uid: PodUid) -> QueuedPod | None:
        """Return a pod that waits, is suspended or is in flight."""
        flight = self.in_flight.get(uid)
        if flight is not None:
            return flight.queued
        return self.suspensions.queued(uid) or self.queue.get(uid)

    def pod(self, uid: PodUid) -> Pod | None:
        """Return a pod in its newest version, wherever it is."""
        unbound = self.unbound(uid)
        return self.cache.pod(uid) if unbound is None else unbound.pod

    def is_staying(self, uid: PodUid) -> bool:
        """Return whether a pod is there and not on its way out."""
        pod = self.pod(uid)
        return pod is not None and pod.metadata.deletion_timestamp is None

    def wants_node(self, uid: PodUid) -> bool:
        """Return whether a pod is still there without a node of its own."""
        unbound = self.unbound(uid)
        return unbound is not None and unbound.pod.metadata.deletion_timestamp is None

    def is_on_node(self, uid: PodUid) -> bool:
        """Return whether the API server has shown the pod on a node."""
        return self.cache.node_of(uid) is not None and not self.cache.is_assumed(uid)
