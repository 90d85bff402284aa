"""What a replica had seen as a question to the oracle (docs/conformance.md has the form)."""

from typing import Any

from testbed.chaos.evidence import NodeSeen, PodSeen
from testbed.chaos.seen_worlds import SeenWorld
from testbed.workload import ZONE_LABEL

Scenario = dict[str, Any]


def scenario_of(identifier: str, seen: SeenWorld) -> Scenario | None:
    """Return the question whether the node was right; None of a pod that history never saw."""
    pod = seen.pod
    if pod is None:
        return None
    objects = [_node(node) for node in seen.nodes]
    for node in seen.nodes:
        objects += [_pod(guest, node.name) for guest in seen.guests(node.name)]
    objects.append(_pod(pod, ""))
    return {"id": identifier, "objects": objects, "pending": [f"{pod.namespace}/{pod.name}"]}


def _node(node: NodeSeen) -> dict[str, Any]:
    has = {"cpu": f"{node.has.milli_cpu}m", "memory": str(node.has.memory_bytes)}
    room = has | {"pods": str(node.has.pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": {ZONE_LABEL: node.zone, "kubernetes.io/hostname": node.name},
        },
        # Whatever keeps pods away, by taint or cordon; pods of the run tolerate nothing.
        "spec": {} if node.open else {"unschedulable": True},
        "status": {"capacity": room, "allocatable": room},
    }


def _pod(pod: PodSeen, node: str) -> dict[str, Any]:
    asks = {"cpu": f"{pod.asks.milli_cpu}m", "memory": str(pod.asks.memory_bytes)}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": asks}}]}
    if pod.zone:
        spec["nodeSelector"] = {ZONE_LABEL: pod.zone}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "spec": spec,
    }
