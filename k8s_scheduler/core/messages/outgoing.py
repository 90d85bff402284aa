"""Everything the core ever asks for.

An instruction names the pod's uid and the attempt it belongs to; an answer for another attempt
is dropped. Instructions are wishes: the shell decides when to carry them out, never whether.
"""

import enum
from typing import Any, TypeAlias, TypedDict

import msgspec

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod


class EventType(enum.StrEnum):
    """The two types of Kubernetes events."""

    NORMAL = "Normal"
    WARNING = "Warning"


class _Instruction(msgspec.Struct, frozen=True, kw_only=True):
    uid: PodUid
    namespace: str
    name: str
    attempt: int


class PodAttempt(TypedDict):
    """What every instruction names, to be unpacked into its constructor."""

    uid: PodUid
    namespace: str
    name: str
    attempt: int


def attempt_at(pod: Pod, attempt: int) -> PodAttempt:
    metadata = pod.metadata
    return PodAttempt(
        uid=PodUid(metadata.uid),
        namespace=metadata.namespace,
        name=metadata.name,
        attempt=attempt,
    )


class Bind(_Instruction, frozen=True, kw_only=True):
    """Bind the pod to the node, and come back with a `BindResult`."""

    node: NodeName


class PatchCondition(_Instruction, frozen=True, kw_only=True):
    """Set PodScheduled=False with this reason and message."""

    reason: str
    message: str
    observed_generation: int
    # When the condition became False, if it is that already; None: it becomes so now.
    last_transition_time: str | None
    # Where the pod is promised room; None leaves the status as it is, the empty name clears it.
    nominated_node_name: NodeName | None = None


class Nominate(_Instruction, frozen=True, kw_only=True):
    """Say in the pod's status which node it is about to be bound to; no answer comes."""

    node: NodeName


class ReadPod(_Instruction, frozen=True, kw_only=True):
    """Read the pod, and come back with a `PodRead`; it is asked for again if none comes."""


class PodReference(msgspec.Struct, frozen=True):
    """A pod, for others to find."""

    namespace: str
    name: str
    uid: PodUid

    @staticmethod
    def of(pod: Pod) -> "PodReference":
        metadata = pod.metadata
        return PodReference(metadata.namespace, metadata.name, PodUid(metadata.uid))


class _Request(_Instruction, frozen=True, kw_only=True):
    """Something that has to succeed before its pod can go on: answered by a `RequestResult`."""

    request: int


class Evict(_Request, frozen=True, kw_only=True):
    """Make a victim leave its node for the pod: say so in its status, then delete it."""

    victim: PodReference
    scheduler_name: str
    # The victim's generation, which the condition is about.
    observed_generation: int = 0


class ClearNomination(_Request, frozen=True, kw_only=True):
    """Take back the promise that another pod's status still holds."""

    other: PodReference


class PatchObject(_Request, frozen=True, kw_only=True):
    """Change an object that the pod needs, if it is still of the version it was decided on."""

    kind: Kind
    object_namespace: str
    object_name: str
    # What to merge into the object; it names the version.
    patch: dict[str, Any]


class Verb(enum.StrEnum):
    """What an extender is asked for."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"


class AskExtender(_Request, frozen=True, kw_only=True):
    """Ask an extender about a pod and some nodes, and come back with an `ExtenderAnswer`."""

    extender: str
    verb: Verb
    nodes: tuple[NodeName, ...]


class RecordEvent(_Instruction, frozen=True, kw_only=True):
    """Tell users about the pod."""

    scheduler_name: str
    type: EventType
    reason: str
    action: str
    note: str
    # Another pod that has to do with it.
    related: "PodReference | None" = None


class Severity(enum.StrEnum):
    """How loud a `Log` is."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Log(msgspec.Struct, frozen=True):
    """Write a log line; the core has no logger of its own."""

    severity: Severity
    event: str
    fields: dict[str, str | int]


Request: TypeAlias = Evict | ClearNomination | PatchObject
Instruction: TypeAlias = (
    Bind | PatchCondition | Nominate | ReadPod | RecordEvent | Log | AskExtender | Request
)
