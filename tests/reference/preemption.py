"""The rules of preemption, node by node and pod by pod, to compare with.

Feasibility is the plain one of `scalar`: room, ports, taints, labels. Written from the description
of kube-scheduler's behaviour, without a look at how the project does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.selectors.labels import matches, requirements_of
from k8s_scheduler.api.workloads import PodDisruptionBudget
from tests.reference import scalar

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
# Plugins that evicting pods can bring round; NodeResourcesFit if the node is large enough.
RESOLVABLE = ("NodePorts",)


@dataclass
class World:
    """Nodes in their order, the pods on them in theirs, promised pods by node, and budgets."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, list[Pod]] = field(default_factory=dict)
    promised: dict[str, list[Pod]] = field(default_factory=dict)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)


@dataclass(frozen=True)
class Candidate:
    victims: tuple[Pod, ...]
    violations: int


def priority(pod: Pod) -> int:
    return 0 if pod.spec.priority is None else pod.spec.priority


def rejection(
    world: World, pod: Pod, name: str, on_node: Sequence[Pod]
) -> tuple[str, set[str]] | None:
    """Return (plugin, reasons), first with the promised pods that count, then without."""
    node = world.nodes[name]
    others = [
        other
        for other in world.promised.get(name, ())
        if other.metadata.uid != pod.metadata.uid and priority(other) >= priority(pod)
    ]
    if others:
        found = scalar.rejection(pod, node, [*on_node, *others])
        if found is not None:
            return found
    return scalar.rejection(pod, node, on_node)


def may_help(world: World, pod: Pod, name: str) -> bool:
    """Return whether evicting pods from a node that rejects the pod could help."""
    found = rejection(world, pod, name, world.pods[name])
    assert found is not None
    plugin, _ = found
    if plugin == "NodeResourcesFit":
        return scalar.is_resolvable(pod, world.nodes[name])
    return plugin in RESOLVABLE


def started(pod: Pod) -> str:
    """Return a time that sorts; who has not started yet starts later than anybody."""
    return pod.status.start_time or "9999"


def by_importance(pods: Sequence[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (-priority(pod), started(pod)))


def split_by_budget(
    pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """Return (forbidden, allowed) if the pods left in this order."""
    left = [budget.status.disruptions_allowed for budget in budgets]
    forbidden, allowed = [], []
    for pod in pods:
        exceeded = False
        for i, budget in enumerate(budgets):
            if pod.metadata.labels and covers(budget, pod):
                left[i] -= 1
                if left[i] < 0:
                    exceeded = True
                    break
        (forbidden if exceeded else allowed).append(pod)
    return forbidden, allowed


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    requirements = requirements_of(budget.spec.selector)
    return (
        budget.metadata.namespace == pod.metadata.namespace
        and bool(requirements)
        and matches(requirements, pod.metadata.labels or {})
        and pod.metadata.name not in (budget.status.disrupted_pods or {})
    )


def try_node(world: World, pod: Pod, name: str) -> Candidate | set[str]:
    """Return who has to leave a node, or the reasons why nobody's leaving helps."""
    lesser = [other for other in world.pods[name] if priority(other) < priority(pod)]
    if not lesser:
        return {NO_VICTIMS}
    staying = [other for other in world.pods[name] if other not in lesser]
    found = rejection(world, pod, name, staying)
    if found is not None:
        return found[1]
    forbidden, allowed = split_by_budget(by_importance(lesser), world.budgets)
    victims: list[Pod] = []
    violations = 0
    for other in (*forbidden, *allowed):
        if rejection(world, pod, name, [*staying, other]) is None:
            staying.append(other)
        else:
            victims.append(other)
            violations += other in forbidden
    return Candidate(tuple(by_importance(victims)), violations)


def try_all(world: World, pod: Pod) -> dict[str, Candidate | set[str]]:
    """Return what becomes of every node that evicting pods might help."""
    return {name: try_node(world, pod, name) for name in world.nodes if may_help(world, pod, name)}


def best(candidates: Mapping[str, Candidate]) -> set[str]:
    """Return the nodes of which any may be picked."""
    if not candidates:
        return set()

    def loss(candidate: Candidate) -> tuple[int, int, int, int]:
        priorities = [priority(victim) for victim in candidate.victims]
        total = sum(value + 2**31 for value in priorities)
        return candidate.violations, max(priorities), total, len(priorities)

    least = min(map(loss, candidates.values()))
    left = {name: c for name, c in candidates.items() if loss(c) == least}

    def earliest(candidate: Candidate) -> str:
        highest = max(map(priority, candidate.victims))
        return min(started(v) for v in candidate.victims if priority(v) == highest)

    latest = max(map(earliest, left.values()))
    return {name for name, candidate in left.items() if earliest(candidate) == latest}


def not_eligible(world: World, pod: Pod) -> str:
    """Return why the pod may not preempt; empty if it may."""
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    name = pod.status.nominated_node_name
    if name not in world.nodes or not may_help(world, pod, name):
        return ""
    for other in world.pods[name]:
        if priority(other) < priority(pod) and leaves_by_preemption(other):
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def leaves_by_preemption(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp is None:
        return False
    target = [c for c in pod.status.conditions or () if c.type == "DisruptionTarget"][:1]
    return [(c.status, c.reason) for c in target] == [("True", "PreemptionByScheduler")]


def no_candidate_text(world: World, tried: Mapping[str, set[str]]) -> str:
    """Return the message where nobody's leaving helps."""
    counts: dict[str, int] = {}
    for name in world.nodes:
        for reason in tried.get(name, {NOT_HELPFUL}):
            counts[reason] = counts.get(reason, 0) + 1
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"preemption: 0/{len(world.nodes)} nodes are available: {reasons}."
