"""The rules of the built-in plugins, node by node and in plain Python, to compare with."""

import math
from collections.abc import Sequence

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.resources import allocatable, pod_requests
from k8s_scheduler.api.taints import Taint

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def _tolerates(pod: Pod, taint: Taint) -> bool:
    return any(t.tolerates(taint) for t in pod.spec.tolerations or ())


def rejection(pod: Pod, node: Node, on_node: Sequence[Pod]) -> tuple[str, set[str]] | None:
    """Return (plugin, reasons) of the first plugin that rejects the node."""
    if pod.spec.node_name and pod.spec.node_name != node.metadata.name:
        return "NodeName", {"node(s) didn't match the requested node name"}
    if node.spec.unschedulable and not _tolerates(pod, CORDON):
        return "NodeUnschedulable", {"node(s) were unschedulable"}
    for taint in node.spec.taints or ():
        if taint.effect in ("NoSchedule", "NoExecute") and not _tolerates(pod, taint):
            return "TaintToleration", {"node(s) had untolerated taint(s)"}
    if not picks_node(pod, node):
        return "NodeAffinity", {"node(s) didn't match Pod's node affinity/selector"}
    taken = [port for other in on_node for port in host_ports(other)]
    if any(wanted.conflicts(port) for wanted in host_ports(pod) for port in taken):
        return "NodePorts", {"node(s) didn't have free ports for the requested pod ports"}
    reasons = _shortages(pod, node, on_node)
    return ("NodeResourcesFit", reasons) if reasons else None


def _shortages(pod: Pod, node: Node, on_node: Sequence[Pod]) -> set[str]:
    offered = allocatable(node.status.allocatable)
    reasons = set()
    if len(on_node) + 1 > offered.get("pods", 0):
        reasons.add("Too many pods")
    for resource, amount in pod_requests(pod).amounts:
        used = sum(pod_requests(p, from_status=True).amount(resource) for p in on_node)
        if amount > offered.get(resource, 0) - used:
            reasons.add(f"Insufficient {resource}")
    return reasons


def is_resolvable(pod: Pod, node: Node) -> bool:
    """Return whether an empty node would do."""
    offered = allocatable(node.status.allocatable)
    return all(a <= offered.get(r, 0) for r, a in pod_requests(pod).amounts)


def least_allocated(pod: Pod, node: Node, on_node: Sequence[Pod]) -> int:
    offered = allocatable(node.status.allocatable)
    everyone = [pod_requests(p, from_status=True) for p in on_node] + [pod_requests(pod)]
    used = {
        "cpu": sum(r.non_zero_milli_cpu for r in everyone),
        "memory": sum(r.non_zero_memory_bytes for r in everyone),
    }
    scores = []
    for resource, requested in used.items():
        total = offered.get(resource, 0)
        if total:
            scores.append(0 if requested > total else (total - requested) * 100 // total)
    return sum(scores) // len(scores) if scores else 0


def soft_taint_scores(pod: Pod, nodes: Sequence[Node]) -> list[int]:
    """Return TaintToleration's scores after normalisation."""
    tolerations = [t for t in pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    counts = [
        sum(
            taint.effect == "PreferNoSchedule" and not any(t.tolerates(taint) for t in tolerations)
            for taint in node.spec.taints or ()
        )
        for node in nodes
    ]
    highest = max(counts, default=0)
    return [100 - 100 * c // highest if highest else 100 for c in counts]


def picks_node(pod: Pod, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(term_matches(term, node) for term in affinity.required.node_selector_terms or ())


def term_matches(term, node: Node) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    labels = node.metadata.labels or {}
    return all(_holds(e, labels) for e in expressions) and all(
        (node.metadata.name == f.values[0]) == (f.operator == "In") for f in fields
    )


def _holds(expression, labels) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number = int(value)
    except (TypeError, ValueError):
        return False
    bound = int(expression.values[0])
    return number > bound if expression.operator == "Gt" else number < bound


def node_affinity_scores(pod: Pod, nodes: Sequence[Node]) -> list[int] | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = (affinity.preferred if affinity else None) or ()
    if not preferred:
        return None
    raw = [
        sum(term.weight for term in preferred if term_matches(term.preference, node))
        for node in nodes
    ]
    highest = max(raw)
    return [100 * score // highest for score in raw] if highest else raw


def balanced(pod: Pod, node: Node, on_node: Sequence[Pod]) -> int:
    offered = allocatable(node.status.allocatable)
    mine = pod_requests(pod)

    def balance(requests) -> int:
        shares = [
            min(1.0, sum(r.amount(name) for r in requests) / offered[name])
            for name in ("cpu", "memory")
            if offered.get(name)
        ]
        deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
        return int((1 - deviation) * 100)

    others = [pod_requests(p, from_status=True) for p in on_node]
    return 50 + (50 + balance([*others, mine]) - balance(others)) // 2


def image_locality(pod: Pod, node: Node, nodes: Sequence[Node]) -> int:
    containers = [*(pod.spec.init_containers or ()), *(pod.spec.containers or ())]
    if not containers:
        return 0
    total = 0
    for container in containers:
        image = container.image
        if ":" not in image.rpartition("/")[2]:
            image += ":latest"
        holders = [n for n in nodes if image in _images(n)]
        if image in _images(node):
            total += int(_images(node)[image] * (len(holders) / len(nodes)))
    low, high = 23 * 1024**2, 1000 * 1024**2 * len(containers)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def _images(node: Node) -> dict[str, int]:
    return {name: i.size_bytes for i in node.status.images or () for name in i.names or ()}


def ratio(points: Sequence[tuple[int, int]], requested: int, capacity: int) -> int:
    """Return the broken-linear score of one resource."""
    used = 100 if requested > capacity else requested * 100 // capacity
    for i, (utilization, score) in enumerate(points):
        if used <= utilization:
            if i == 0:
                return score
            u0, s0 = points[i - 1]
            return s0 + math.trunc((score - s0) * (used - u0) / (utilization - u0))
    return points[-1][1]


def scores_by_plugin(
    pod: Pod, feasible: Sequence[tuple[Node, Sequence[Pod]]], nodes: Sequence[Node]
) -> dict[str, list[int]]:
    """Return the unweighted scores of every plugin that has something to say."""
    kept = [node for node, _ in feasible]
    found = {
        "TaintToleration": soft_taint_scores(pod, kept),
        "NodeResourcesFit": [least_allocated(pod, n, pods) for n, pods in feasible],
        "ImageLocality": [image_locality(pod, n, nodes) for n in kept],
        # A pod without claims is all the same to these, and they say so.
        "VolumeBinding": [0] * len(kept),
        "DynamicResources": [0] * len(kept),
    }
    preferred = node_affinity_scores(pod, kept)
    if preferred is not None:
        found["NodeAffinity"] = preferred
    requests = pod_requests(pod)
    if requests.amount("cpu") or requests.amount("memory"):
        found["NodeResourcesBalancedAllocation"] = [balanced(pod, n, p) for n, p in feasible]
    return found
