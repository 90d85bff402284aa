"""Pods on their way: placed and assumed, not bound yet.

        WAITING ─────────▶ PRE_BINDING ─────────▶ BINDING ─────────▶ (landed)
     for a permit       writes, and what must     the API server
                        become true first         not heard from

A pod enters when it was assumed and nothing was reserved in vain. It leaves when the definite
result of its Bind comes back, when something on the way fails, or when the pod is gone. Its room
in the cache, and the objects it reserved, stay taken all the while.
"""

import enum
from collections.abc import Iterator

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.pre_bind_index import Awaited
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.messages.checkpoint import FlightEntry
from k8s_scheduler.core.messages.incoming import BindResult, RequestResult
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import Tables


class Phase(enum.StrEnum):
    """How far a pod has come."""

    WAITING = "waiting"
    PRE_BINDING = "pre-binding"
    BINDING = "binding"


class Flight(msgspec.Struct):
    """A pod on its way."""

    queued: QueuedPod
    node: NodeName
    started: float
    state: CycleState = msgspec.field(default_factory=CycleState)
    phase: Phase = Phase.WAITING
    # By plugin that made it wait: until when, and how long that is in all.
    permits: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    # Which PreBind plugin it is at, until when, and which of its writes are not answered yet.
    step: int = 0
    deadline: float = 0.0
    # Who is at work before the Bind, and at what: for texts about its failure.
    errand: tuple[str, str] = ("", "")
    requests: set[int] = msgspec.field(default_factory=set)
    # Objects that it reserved.
    objects: list[tuple[Kind, str, str]] = msgspec.field(default_factory=list)
    # How much the cluster had changed when it set out.
    changes_seen: int = 0
    # Whether its status was asked to name the node.
    told: bool = False
    # The configuration that it goes by to its end: the one in force when it set out.
    generation: int = 0
    # The profile of that configuration, once it was asked for; not kept in checkpoints.
    profile: Profile | None = None
    # When it came to its phase; for metrics only, and not kept in checkpoints.
    since: float = 0.0
    # Who set out before whom.
    number: int = 0
    # Whose flight it is: worked out, as is when it came to its first phase.
    uid: PodUid = PodUid("")

    def __post_init__(self) -> None:
        self.since = self.started
        self.uid = self.queued.uid

    @property
    def pod(self) -> Pod:
        """The pod, in its newest version."""
        return self.queued.pod

    @property
    def nominated(self) -> NodeName:
        """The node that the pod's status names, once all that was asked for is written."""
        return self.node if self.told else NodeName(self.pod.status.nominated_node_name)

    def bind(self) -> Bind:
        """Return the instruction that binds it."""
        metadata = self.pod.metadata
        return Bind(
            uid=self.uid,
            namespace=metadata.namespace,
            name=metadata.name,
            attempt=self.queued.attempts,
            node=self.node,
        )

    def entry(self) -> FlightEntry:
        """Return this as checkpoint data."""
        return FlightEntry(
            queued=self.queued.entry(),
            node=self.node,
            started=self.started,
            phase=self.phase.value,
            notes=dict(self.state.notes),
            permits=dict(self.permits),
            step=self.step,
            deadline=self.deadline,
            errand=self.errand,
            requests=tuple(sorted(self.requests)),
            objects=tuple(self.objects),
            changes_seen=self.changes_seen,
            told=self.told,
            generation=self.generation,
        )

    @staticmethod
    def from_entry(entry: FlightEntry) -> "Flight":
        """Return what `entry` recorded."""
        state = CycleState()
        for key, value in entry.notes.items():
            state.write(key, value)
        return Flight(
            QueuedPod.from_entry(entry.queued),
            entry.node,
            entry.started,
            state=state,
            phase=Phase(entry.phase),
            permits=dict(entry.permits),
            step=entry.step,
            deadline=entry.deadline,
            errand=entry.errand,
            requests=set(entry.requests),
            objects=list(entry.objects),
            changes_seen=entry.changes_seen,
            told=entry.told,
            generation=entry.generation,
        )


class Flights:
    """All pods on their way, by pod."""

    def __init__(self, cache: Tables) -> None:
        self._flights: dict[PodUid, Flight] = {}
        self._started = 0
        self.awaited = Awaited(cache.objects, cache.facts)

    def start(self, flight: Flight) -> None:
        """Take note of a pod that sets out, or that was on its way when a checkpoint was taken."""
        self._started += 1
        flight.number = self._started
        self._flights[flight.uid] = flight
        if flight.phase is Phase.PRE_BINDING:
            self.awaited.ask_always(flight.uid)

    def get(self, uid: PodUid) -> Flight | None:
        """Return a pod's flight."""
        return self._flights.get(uid)

    def is_binding(self, uid: PodUid) -> bool:
        """Return whether a pod's Bind is under way."""
        flight = self._flights.get(uid)
        return flight is not None and flight.phase is Phase.BINDING

    def of(self, result: BindResult | RequestResult) -> Flight | None:
        """Return the flight a result belongs to; None for any other attempt."""
        flight = self._flights.get(result.uid)
        if flight is None or flight.queued.attempts != result.attempt:
            return None
        return flight

    def end(self, uid: PodUid) -> Flight | None:
        """Take a flight out; a result that still comes is nobody's."""
        self.awaited.forget(uid)
        return self._flights.pop(uid, None)

    def update(self, pod: Pod) -> bool:
        """Take a newer version of a pod on its way; False if it is not."""
        flight = self._flights.get(PodUid(pod.metadata.uid))
        if flight is None:
            return False
        # Nobody judges a bound one any more, and its shape is another one in any case.
        shape = None if pod.spec.node_name else flight.queued.shape
        flight.queued.replace_pod(pod)
        self.awaited.changed(flight.uid)
        if shape is None or flight.queued.shape != shape:
            # A pod that is judged otherwise now has seen nothing of the cluster yet.
            flight.changes_seen = -1
        return True

    def entries(self) -> tuple[FlightEntry, ...]:
        """Return all of them as checkpoint data."""
        return tuple(flight.entry() for flight in self._flights.values())

    def in_phase(self, phase: Phase) -> list[Flight]:
        """Return the flights that have come just so far, longest on their way first."""
        return [flight for flight in self._flights.values() if flight.phase is phase]

    def to_ask(self) -> Iterator[Flight]:
        """Yield the pre-binding flights that may be told something new, longest under way first.

        What comes of asking one may concern others: then these are yielded as well.
        """
        uids = self.awaited.occasion(self._number)
        while uids:
            for uid in uids:
                flight = self._flights.get(uid)
                if flight is not None and flight.phase is Phase.PRE_BINDING:
                    yield flight
            uids = self.awaited.rest(self._number)

    def _number(self, uid: PodUid) -> int:
        return self._flights[uid].number

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._flights

    def __iter__(self) -> Iterator[Flight]:
        return iter(list(self._flights.values()))
