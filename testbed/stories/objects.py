"""The objects that stories are about, in as few words as they need."""

from collections.abc import Mapping
from typing import Any

from testbed.client import Object
from testbed.workload import HOSTNAME_LABEL, make_pod

CLAIMS = "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DRIVER = "csi.example.com"
BY_HAND = "kubernetes.io/no-provisioner"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(
    *,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Return a pod that asks for 100m of cpu and `requests`; the rest goes into its spec."""
    made = make_pod("named-by-its-story", memory=None, labels=labels)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"] |= dict(requests or {})
    resources["limits"] = {k: v for k, v in resources["requests"].items() if "/" in k}
    made["spec"] |= spec
    return made


def resident(name: str, node: str, **parts: Any) -> Object:
    """Return a pod that is on a node."""
    made = pod(**parts)
    made["metadata"]["name"] = name
    made["spec"] |= {"nodeName": node, "schedulerName": "nobody"}
    return made


def with_port(number: int, made: Object) -> Object:
    """Return a pod that wants a port of its host."""
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": number}]
    return made


def using(*claims: str, **parts: Any) -> Object:
    """Return a pod with these claims."""
    volumes = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}}
        for i, claim in enumerate(claims)
    ]
    return pod(volumes=volumes, **parts)


def near(key: str, **labels: str) -> Object:
    """Return an affinity: near pods with these labels."""
    return {"podAffinity": {REQUIRED: [_term(key, labels)]}}


def away(key: str, **labels: str) -> Object:
    """Return an affinity: away from pods with these labels."""
    return {"podAntiAffinity": {REQUIRED: [_term(key, labels)]}}


def _term(key: str, labels: Mapping[str, str]) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}


def on_nodes(key: str, operator: str, *values: str) -> Object:
    """Return a node affinity."""
    expression = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def named(node: str) -> Object:
    """Return a node affinity to one node by its name, as a DaemonSet makes it."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}


def spread(key: str, **more: Any) -> list[Object]:
    """Return a constraint that spreads pods of `app: web`."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return [constraint | more]


# Volumes


def claim(name: str, class_name: str, *, volume: str = "", mode: str = "ReadWriteOnce") -> Object:
    """Return a claim; with a volume, one that is bound to it, whether that is there or not."""
    metadata: Object = {"name": name}
    spec: Object = {
        "accessModes": [mode],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    if volume:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
    }
    return body | ({"status": {"phase": "Bound"}} if volume else {})


def volume(
    name: str,
    *,
    only_on: str = "",
    labels: Mapping[str, str] | None = None,
    mode: str = "ReadWriteOnce",
    size: str = "1Gi",
) -> Object:
    """Return a volume of the class `late`; reachable from one node only if that is named."""
    spec: Object = {
        "capacity": {"storage": size},
        "accessModes": [mode],
        "storageClassName": "late",
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    if only_on:
        match = {"key": HOSTNAME_LABEL, "operator": "In", "values": [only_on]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}}
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def storage_class(name: str, provisioner: str = BY_HAND, *, late: bool = True) -> Object:
    """Return a class whose claims are bound late, or at once."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if late else "Immediate",
    }


def csi_node(name: str, count: int) -> Object:
    """Return how many volumes a node takes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "allocatable": {"count": count}}]},
    }


def priority_class(name: str, value: int, **more: Any) -> tuple[str, Object]:
    """Return a priority, and where it is created."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return PRIORITIES, kind | {"metadata": {"name": name}, "value": value} | more
