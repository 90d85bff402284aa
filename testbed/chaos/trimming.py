"""What of an object as etcd has it the auditor keeps."""

from collections.abc import Mapping
from typing import Any

from testbed.chaos.evidence import EventSeen, LeaseSeen, NodeSeen, PodSeen, Seen
from testbed.chaos.resources import NOTHING, Room
from testbed.workload import ZONE_LABEL

Object = Mapping[str, Any]

_PODS = "/registry/pods/"
_NODES = "/registry/minions/"
_EVENTS = "/registry/events/"
LEASE_KEY = "/registry/leases/kube-system/k8s-scheduler"
_SHUT_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def trim(key: str, item: Object) -> Seen | None:
    """Return what is kept of an object; None if it is of no interest."""
    if key.startswith(_PODS):
        return _pod(item)
    if key.startswith(_NODES):
        return _node(item)
    if key.startswith(_EVENTS):
        return _event(item)
    if key == LEASE_KEY:
        return LeaseSeen(item.get("spec", {}).get("holderIdentity") or "")
    return None


def is_kept(key: str) -> bool:
    """Return whether anything is kept of objects with this key."""
    return key.startswith((_PODS, _NODES, _EVENTS)) or key == LEASE_KEY


def _pod(item: Object) -> PodSeen:
    metadata, spec, status = item["metadata"], item["spec"], item.get("status", {})
    asks = NOTHING
    for container in spec["containers"]:
        asks += Room.of(container.get("resources", {}).get("requests", {}), pods=0)
    scheduled = ("", "", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled":
            texts = (condition.get("reason", ""), condition.get("message", ""))
            scheduled = (condition["status"], *texts)
    return PodSeen(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        scheduler=spec.get("schedulerName", ""),
        node=spec.get("nodeName", ""),
        asks=asks + Room(pods=1),
        zone=(spec.get("nodeSelector") or {}).get(ZONE_LABEL, ""),
        finished=status.get("phase") in {"Succeeded", "Failed"},
        leaving="deletionTimestamp" in metadata,
        gated=bool(spec.get("schedulingGates")),
        scheduled=scheduled,
    )


def _node(item: Object) -> NodeSeen:
    metadata, spec = item["metadata"], item.get("spec", {})
    shut = any(taint["effect"] in _SHUT_EFFECTS for taint in spec.get("taints") or ())
    return NodeSeen(
        name=metadata["name"],
        has=Room.of(item.get("status", {}).get("allocatable", {})),
        zone=(metadata.get("labels") or {}).get(ZONE_LABEL, ""),
        open=not shut and not spec.get("unschedulable") and "deletionTimestamp" not in metadata,
    )


def _event(item: Object) -> EventSeen:
    # Stored as core/v1, whatever API it was written through.
    series = item.get("series") or {}
    return EventSeen(
        uid=item.get("involvedObject", {}).get("uid", ""),
        reason=item.get("reason", ""),
        note=item.get("message", ""),
        reporter=item.get("reportingComponent", ""),
        count=int(series.get("count", 1)),
    )
