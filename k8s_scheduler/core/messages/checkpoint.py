"""The core's whole state as data, so that a recording can be cut into segments.

Rows and sequence numbers are part of it: ties are broken by row, and equal pods are popped by
sequence, so a core restored from a checkpoint decides exactly as the one it was taken from.
"""

import enum
from typing import Any, TypeVar

import msgspec

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod


class _Part(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Base of the parts: compact on the wire, invisible to the garbage collector."""


Entry = TypeVar("Entry", bound=_Part)


def as_entry(kind: type[Entry], part: object, **others: Any) -> Entry:
    """Return a part of the core as data, from its fields that have the names of the entry's.

    Containers that the core goes on changing are copied. `others` are fields that have another form
    in the entry.
    """
    names = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: _copied(getattr(part, name)) for name in names}, **others)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, set):
        return tuple(sorted(value))
    if isinstance(value, list):
        return tuple(value)
    return value.value if isinstance(value, enum.StrEnum) else value


class NodeEntry(_Part, frozen=True, gc=False, array_like=True):
    """A row in use; without `node`, only its pods are known."""

    row: int
    name: NodeName
    node: Node | None


class PodEntry(_Part, frozen=True, gc=False, array_like=True):
    """A bound or assumed pod."""

    row: int
    pod: Pod
    assumed: bool


class ObjectEntry(_Part, frozen=True, gc=False, array_like=True):
    """An object of another kind, and what it is assumed to be; both of `kind`'s type."""

    kind: Kind
    namespace: str
    name: str
    object: Any
    assumed: Any


class NominationEntry(_Part, frozen=True, gc=False, array_like=True):
    """A pod that is promised room."""

    node: NodeName
    pod: Pod


class QueueEntry(_Part, frozen=True, gc=False, array_like=True):
    """A pending pod, wherever it waits; `place` is a `core.queue.queued_pod.QueuePlace`."""

    pod: Pod
    place: str
    timestamp: float
    first_active: float | None
    attempts: int
    unschedulable_count: int
    consecutive_errors: int
    rejectors: tuple[str, ...]
    sequence: int
    backoff_expiry: float
    seen: int
    told: int = 0
    renewable_at: float = 0.0


class InFlightEntry(_Part, frozen=True, gc=False, array_like=True):
    """A pod in flight; `phase` is a `core.engine.pods.in_flight.Phase`."""

    queued: QueueEntry
    node: NodeName
    started: float
    phase: str
    notes: dict[str, Any]
    permits: dict[str, tuple[float, float]]
    step: int
    deadline: float
    errand: tuple[str, str]
    requests: tuple[int, ...]
    objects: tuple[tuple[Kind, str, str], ...]
    changes_seen: int
    told: bool = False
    # The configuration that it goes by: the one in force when it set out.
    generation: int = 0


class PreemptionEntry(_Part, frozen=True, gc=False, array_like=True):
    """A preemption under way."""

    uid: PodUid
    attempt: int
    namespace: str
    name: str
    scheduler_name: str
    node: NodeName
    victims: tuple[tuple[str, str, PodUid], ...]
    others: tuple[tuple[str, str, PodUid], ...]
    stage: int
    requests: dict[int, PodUid]
    failed: bool
    stopped: bool
    plugin: str = ""
    generations: tuple[int, ...] = ()
    joined: tuple[PodUid, ...] = ()
    last_in_memory: bool = False


class UnconfirmedEntry(_Part, frozen=True, gc=False, array_like=True):
    """A pod that was bound and that the watch has not shown on its node yet.

    It is read when that is `due`, and `wait_seconds` after that again.
    """

    uid: PodUid
    namespace: str
    name: str
    attempt: int
    node: NodeName
    due: float
    wait_seconds: float
    asked: bool


class SuspensionEntry(_Part, frozen=True, gc=False, array_like=True):
    """A decision that waits for an extender."""

    queued: QueueEntry
    extenders: tuple[str, ...]
    verb: str
    position: int
    request: int
    started: float
    changes_seen: int
    allowed: tuple[NodeName, ...]
    refused: tuple[tuple[NodeName, str, bool], ...]
    bonus: dict[NodeName, int]


class ChangeEntry(_Part, frozen=True, gc=False, array_like=True):
    """A change that parked pods have not been judged against yet."""

    row: int
    change: int
    number: int


class ObjectChangeEntry(_Part, frozen=True, gc=False, array_like=True):
    """A change to objects that parked pods have not been judged against yet."""

    kind: Kind
    change: int
    number: int


class RenewalsEntry(_Part, frozen=True, gc=False, array_like=True):
    """How much may be judged and told at once so that reasons stay true, and as of when."""

    judgements: float
    judgements_at: float
    tellings: float
    tellings_at: float


class EarlierEntry(_Part, frozen=True, gc=False, array_like=True):
    """A configuration that is in force no more, and that pods on their way still go by."""

    generation: int
    profiles: tuple[ResolvedProfile, ...]


class OverLimitEntry(_Part, frozen=True, gc=False, array_like=True):
    """A pod that was told that it is past a limit, and what it was told."""

    uid: PodUid
    text: str


class QuarantineEntry(_Part, frozen=True, gc=False, array_like=True):
    """A pod that is tried last: why, when at the earliest, and whether that time has come."""

    uid: PodUid
    deaths: int
    not_before: float
    is_due: bool


class VictimLimitEntry(_Part, frozen=True, gc=False, array_like=True):
    """How many victims are left of the minute's, when that was, and which pods wait for more."""

    left: float
    at: float | None
    waiting: tuple[tuple[PodUid, int], ...]


class Checkpoint(_Part, frozen=True, gc=False, array_like=True):
    """Everything `Restore` needs."""

    row_count: int
    nodes: tuple[NodeEntry, ...]
    pods: tuple[PodEntry, ...]
    objects: tuple[ObjectEntry, ...]
    nominations: tuple[NominationEntry, ...]
    queue: tuple[QueueEntry, ...]
    in_flight: tuple[InFlightEntry, ...]
    evictions: tuple[PreemptionEntry, ...]
    suspensions: tuple[SuspensionEntry, ...]
    changes: tuple[ChangeEntry, ...]
    object_changes: tuple[ObjectChangeEntry, ...]
    next_sequence: int
    last_backoff_flush: float
    last_parked_flush: float
    next_sampling_start: int
    last_request: int
    change_count: int
    # Victims of which the server has said that they leave, and that were not seen leaving yet.
    granted: tuple[PodUid, ...] = ()
    # The number of the configuration in force, which the checkpoint's owner knows, and older ones.
    generation: int = 0
    earlier: tuple[EarlierEntry, ...] = ()
    unconfirmed: tuple[UnconfirmedEntry, ...] = ()
    # Namespaces whose pods are passed over.
    held_back: tuple[str, ...] = ()
    over_limit: tuple[OverLimitEntry, ...] = ()
    quarantine: tuple[QuarantineEntry, ...] = ()
    victim_limit: VictimLimitEntry | None = None
    renewals: RenewalsEntry | None = None
