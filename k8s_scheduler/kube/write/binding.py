"""Bindings: what is asked for, how it can end, and what the server's answers mean.

A Binding POST gives a pod its node, once: the server refuses a second one, refuses
another uid, refuses a pod that is being deleted. So a POST to the same node may be repeated
without harm, and reading the pod tells how an earlier one ended.

Nothing here waits or sends. `bind_machine` decides what to do next, `dispatcher` does it.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto

import msgspec

from k8s_scheduler.api.meta import NodeName, PodUid, Wire
from k8s_scheduler.api.pod import SchedulingGate
from k8s_scheduler.kube.errors import UNREADABLE
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.response_meaning import is_missing, is_passing


class BindRequest(msgspec.Struct, frozen=True):
    """Bind this pod to that node. `attempt` is in the outcome, to tell a stale one."""

    uid: PodUid
    namespace: str
    name: str
    node: NodeName
    attempt: int
    annotations: Mapping[str, str] | None = None


class BindFailure(StrEnum):
    """Why a pod is certainly not on our node, and will not be by any request of ours."""

    NOT_LEADING = "not leading"
    NOT_ACCEPTED = "not accepted"
    NOT_SENT = "not sent"
    REFUSED = "refused"
    CONFLICT = "conflict"
    GONE = "gone"  # reading it has shown so
    ASSIGNED_ELSEWHERE = "assigned elsewhere"
    BEING_DELETED = "being deleted"
    GATED = "gated"
    # Sent without a usable answer, and read unbound when no such request can be alive any more.
    NOT_EXECUTED = "not executed"
    # Never sent: too many binds of its namespace are in doubt.
    HELD_BACK = "held back"


class BindOutcome(msgspec.Struct, frozen=True):
    """How a bind ended, for certain. `message` is the server's own where it gave one."""

    uid: PodUid
    attempt: int
    node: NodeName
    bound: bool
    reason: BindFailure | None = None
    message: str = ""


class Posted(Enum):
    """What the answer to a Binding POST amounts to."""

    BOUND = auto()
    CONFLICT = auto()  # not executed; the pod says why
    THROTTLED = auto()  # not executed; the server wants the same request later
    GONE = auto()
    REFUSED = auto()
    NOT_SENT = auto()
    UNKNOWN = auto()  # executed, or not, or still to be


class PodSeen(Enum):
    """What reading the pod shows."""

    ON_OUR_NODE = auto()
    ASSIGNED_ELSEWHERE = auto()
    BEING_DELETED = auto()
    GONE = auto()
    GATED = auto()
    UNBOUND = auto()
    REFUSED = auto()  # we may not look
    UNKNOWN = auto()


class PostAnswer(msgspec.Struct, frozen=True):
    """A classified answer to a POST."""

    kind: Posted
    message: str = ""
    retry_after_seconds: float | None = None
    # Whether the server said anything at all.
    heard: bool = True
    # Whether an UNKNOWN answer leaves it open that the request is executed; see `is_unstored`.
    may_land: bool = True


class ReadAnswer(msgspec.Struct, frozen=True):
    """A classified answer to a GET."""

    kind: PodSeen
    message: str = ""
    # Whether the server said anything at all.
    heard: bool = True


class _Metadata(Wire, frozen=True, gc=False):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(Wire, frozen=True, gc=False):
    node_name: str = ""
    scheduling_gates: list[SchedulingGate] | None = None


class _Pod(Wire, frozen=True, gc=False):
    metadata: _Metadata
    spec: _Spec


_decode_pod = msgspec.json.Decoder(_Pod).decode

# How the API server words it when admission ends a request.
_ADMISSION = (
    'Internal error occurred: failed calling webhook "',
    'admission webhook "',
)

# What nearly all of them are.
_BOUND = PostAnswer(Posted.BOUND)

_POSTED_BY_STATUS = {
    200: Posted.BOUND,
    201: Posted.BOUND,
    404: Posted.GONE,
    408: Posted.UNKNOWN,  # a proxy's: it says nothing about what the server did
    409: Posted.CONFLICT,
    429: Posted.THROTTLED,
}


def pod_path(request: BindRequest) -> str:
    return f"/api/v1/namespaces/{request.namespace}/pods/{request.name}"


def encode_binding(request: BindRequest) -> bytes:
    """Return the body of the POST; the uid makes the server refuse a namesake."""
    metadata: dict[str, object] = {
        "name": request.name,
        "namespace": request.namespace,
        "uid": request.uid,
    }
    if request.annotations:
        metadata["annotations"] = dict(request.annotations)
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": request.node},
        }
    )


def judge_post(response: Response) -> PostAnswer:
    kind = _POSTED_BY_STATUS.get(response.status)
    if kind is Posted.BOUND:
        return _BOUND
    if kind is None:
        refused = 300 <= response.status < 500
        kind = Posted.REFUSED if refused else Posted.UNKNOWN
    error = response.error()
    message = str(error.message)
    may_land = kind is Posted.UNKNOWN and not is_unstored(response)
    return PostAnswer(kind, message, error.retry_after_seconds, may_land=may_land)


def is_unstored(response: Response) -> bool:
    """Return whether the API server says that it gave a request up before storing anything.

    Admission runs before storage: a `Status` about a webhook that could not be called, or that
    denied the request with a code of its own choice, ends a request that never reached etcd.
    """
    error = response.error()
    return bool(error.reason) and error.message.startswith(_ADMISSION)


def judge_read(response: Response, request: BindRequest) -> ReadAnswer:
    if not response.ok:
        message = response.error().message
        if is_missing(response):
            return ReadAnswer(PodSeen.GONE, message)
        return ReadAnswer(PodSeen.UNKNOWN if is_passing(response) else PodSeen.REFUSED, message)
    try:
        pod = _decode_pod(response.body)
    except UNREADABLE as error:
        return ReadAnswer(PodSeen.UNKNOWN, str(error))
    return _judge_pod(pod, request)


def _judge_pod(pod: _Pod, request: BindRequest) -> ReadAnswer:
    # The order matters: a pod on our node is ours even while it is being deleted.
    if pod.metadata.uid != request.uid:
        return ReadAnswer(PodSeen.GONE, f"pod {request.name} was replaced by one of another uid")
    if pod.spec.node_name == request.node:
        return ReadAnswer(PodSeen.ON_OUR_NODE)
    if pod.spec.node_name:
        return ReadAnswer(
            PodSeen.ASSIGNED_ELSEWHERE,
            f'pod {request.name} is already assigned to node "{pod.spec.node_name}"',
        )
    if pod.metadata.deletion_timestamp:
        return ReadAnswer(
            PodSeen.BEING_DELETED,
            f"pod {request.name} is being deleted, cannot be assigned to a host",
        )
    if pod.spec.scheduling_gates:
        return ReadAnswer(PodSeen.GATED, f"pod {request.name} has non-empty .spec.schedulingGates")
    return ReadAnswer(PodSeen.UNBOUND)
