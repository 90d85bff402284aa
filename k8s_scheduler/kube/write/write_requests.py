"""The writes that a pod waits for, as the calls they consist of.

Each call guards against hitting another object by mistake: an eviction names the victim's uid, a
change of an object the version that it was decided on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.http.protocol import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from k8s_scheduler.kube.resources import Resource
from k8s_scheduler.kube.timestamps import second_time


@dataclass(frozen=True, slots=True)
class WriteCall:
    """One call. With `gone_is_fine` the request is done if the object does not exist any more."""

    method: str
    path: str
    body: bytes
    content_type: str
    # The right it needs, as RBAC names it.
    resource: str
    gone_is_fine: bool = False
    # Of the object that is meant, where the call names it.
    uid: str = ""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Calls to be made one after the other, for one attempt at one pod."""

    uid: PodUid
    attempt: int
    request: int
    namespace: str
    calls: tuple[WriteCall, ...]


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """How a request ended, for good. `gone`: there was nothing left to write to."""

    uid: PodUid
    attempt: int
    request: int
    done: bool
    gone: bool = False
    message: str = ""


def eviction_calls(
    *,
    namespace: str,
    name: str,
    uid: PodUid,
    scheduler_name: str,
    observed_generation: int,
    wall_ns: int,
) -> tuple[WriteCall, ...]:
    condition: dict[str, object] = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler_name}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": second_time(wall_ns),
    }
    if observed_generation:
        condition["observedGeneration"] = observed_generation
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    status = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    return (
        WriteCall(
            "PATCH",
            f"{path}/status",
            msgspec.json.encode(status),
            STRATEGIC_MERGE_PATCH,
            "pods/status",
            gone_is_fine=True,
        ),
        WriteCall(
            "DELETE", path, msgspec.json.encode(options), JSON, "pods", gone_is_fine=True, uid=uid
        ),
    )


def nomination_calls(*, namespace: str, name: str, uid: PodUid) -> tuple[WriteCall, ...]:
    body = {"metadata": {"uid": uid}, "status": {"nominatedNodeName": None}}
    return (
        WriteCall(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            msgspec.json.encode(body),
            STRATEGIC_MERGE_PATCH,
            "pods/status",
            gone_is_fine=True,
        ),
    )


def object_calls(
    resource: Resource[Any], *, namespace: str, name: str, patch: Mapping[str, Any]
) -> tuple[WriteCall, ...]:
    return (
        WriteCall(
            "PATCH",
            resource.object_path(name, namespace=namespace),
            msgspec.json.encode(patch),
            MERGE_PATCH,
            resource.full_name,
        ),
    )
