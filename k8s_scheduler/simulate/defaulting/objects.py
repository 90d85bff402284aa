"""What the API server fills in before a scheduler sees an object, as far as scheduling reads it.

Works on decoded JSON and never changes its input; what needs no default is shared with it. These
are the defaults of the API types alone: admission plugins (priorities, default tolerations,
limit ranges) and what a pod gets at creation besides (merged matchLabelKeys) are decided
elsewhere and have to be in the object already. One exception, because it is a default in all but
place: requests of a pod as a whole are completed from its limits and its containers.

An object of the wrong form is left as it is wherever it is wrong; decoding it into its type says
what the matter is.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from k8s_scheduler.api.kinds import BUILT_IN, Kind
from k8s_scheduler.api.pod import DEFAULT_SCHEDULER_NAME
from k8s_scheduler.simulate.defaulting.resources import (
    rounded,
    with_pod_level_requests,
    with_requests_from_limits,
)

RawObject: TypeAlias = dict[str, Any]

DEFAULT_NAMESPACE: Final = "default"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"

_NAMESPACED: Final = frozenset({"Pod", *(kind.name for kind in BUILT_IN if kind.namespaced)})
_DEFAULT_PROTOCOL: Final = "TCP"
_DEFAULT_RBD_POOL: Final = "rbd"
# Of what a running pod was given only the rounding is the API's.
_STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses")


def defaulted(raw: RawObject) -> RawObject:
    """Return the object with the API server's defaults; kinds that have none come back as is."""
    kind = raw.get("kind")
    fill = _DEFAULTS.get(kind) if isinstance(kind, str) else None
    filled = fill(raw) if fill else raw
    return _in_a_namespace(filled) if kind in _NAMESPACED else filled


def _in_a_namespace(raw: RawObject) -> RawObject:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return raw
    return raw | {"metadata": metadata | {"namespace": DEFAULT_NAMESPACE}}


def _pod(raw: dict[str, Any]) -> dict[str, Any]:
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    on_host = spec.get("hostNetwork") is True
    filled = dict(spec)
    for part in ("containers", "initContainers"):
        if isinstance(spec.get(part), list):
            filled[part] = [_container(c, on_host=on_host) for c in spec[part]]
    if isinstance(spec.get("volumes"), list):
        filled["volumes"] = [_pod_volume(v) for v in spec["volumes"]]
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


def _pod_volume(volume: Any) -> Any:
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


def _node(raw: RawObject) -> RawObject:
    status = raw.get("status")
    if not isinstance(status, dict):
        return raw
    offered = status.get("allocatable")
    offered = rounded(status.get("capacity") if offered is None else offered)
    if offered is status.get("allocatable"):
        return raw
    return raw | {"status": status | {"allocatable": offered}}


def _namespace(raw: RawObject) -> RawObject:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return raw
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return raw
    named = labels | {NAMESPACE_NAME_LABEL: metadata["name"]}
    return raw | {"metadata": metadata | {"labels": named}}


def _replication_controller(raw: RawObject) -> RawObject:
    spec = raw.get("spec")
    if not isinstance(spec, dict) or spec.get("selector"):
        return raw
    template = spec.get("template")
    metadata = template.get("metadata") if isinstance(template, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return raw | {"spec": spec | {"selector": labels}} if labels else raw


def _volume(raw: RawObject) -> RawObject:
    filled = _filled(raw, "spec", {"volumeMode": "Filesystem"})
    spec = filled.get("spec")
    if isinstance(spec, dict) and spec.get("capacity"):
        filled = filled | {"spec": spec | {"capacity": rounded(spec["capacity"])}}
    return _filled(filled, "status", {"phase": "Pending"})


def _claim(raw: RawObject) -> RawObject:
    filled = _filled(raw, "spec", {"volumeMode": "Filesystem"})
    resources = filled["spec"].get("resources") if isinstance(filled.get("spec"), dict) else None
    if isinstance(resources, dict) and resources.get("requests"):
        asked = resources | {"requests": rounded(resources["requests"])}
        filled = filled | {"spec": filled["spec"] | {"resources": asked}}
    return _filled(filled, "status", {"phase": "Pending"})


def _storage_class(raw: RawObject) -> RawObject:
    if raw.get("volumeBindingMode") is not None:
        return raw
    return raw | {"volumeBindingMode": "Immediate"}


def _csi_driver(raw: RawObject) -> RawObject:
    return _filled(raw, "spec", {"storageCapacity": False})


def _filled(raw: RawObject, part: str, defaults: Mapping[str, Any]) -> RawObject:
    given = raw.get(part)
    given = {} if given is None else given
    if not isinstance(given, dict):
        return raw
    lacking = {name: value for name, value in defaults.items() if given.get(name) in (None, "")}
    return raw | {part: given | lacking} if lacking else raw


_DEFAULTS: Final[Mapping[str, Callable[[RawObject], RawObject]]] = {
    "Pod": _pod,
    "Node": _node,
    Kind.NAMESPACE.name: _namespace,
    Kind.REPLICATION_CONTROLLER.name: _replication_controller,
    Kind.PERSISTENT_VOLUME.name: _volume,
    Kind.PERSISTENT_VOLUME_CLAIM.name: _claim,
    Kind.STORAGE_CLASS.name: _storage_class,
    Kind.CSI_DRIVER.name: _csi_driver,
}
