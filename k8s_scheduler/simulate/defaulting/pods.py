"""Defaults of pods: containers, ports, requests, volumes."""

from typing import Any, Final

from k8s_scheduler.api.pod import DEFAULT_SCHEDULER_NAME
from k8s_scheduler.simulate.defaulting.resources import (
    rounded,
    with_pod_level_requests,
    with_requests_from_limits,
)

_DEFAULT_PROTOCOL: Final = "TCP"
_DEFAULT_RBD_POOL: Final = "rbd"
# Of what a running pod was given only the rounding is the API's.
_STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses")


def defaulted_pod(raw: dict[str, Any]) -> dict[str, Any]:
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    on_host = spec.get("hostNetwork") is True
    filled = dict(spec)
    for part in ("containers", "initContainers"):
        if isinstance(spec.get(part), list):
            filled[part] = [_container(c, on_host=on_host) for c in spec[part]]
    if isinstance(spec.get("volumes"), list):
        filled["volumes"] = [_volume(v) for v in spec["volumes"]]
    if spec.get("overhead"):
        filled["overhead"] = rounded(spec["overhead"])
    if not spec.get("schedulerName"):
        filled["schedulerName"] = DEFAULT_SCHEDULER_NAME
    return _status(raw | {"spec": with_pod_level_requests(filled)})


def _container(container: Any, *, on_host: bool) -> Any:
    if not isinstance(container, dict):
        return container
    filled = dict(container)
    if container.get("resources"):
        filled["resources"] = with_requests_from_limits(container["resources"])
    if isinstance(container.get("ports"), list):
        filled["ports"] = [_port(p, on_host=on_host) for p in container["ports"]]
    return filled


def _port(port: Any, *, on_host: bool) -> Any:
    if not isinstance(port, dict):
        return port
    filled = dict(port)
    if not port.get("protocol"):
        filled["protocol"] = _DEFAULT_PROTOCOL
    if on_host and not port.get("hostPort") and port.get("containerPort"):
        filled["hostPort"] = port["containerPort"]
    return filled


def _volume(volume: Any) -> Any:
    rbd = volume.get("rbd") if isinstance(volume, dict) else None
    if not isinstance(rbd, dict) or rbd.get("pool"):
        return volume
    return volume | {"rbd": rbd | {"pool": _DEFAULT_RBD_POOL}}


def _status(raw: dict[str, Any]) -> dict[str, Any]:
    status = raw.get("status")
    if not isinstance(status, dict):
        return raw
    filled = _given(status)
    for part in _STATUS_LISTS:
        if isinstance(status.get(part), list):
            filled = filled | {part: [_given(s) for s in status[part]]}
    return raw if filled is status else raw | {"status": filled}


def _given(holder: Any) -> Any:
    if not isinstance(holder, dict):
        return holder
    if holder.get("allocatedResources"):
        holder = holder | {"allocatedResources": rounded(holder["allocatedResources"])}
    resources = holder.get("resources")
    if isinstance(resources, dict) and resources.get("requests"):
        requests = rounded(resources["requests"])
        holder = holder | {"resources": resources | {"requests": requests}}
    return holder
