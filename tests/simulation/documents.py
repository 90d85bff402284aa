"""Objects as JSON: pods and nodes in the shapes that plans use, and the small algebra of them.

Nothing here is shared with the daemon: amounts are read by rules of the simulation's own, for
amounts it has itself written (`cpu` in milli, nothing else).
"""

import datetime as dt
from functools import lru_cache

from tests.fakes.transport import Json

NAMESPACE = "sim"
# Where a webhook may be down. The names of its pods begin with g, and no others do.
GUARDED = "guarded"
OURS = "default-scheduler"
FOREIGN = "foreign-scheduler"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def timestamp(seconds: float) -> str:
    """Return virtual time as the API server writes times."""
    return _timestamp(int(seconds))


@lru_cache(maxsize=1024)
def _timestamp(seconds: int) -> str:
    return (EPOCH + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def merged(content: Json, patch: Json) -> Json:
    """Return a merge of a patch; only what changes is copied, nothing is changed in place."""
    result = dict(content)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            current = result.get(name)
            result[name] = merged(current if isinstance(current, dict) else {}, value)
        elif name == "conditions":
            by_type = {entry["type"]: entry for entry in result.get(name) or []}
            by_type.update({entry["type"]: entry for entry in value})
            result[name] = list(by_type.values())
        else:
            result[name] = value
    return result


def node(name: str, *, zone: str, milli_cpu: int, pods: int) -> Json:
    """Return a node."""
    allocatable = {"cpu": f"{milli_cpu}m", "memory": "16Gi", "pods": str(pods)}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone}},
        "spec": {},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def pod(
    name: str,
    *,
    milli_cpu: int,
    app: str = "x",
    scheduler: str = OURS,
    namespace: str = NAMESPACE,
    **spec: object,
) -> Json:
    """Return a pending pod."""
    resources = {"requests": {"cpu": f"{milli_cpu}m"}}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def selecting(app: str) -> Json:
    return {"matchLabels": {"app": app}}


def spread(app: str, *, key: str = ZONE) -> Json:
    """Return a spec that keeps an app's pods even over domains."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selecting(app),
    }
    return {"topologySpreadConstraints": [constraint]}


def near(app: str, *, apart: bool, key: str) -> Json:
    """Return a spec that wants to be with an app's pods, or apart from them."""
    term = {"labelSelector": selecting(app), "topologyKey": key}
    side = "podAntiAffinity" if apart else "podAffinity"
    return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def with_claim(claim: str) -> Json:
    """Return a spec that mounts a claim."""
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def milli_cpu_of(content: Json) -> int:
    """Return what a pod asks for."""
    containers = content["spec"]["containers"]
    return sum(int(c["resources"]["requests"]["cpu"].removesuffix("m")) for c in containers)


def room_of(content: Json) -> tuple[int, int]:
    """Return a node's allocatable cpu and number of pods."""
    offered = content["status"]["allocatable"]
    return int(offered["cpu"].removesuffix("m")), int(offered["pods"])


def is_ours(content: Json) -> bool:
    return bool(content["spec"].get("schedulerName") == OURS)


def is_over(content: Json) -> bool:
    """Return whether a pod has finished."""
    return content["status"].get("phase") in ("Succeeded", "Failed")


def node_of(content: Json) -> str:
    return str(content["spec"].get("nodeName", ""))


def priority_of(content: Json) -> int:
    return int(content["spec"].get("priority", 0))


def key_of(content: Json) -> str:
    metadata = content["metadata"]
    space = metadata.get("namespace", "")
    return f"{space}/{metadata['name']}" if space else str(metadata["name"])


def uid_of(content: Json) -> str:
    return str(content["metadata"]["uid"])
