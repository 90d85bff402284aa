"""What a workload needs besides nodes and pods: priorities, services, volumes and claims."""

from collections.abc import Iterable

from testbed.bench.scenario_pods import NAMESPACE, PRIORITIES, claim_name
from testbed.client import Object
from testbed.workload import HOSTNAME_LABEL, make_node

STORAGE_CLASS = "bench-local"
_GIBIBYTE = {"storage": "1Gi"}
_ONCE = ["ReadWriteOnce"]


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number}"


def bench_node(number: int, *, zones: int) -> Object:
    """Return a node of scheduler_perf's default size, in a zone."""
    return make_node(
        node_name(number), cpu="4", memory="32Gi", pods=110, zone=f"zone-{number % zones}"
    )


def priority_class(name: str) -> Object:
    """Return one of the high priorities."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": PRIORITIES[name],
    }


def service(name: str, app: str) -> Object:
    """Return a service in front of an app."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"app": app},
            "ports": [{"protocol": "TCP", "port": 8080, "targetPort": 8080}],
        },
    }


def replica_set(app: str) -> Object:
    """Return the ReplicaSet of an app; it wants no pods, so that nobody makes any."""
    labels = {"app": app}
    container = {"name": "main", "image": "pause:3.10"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": app, "namespace": NAMESPACE},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def controlled(apps: Iterable[str]) -> list[Object]:
    """Return a service and a ReplicaSet for each app."""
    return [item for app in apps for item in (service(app, app), replica_set(app))]


def local_volumes(nodes: int, claims: int) -> list[Object]:
    """Return claims, and as many local volumes dealt round over the nodes: any claim can have any.

    Nobody makes volumes for this class, so a pod goes where one is left. Volumes have the phase
    that the controller manager gives them; the API server sets another one on creation.
    """
    storage_class: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [_volume(number, node_name(number % nodes)) for number in range(claims)]
    return [storage_class, *volumes, *(_claim(number) for number in range(claims))]


def _volume(number: int, node: str) -> Object:
    on_node = {"key": HOSTNAME_LABEL, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "capacity": _GIBIBYTE,
            "accessModes": _ONCE,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "volumeMode": "Filesystem",
            "local": {"path": f"/mnt/volume-{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        },
        "status": {"phase": "Available"},
    }


def _claim(number: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name(number), "namespace": NAMESPACE},
        "spec": {
            "accessModes": _ONCE,
            "storageClassName": STORAGE_CLASS,
            "volumeMode": "Filesystem",
            "resources": {"requests": _GIBIBYTE},
        },
    }


def full_node(name: str) -> Object:
    """Return a node that has room for no pod."""
    return make_node(name, pods=0)
