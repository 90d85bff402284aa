"""Everything the core ever asks for.

An instruction names the pod's uid and the attempt it belongs to; an answer for another attempt
is dropped. Instructions are wishes: the shell decides when to carry them out, never whether.
"""

import enum
from dataclasses import dataclass
from typing import TypeAlias

from k8s_scheduler.api.meta import NodeName, PodUid


class EventType(enum.StrEnum):
    """The two types of Kubernetes events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instruction:
    uid: PodUid
    namespace: str
    name: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(_Instruction):
    """Bind the pod to the node, and come back with a `BindResult`."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchCondition(_Instruction):
    """Set PodScheduled=False with this reason and message."""

    reason: str
    message: str
    observed_generation: int
    # When the condition became False, if it is that already; None: it becomes so now.
    last_transition_time: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvent(_Instruction):
    """Tell users about the pod."""

    scheduler_name: str
    type: EventType
    reason: str
    action: str
    note: str


class Severity(enum.StrEnum):
    """How loud a `Log` is."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Log:
    """Write a log line; the core has no logger of its own."""

    severity: Severity
    event: str
    fields: dict[str, str | int]


Instruction: TypeAlias = Bind | PatchCondition | RecordEvent | Log
