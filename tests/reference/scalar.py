"""The rules of the built-in plugins, node by node and in plain Python, to compare with."""

from collections.abc import Sequence

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
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


def total_scores(pod: Pod, feasible: Sequence[tuple[Node, Sequence[Pod]]]) -> list[int]:
    soft = soft_taint_scores(pod, [node for node, _ in feasible])
    return [
        3 * taint + least_allocated(pod, node, pods)
        for taint, (node, pods) in zip(soft, feasible, strict=True)
    ]
