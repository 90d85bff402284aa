"""Pods in flight: placed and assumed, not bound yet.

        WAITING ─────────▶ PRE_BINDING ─────────▶ BINDING ─────────▶ (bound)
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
from k8s_scheduler.core.engine.pods.pre_bind_index import PreBindIndex
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.messages.checkpoint import InFlightEntry, as_entry
from k8s_scheduler.core.messages.incoming import BindResult, RequestResult
from k8s_scheduler.core.messages.outgoing import PodAttempt, attempt_at
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import Tables


class Phase(enum.StrEnum):
    """How far a pod has come."""

    WAITING = "waiting"
    PRE_BINDING = "pre-binding"
    BINDING = "binding"


class InFlightPod(msgspec.Struct):
    """A pod in flight."""

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
    # Which plugin is at work before the Bind, and at what: for texts about its failure.
    errand: tuple[str, str] = ("", "")
    requests: set[int] = msgspec.field(default_factory=set)
    # Objects that it reserved.
    objects: list[tuple[Kind, str, str]] = msgspec.field(default_factory=list)
    # How much the cluster had changed when its binding cycle began.
    changes_seen: int = 0
    # Whether its status was asked to name the node.
    told: bool = False
    # The configuration that it goes by to its end: the one in force when that began.
    generation: int = 0
    # The profile of that configuration, once it was asked for; not kept in checkpoints.
    profile: Profile | None = None
    # When it came to its phase; for metrics only, and not kept in checkpoints.
    since: float = 0.0
    # In the order in which binding cycles began.
    number: int = 0
    # Worked out, as is when it came to its first phase.
    uid: PodUid = PodUid("")

    def __post_init__(self) -> None:
        self.since = self.started
        self.uid = self.queued.uid

    @property
    def pod(self) -> Pod:
        return self.queued.pod

    @property
    def nominated(self) -> NodeName:
        """The node that the pod's status names, once all that was asked for is written."""
        return self.node if self.told else NodeName(self.pod.status.nominated_node_name)

    @property
    def attempt(self) -> PodAttempt:
        return attempt_at(self.queued.pod, self.queued.attempts)

    def entry(self) -> InFlightEntry:
        notes = dict(self.state.notes)
        return as_entry(InFlightEntry, self, queued=self.queued.entry(), notes=notes)

    @staticmethod
    def from_entry(entry: InFlightEntry) -> "InFlightPod":
        fields = msgspec.structs.asdict(entry)
        state = CycleState()
        for key, value in fields.pop("notes").items():
            state.write(key, value)
        return InFlightPod(
            **fields
            | {
                "queued": QueuedPod.from_entry(entry.queued),
                "state": state,
                "phase": Phase(entry.phase),
                "permits": dict(entry.permits),
                "requests": set(entry.requests),
                "objects": list(entry.objects),
            }
        )


class InFlightPods:
    """All pods in flight."""

    def __init__(self, cache: Tables) -> None:
        self._pods: dict[PodUid, InFlightPod] = {}
        self._started = 0
        self.pre_binding = PreBindIndex(cache.objects, cache.facts)

    def start(self, flight: InFlightPod) -> None:
        """Take note of a pod that was assumed, or that was in flight at a checkpoint."""
        self._started += 1
        flight.number = self._started
        self._pods[flight.uid] = flight
        if flight.phase is Phase.PRE_BINDING:
            self.pre_binding.ask_always(flight.uid)

    def get(self, uid: PodUid) -> InFlightPod | None:
        return self._pods.get(uid)

    def is_binding(self, uid: PodUid) -> bool:
        flight = self._pods.get(uid)
        return flight is not None and flight.phase is Phase.BINDING

    def of(self, result: BindResult | RequestResult) -> InFlightPod | None:
        flight = self._pods.get(result.uid)
        if flight is None or flight.queued.attempts != result.attempt:
            return None
        return flight

    def end(self, uid: PodUid) -> InFlightPod | None:
        """Take a pod out; a result that still comes is dropped."""
        self.pre_binding.forget(uid)
        return self._pods.pop(uid, None)

    def update(self, pod: Pod) -> None:
        """Take a newer version of a pod if it is in flight."""
        flight = self._pods.get(PodUid(pod.metadata.uid))
        if flight is None:
            return
        # A bound one is judged no more, and its shape is another one in any case.
        shape = None if pod.spec.node_name else flight.queued.shape
        flight.queued.replace_pod(pod)
        self.pre_binding.changed(flight.uid)
        if shape is None or flight.queued.shape != shape:
            # A pod that is judged otherwise now has seen nothing of the cluster yet.
            flight.changes_seen = -1

    def entries(self) -> tuple[InFlightEntry, ...]:
        return tuple(flight.entry() for flight in self._pods.values())

    def in_phase(self, phase: Phase) -> list[InFlightPod]:
        return [flight for flight in self._pods.values() if flight.phase is phase]

    def to_ask(self) -> Iterator[InFlightPod]:
        """Yield the pre-binding pods that may be told something new, longest in flight first.

        What comes of asking one may concern others: then these are yielded as well.
        """
        uids = self.pre_binding.occasion(self._number)
        while uids:
            for uid in uids:
                flight = self._pods.get(uid)
                if flight is not None and flight.phase is Phase.PRE_BINDING:
                    yield flight
            uids = self.pre_binding.rest(self._number)

    def _number(self, uid: PodUid) -> int:
        return self._pods[uid].number

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[InFlightPod]:
        return iter(list(self._pods.values()))
