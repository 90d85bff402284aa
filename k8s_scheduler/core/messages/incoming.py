"""Everything the core is ever told.

Each message carries the time at which it was made, in seconds; the core has no other clock.
Objects are shared with the informers and never changed. Old versions do not travel: the core
keeps what it knows, so a message cannot contradict it, and a recording stays small.
"""

from typing import Any, Final, TypeAlias

import msgspec

from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.checkpoint import Checkpoint


class _Message(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    now: float


class PodChanged(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """A pod was added or changed; without `pod`, it is gone (deleted or finished)."""

    uid: PodUid
    pod: Pod | None


class NodeChanged(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """A node was added or changed; without `node`, it is gone."""

    name: NodeName
    node: Node | None


class ObjectChanged(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """An object of another kind was added or changed; without `object`, it is gone.

    `object` is of the type that belongs to `kind`; `read` makes it so after decoding.
    """

    kind: Kind
    namespace: str
    name: str
    object: Any

    def read(self) -> ClusterObject | None:
        if self.object is None:
            return None
        return msgspec.convert(self.object, self.kind.type)


class Schedule(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Decide for at most `limit` pods now; with 0, only see who may be tried."""

    limit: int


class Tick(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Time has passed: look at the timers."""


class BindResult(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """The definite outcome of a `Bind`. Unknown outcomes are resolved before they come here."""

    uid: PodUid
    attempt: int
    node: NodeName
    bound: bool
    message: str = ""


# What a `RequestResult` says of a victim that was gone already.
VICTIM_GONE: Final = "NotFound"


class RequestResult(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """The definite outcome of a request that a pod waits for."""

    uid: PodUid
    attempt: int
    request: int
    done: bool
    message: str = ""


class PodRead(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """A pod as the API server has it, read when asked for; without `pod`, it is gone."""

    uid: PodUid
    attempt: int
    pod: Pod | None


class Recount(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Add up anew what pods take on some nodes: `count` rows of the table from `first` on."""

    first: int
    count: int


class HoldBack(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Decide for no pod of these namespaces until told otherwise; it takes the place of the last.

    As many bindings as one namespace may have are under way, some of them without a known outcome.
    """

    namespaces: tuple[str, ...]


class StorageSetBack(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """The API server's storage was restored from an older snapshot, and all was listed since.

    What it had agreed to before may not be so: bindings and deletions that no watch has shown yet.
    """


class LimitCaches(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Take no more memory than this for what is kept of pods' shapes; decisions stay the same."""

    max_bytes: int


class ExtenderAnswer(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """What an extender said. `error`: nothing, and why. `nodes`: those that can do."""

    uid: PodUid
    attempt: int
    request: int
    error: str = ""
    nodes: tuple[NodeName, ...] = ()
    refused: dict[NodeName, str] = {}
    unresolvable: dict[NodeName, str] = {}
    scores: dict[NodeName, int] = {}


class QueueSettings(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is configurable about waiting, as data: a `core.queue` QueuePolicy."""

    initial_backoff_seconds: float
    maximum_backoff_seconds: float
    parked_limit_seconds: float
    max_attempts: int | None = None
    renewals_per_second: int = 0


class Reconfigure(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Decide by another configuration from now on; one that can't be run changes nothing.

    Pods that are served from now on and were not before are told of afterwards, as `PodChanged`; so
    are placed pods and nodes of which more or less counts by other limits.
    """

    profiles: tuple[ResolvedProfile, ...]
    queue: QueueSettings
    pod_limits: PodLimits = PodLimits()
    node_limits: NodeLimits = NodeLimits()
    # 0 is no limit.
    max_victims_per_minute: int = 0


class Quarantine(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Try some pods last and alone: so many processes ended while they tried them."""

    deaths: dict[PodUid, int]


class Restore(_Message, frozen=True, gc=False, array_like=True, tag=True):
    """Become what a checkpoint says; only an empty core can."""

    checkpoint: Checkpoint


Message: TypeAlias = (
    PodChanged
    | NodeChanged
    | ObjectChanged
    | Schedule
    | Tick
    | BindResult
    | RequestResult
    | ExtenderAnswer
    | Reconfigure
    | PodRead
    | Recount
    | HoldBack
    | Quarantine
    | StorageSetBack
    | LimitCaches
    | Restore
)
