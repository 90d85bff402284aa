"""Simulated nodes and the pods to put on them, as the JSON the API server takes.

A node is posted with its status, Ready included: that is what a kubelet would have reported, and
with kwok it saves a round of status writes per node. Builders return plain dictionaries, so a
test changes what it needs; nothing here talks to the server but `create_all`.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from testbed.client import Client, Object

NODES = "/api/v1/nodes"
ZONE_LABEL = "topology.kubernetes.io/zone"
HOSTNAME_LABEL = "kubernetes.io/hostname"

_IMAGE = "pause:3.10"  # never pulled: nothing here runs containers


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of pod: what makes it differ from others for a scheduler."""

    name: str
    cpu: str
    memory: str


# A mix in which small pods fill the gaps that the big ones leave.
SHAPES = (
    Shape(name="web", cpu="250m", memory="256Mi"),
    Shape(name="api", cpu="500m", memory="1Gi"),
    Shape(name="worker", cpu="1", memory="512Mi"),
    Shape(name="cache", cpu="200m", memory="2Gi"),
)


def make_node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    ready: bool = True,
    zone: str | None = None,
    extended_resources: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> Object:
    """Return a node that has all it says it has to give."""
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods)} | dict(extended_resources or {})
    own_labels = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
    }
    spec: Object = {}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": own_labels | ({ZONE_LABEL: zone} if zone else {}) | dict(labels or {}),
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},  # kwok answers for every kubelet
                {"type": "Hostname", "address": name},
            ],
            "phase": "Running",  # kwok keeps up the heartbeat of nodes in this phase only
            "conditions": [_ready_condition(ready=ready, now=now or datetime.now(tz=UTC))],
        },
    }


def make_nodes(
    count: int, *, prefix: str = "node", zones: int = 3, cpu: str = "8", memory: str = "32Gi"
) -> list[Object]:
    """Return equal nodes, dealt round over the zones."""
    width = len(str(max(count - 1, 0)))
    return [
        make_node(
            f"{prefix}-{index:0{width}d}", cpu=cpu, memory=memory, zone=f"zone-{index % zones}"
        )
        for index in range(count)
    ]


def make_pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str | None = "100m",
    memory: str | None = "64Mi",
    scheduler_name: str | None = None,
    node_name: str | None = None,
    labels: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
    priority_class: str | None = None,
) -> Object:
    """Return a pod of one container; `cpu=None` and `memory=None` ask for nothing."""
    requests = {key: text for key, text in (("cpu", cpu), ("memory", memory)) if text}
    container: Object = {"name": "main", "image": _IMAGE}
    if requests:
        container["resources"] = {"requests": requests}
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 1}
    chosen: Object = {
        "schedulerName": scheduler_name,
        "nodeName": node_name,
        "nodeSelector": dict(node_selector) if node_selector else None,
        "tolerations": [dict(toleration) for toleration in tolerations] or None,
        "priorityClassName": priority_class,
    }
    spec |= {key: value for key, value in chosen.items() if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": spec,
    }


def make_pods(
    count: int,
    *,
    namespace: str = "default",
    scheduler_name: str | None = None,
    shapes: Sequence[Shape] = SHAPES,
) -> list[Object]:
    """Return pods dealt round over the shapes, labelled `app: <shape>` as a Deployment does."""
    pods = []
    for index in range(count):
        shape = shapes[index % len(shapes)]
        pods.append(
            make_pod(
                f"{shape.name}-{index}",
                namespace=namespace,
                cpu=shape.cpu,
                memory=shape.memory,
                scheduler_name=scheduler_name,
                labels={"app": shape.name},
            )
        )
    return pods


def make_deployments(
    pods: int,
    *,
    namespace: str = "default",
    scheduler_name: str | None = None,
    shapes: Sequence[Shape] = SHAPES,
) -> list[Object]:
    """Return a Deployment for each shape; together they want so many pods."""
    made = []
    for index, shape in enumerate(shapes):
        replicas = pods // len(shapes) + (index < pods % len(shapes))
        labels = {"app": shape.name}
        pod = make_pod(
            shape.name,
            cpu=shape.cpu,
            memory=shape.memory,
            scheduler_name=scheduler_name,
            labels=labels,
        )
        made.append(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": shape.name, "namespace": namespace, "labels": labels},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
                },
            }
        )
    return made


def make_binding(pod: Object, node_name: str) -> Object:
    """Return the Binding that puts a created pod on a node."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }


def collection_path(item: Object) -> str:
    """Return where a node or pod is created and listed."""
    if item["kind"] == "Node":
        return NODES
    return f"/api/v1/namespaces/{item['metadata']['namespace']}/pods"


def object_path(item: Object) -> str:
    """Return where a node or pod is read, changed and deleted."""
    return f"{collection_path(item)}/{item['metadata']['name']}"


def create_all(client: Client, objects: Iterable[Object], *, threads: int = 4) -> list[Object]:
    """Create nodes or pods in parallel; return what the server made of them, in order."""
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="create") as pool:
        return list(pool.map(lambda item: client.create(collection_path(item), item), objects))


def _ready_condition(*, ready: bool, now: datetime) -> Object:
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "",
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }
