"""PodTopologySpread, node by node and pod by pod, to compare with.

Domains are label values in plain dicts, minimums are looked up in full, selectors are asked for
every single pod.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod, TopologySpreadConstraint
from k8s_scheduler.api.selectors.types import LabelSelector
from k8s_scheduler.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from tests.reference.scalar import picks_node

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SYSTEM = (
    TopologySpreadConstraint(3, HOSTNAME, "ScheduleAnyway"),
    TopologySpreadConstraint(5, ZONE, "ScheduleAnyway"),
)
SKEWED = ("node(s) didn't match pod topology spread constraints", True)
NO_LABEL = (
    "node(s) didn't match pod topology spread constraints (missing required label)",
    False,
)
Labels = Mapping[str, str]
Condition = Callable[[Labels], bool]
Owned = Service | ReplicationController | ReplicaSet | StatefulSet


@dataclass
class World:
    """Nodes with their pods, what selects pods, and the constraints of the profile."""

    nodes: Sequence[tuple[Node, Sequence[Pod]]]
    objects: Sequence[Owned] = ()
    # None: the built-in ones.
    listed: Sequence[TopologySpreadConstraint] | None = None


@dataclass
class Rule:
    """A constraint, and the conditions that a selected pod meets; None selects nobody."""

    constraint: TopologySpreadConstraint
    conditions: list[Condition] | None

    def picks(self, labels: Labels) -> bool:
        return self.conditions is not None and all(holds(labels) for holds in self.conditions)

    def count(self, pods: Sequence[Pod], namespace: str) -> int:
        if not self.conditions:
            return 0
        return sum(
            p.metadata.namespace == namespace
            and p.metadata.deletion_timestamp is None
            and self.picks(labels_of(p))
            for p in pods
        )

    def includes(self, pod: Pod, node: Node) -> bool:
        honors = (self.constraint.node_affinity_policy or "Honor") == "Honor"
        if honors and not picks_node(pod, node):
            return False
        if self.constraint.node_taints_policy == "Honor":
            for taint in node.spec.taints or ():
                tolerated = any(t.tolerates(taint) for t in pod.spec.tolerations or ())
                if taint.effect in ("NoSchedule", "NoExecute") and not tolerated:
                    return False
        return True


def labels_of(found: Pod | Node) -> Labels:
    return found.metadata.labels or {}


def equal(key: str, value: str) -> Condition:
    return lambda labels: labels.get(key) == value


def expression(key: str, operator: str, values: Sequence[str]) -> Condition:
    return {
        "In": lambda labels: labels.get(key) in values,
        "NotIn": lambda labels: labels.get(key) not in values,
        "Exists": lambda labels: key in labels,
        "DoesNotExist": lambda labels: key not in labels,
    }[operator]


def conditions_of(selector: LabelSelector | None) -> list[Condition] | None:
    if selector is None:
        return None
    return [equal(*pair) for pair in (selector.match_labels or {}).items()] + [
        expression(e.key, e.operator, e.values or ()) for e in selector.match_expressions or ()
    ]


def rules_of(pod: Pod, world: World, action: str) -> list[Rule]:
    """Return what Filter or Score has to keep to."""
    own = pod.spec.topology_spread_constraints
    if not own:
        return default_rules(pod, world, action)
    rules = []
    for constraint in own:
        if constraint.when_unsatisfiable == action:
            conditions = conditions_of(constraint.label_selector)
            for key in constraint.match_label_keys or ():
                if conditions is not None and key in labels_of(pod):
                    conditions.append(equal(key, labels_of(pod)[key]))
            rules.append(Rule(constraint, conditions))
    return rules


def default_rules(pod: Pod, world: World, action: str) -> list[Rule]:
    constraints = SYSTEM if world.listed is None else world.listed
    near = [o for o in world.objects if o.metadata.namespace == pod.metadata.namespace]
    pairs: dict[str, str] = {}
    for service in near:
        if isinstance(service, Service):
            wanted = service.spec.selector or {}
            if all(labels_of(pod).get(key) == value for key, value in wanted.items()):
                pairs.update(wanted)
    more: list[Condition] = []
    owner = next((o for o in pod.metadata.owner_references or () if o.controller), None)
    for found in near:
        if owner is None or found.metadata.name != owner.name:
            continue
        reference = (owner.api_version, owner.kind)
        if isinstance(found, ReplicationController) and reference == (
            "v1",
            "ReplicationController",
        ):
            pairs.update(found.spec.selector or {})
        elif (isinstance(found, ReplicaSet) and reference == ("apps/v1", "ReplicaSet")) or (
            isinstance(found, StatefulSet) and reference == ("apps/v1", "StatefulSet")
        ):
            more = conditions_of(found.spec.selector) or []
    conditions = [equal(*pair) for pair in pairs.items()] + more
    if not conditions:
        return []
    return [Rule(c, conditions) for c in constraints if c.when_unsatisfiable == action]


@dataclass
class Filter:
    """The hard constraints of a pod, and how many pods each domain holds."""

    pod: Pod
    world: World
    rules: list[Rule] = field(init=False)
    counts: list[dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.rules = rules_of(self.pod, self.world, "DoNotSchedule")
        self.counts = [{} for _ in self.rules]
        for node, pods in self.world.nodes:
            for rule, counts in self._concerned(node):
                domain = labels_of(node)[rule.constraint.topology_key]
                found = rule.count(pods, self.pod.metadata.namespace)
                counts[domain] = counts.get(domain, 0) + found

    @property
    def is_skipped(self) -> bool:
        return not self.rules

    def change(self, node: Node, other: Pod, difference: int) -> None:
        """Let a pod come to the node or leave it, whether it was counted before or not."""
        if other.metadata.namespace != self.pod.metadata.namespace:
            return
        for rule, counts in self._concerned(node):
            if rule.picks(labels_of(other)):
                counts[labels_of(node)[rule.constraint.topology_key]] += difference

    def rejection(self, node: Node) -> tuple[str, bool] | None:
        """Return (text, resolvable)."""
        for rule, counts in zip(self.rules, self.counts, strict=True):
            constraint = rule.constraint
            if constraint.topology_key not in labels_of(node):
                return NO_LABEL
            minimum = min(counts.values(), default=0)
            if len(counts) < (constraint.min_domains or 1):
                minimum = 0
            here = counts.get(labels_of(node)[constraint.topology_key], 0)
            if here + rule.picks(labels_of(self.pod)) - minimum > constraint.max_skew:
                return SKEWED
        return None

    def _concerned(self, node: Node) -> list[tuple[Rule, dict[str, int]]]:
        if not all(rule.constraint.topology_key in labels_of(node) for rule in self.rules):
            return []
        both = zip(self.rules, self.counts, strict=True)
        return [(rule, counts) for rule, counts in both if rule.includes(self.pod, node)]


def scores(pod: Pod, world: World, feasible: Sequence[Node]) -> list[int] | None:
    """Return the scaled score of each feasible node; None if there is nothing to score."""
    rules = rules_of(pod, world, "ScheduleAnyway")
    if not rules:
        return None
    needs_all = bool(pod.spec.topology_spread_constraints) or world.listed is not None

    def takes_part(node: Node) -> bool:
        return not needs_all or all(r.constraint.topology_key in labels_of(node) for r in rules)

    kept = [node for node in feasible if takes_part(node)]
    on = {node.metadata.name: pods for node, pods in world.nodes}
    raw = {node.metadata.name: 0.0 for node in kept}
    for rule in rules:
        key = rule.constraint.topology_key
        domains = {labels_of(node).get(key, "") for node in kept}
        weight = math.log((len(kept) if key == HOSTNAME else len(domains)) + 2)
        for node in kept:
            name = node.metadata.name
            if key not in labels_of(node):
                continue
            if key == HOSTNAME:
                count = rule.count(on[name], pod.metadata.namespace)
            else:
                count = sum(
                    rule.count(pods, pod.metadata.namespace)
                    for other, pods in world.nodes
                    if takes_part(other)
                    and rule.includes(pod, other)
                    and labels_of(other).get(key, "") == labels_of(node)[key]
                )
            raw[name] += count * weight + (rule.constraint.max_skew - 1)
    rounded = {name: math.floor(score + 0.5) for name, score in raw.items()}
    highest, lowest = max(rounded.values(), default=0), min(rounded.values(), default=0)
    scaled = {
        name: 100 * (highest + lowest - score) // highest if highest else 100
        for name, score in rounded.items()
    }
    return [scaled.get(node.metadata.name, 0) for node in feasible]
