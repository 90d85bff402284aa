"""The others: ordinary nodes, workloads and pods, as a cluster has them beside a tenant."""

from collections.abc import Iterator

from tests.as_made import as_made
from tests.fuzz.at_limits.api_rules import Raw, expression
from tests.fuzz.at_limits.pod_parts import HOST, NODE_KEYS, OTHERS_APPS, RACK, REQUIRED, ZONE

NAMESPACES = ("shop", "bank")
# More important than most tenants are to the cluster, so that they are not preempted.
PRIORITY = 1000
_IMAGES = 20


def standing_node(i: int) -> Raw:
    """Return a node as a cloud has it."""
    labels = {HOST: f"node-{i}", ZONE: f"zone-{i % 3}", RACK: f"rack-{i // 20}"}
    labels |= dict.fromkeys(NODE_KEYS[3:], f"f{i % 4}")
    offered = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    if i % 10 == 0:
        offered["example.com/gpu"] = "8"
    images = [
        {"names": [f"registry.example.com/base-{(i + k) % 40}:v1"], "sizeBytes": 50_000_000}
        for k in range(_IMAGES)
    ]
    return {
        "metadata": {"name": f"node-{i}", "uid": f"uid-node-{i}", "labels": labels},
        "spec": {},
        "status": {
            "capacity": dict(offered),
            "allocatable": offered,
            "images": images,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def surroundings(nodes: int) -> Iterator[tuple[str, Raw]]:
    """Yield what there is besides pods."""
    for i in range(nodes):
        yield "Node", standing_node(i)
        drivers = [{"name": "csi.example.com", "nodeID": "n", "allocatable": {"count": 30}}]
        metadata = {"name": f"node-{i}", "uid": f"c{i}"}
        yield "CSINode", {"metadata": metadata, "spec": {"drivers": drivers}}
    yield (
        "StorageClass",
        {
            "metadata": {"name": "fast"},
            "provisioner": "csi.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    for namespace in (*NAMESPACES, *(f"tenant-{i}" for i in range(7))):
        labels = {"kubernetes.io/metadata.name": namespace}
        yield "Namespace", {"metadata": {"name": namespace, "labels": labels}}
    for namespace in NAMESPACES:
        yield from _workloads(namespace)


def _workloads(namespace: str) -> Iterator[tuple[str, Raw]]:
    for app in OTHERS_APPS:
        metadata = {"name": app, "namespace": namespace, "uid": f"{namespace}-{app}"}
        yield "Service", {"metadata": metadata, "spec": {"selector": {"app": app}}}
        selector = {"matchLabels": {"app": app}}
        yield "ReplicaSet", {"metadata": metadata, "spec": {"selector": selector}}
        yield (
            "PodDisruptionBudget",
            {
                "metadata": metadata,
                "spec": {"selector": selector, "minAvailable": 1},
                "status": {"disruptionsAllowed": 1},
            },
        )
    claim = {"name": "data", "namespace": namespace, "uid": f"{namespace}-data"}
    reach = [{"matchExpressions": [expression(ZONE, "In", "zone-1")]}]
    yield (
        "PersistentVolume",
        {
            "metadata": {"name": f"{namespace}-data"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "fast",
                "csi": {"driver": "csi.example.com", "volumeHandle": f"{namespace}-data"},
                "claimRef": {"kind": "PersistentVolumeClaim", **claim},
                "nodeAffinity": {"required": {"nodeSelectorTerms": reach}},
            },
            "status": {"phase": "Bound"},
        },
    )
    yield (
        "PersistentVolumeClaim",
        {
            "metadata": {**claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "fast",
                "volumeName": f"{namespace}-data",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        },
    )


def _plain(app: str, milli_cpu: int = 100) -> Raw:
    requests = {"cpu": f"{milli_cpu}m", "memory": "64Mi"}
    return {
        "metadata": {
            "labels": {"app": app},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": app,
                    "uid": app,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": PRIORITY,
            "containers": [
                {
                    "name": "c",
                    "image": "registry.example.com/base-3:v1",
                    "resources": {"requests": requests},
                }
            ],
        },
        "status": {"phase": "Pending"},
    }


def _spread() -> Raw:
    raw = _plain(OTHERS_APPS[1])
    raw["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 5,
            "topologyKey": key,
            "whenUnsatisfiable": word,
            "labelSelector": {"matchLabels": {"app": OTHERS_APPS[1]}},
        }
        for key, word in ((ZONE, "DoNotSchedule"), (HOST, "ScheduleAnyway"))
    ]
    return raw


def _apart() -> Raw:
    raw = _plain(OTHERS_APPS[2])
    selector = {"matchLabels": {"app": OTHERS_APPS[2]}}
    terms = [{"topologyKey": HOST, "labelSelector": selector}]
    raw["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: terms}}
    return raw


def _in_a_zone() -> Raw:
    raw = _plain(OTHERS_APPS[3])
    terms = [{"matchExpressions": [expression(ZONE, "In", "zone-0", "zone-2")]}]
    raw["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return raw


def _with_data() -> Raw:
    raw = _plain(OTHERS_APPS[4])
    raw["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return raw


SHAPES = 6


def neighbour(shape: int, number: int, name: str) -> Raw:
    """Return a pod of others; the last shape is one that was never seen before."""
    makers = (lambda: _plain(OTHERS_APPS[0]), _spread, _apart, _in_a_zone, _with_data)
    fresh = shape >= len(makers)
    raw = _plain(OTHERS_APPS[5], 10 + number % 900) if fresh else makers[shape]()
    namespace = NAMESPACES[number % len(NAMESPACES)]
    raw["metadata"].update(name=name, namespace=namespace, uid=f"uid-{name}")
    made = as_made(raw, name, number)
    # The watch that shows it says under which version.
    del made["metadata"]["resourceVersion"]
    return made
