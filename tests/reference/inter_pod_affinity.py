"""InterPodAffinity pod by pod and node by node, in plain Python, to compare with.

A cluster is a list of (node, pods on it); namespaces are their labels by name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod, PodAffinityTerm

Cluster = Sequence[tuple[Node, Sequence[Pod]]]
Namespaces = Mapping[str, Mapping[str, str]]

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def _selected(selector, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    for expression in selector.match_expressions or ():
        has, value = expression.key in labels, labels.get(expression.key)
        good = {
            "In": has and value in (expression.values or ()),
            "NotIn": not has or value not in (expression.values or ()),
            "Exists": has,
            "DoesNotExist": not has,
        }[expression.operator]
        if not good:
            return False
    return True


def _is_empty(selector) -> bool:
    return not selector.match_labels and not selector.match_expressions


def _required(pod: Pod, side: str) -> Sequence[PodAffinityTerm]:
    affinity = getattr(pod.spec.affinity, side, None)
    return (affinity.required if affinity else None) or ()


def _preferred(pod: Pod, side: str):
    affinity = getattr(pod.spec.affinity, side, None)
    return (affinity.preferred if affinity else None) or ()


def _labels(pod: Pod) -> Mapping[str, str]:
    return pod.metadata.labels or {}


def _own_namespace_is_meant(term: PodAffinityTerm) -> bool:
    return not term.namespaces and term.namespace_selector is None


def _newcomers_term_picks(
    term: PodAffinityTerm, newcomer: Pod, other: Pod, spaces: Namespaces
) -> bool:
    """Namespaces are selected among those that exist."""
    where = other.metadata.namespace
    selector = term.namespace_selector
    if _own_namespace_is_meant(term):
        meant = where == newcomer.metadata.namespace
    else:
        meant = where in (term.namespaces or ()) or (
            selector is not None
            and (_is_empty(selector) or (where in spaces and _selected(selector, spaces[where])))
        )
    return meant and _selected(term.label_selector, _labels(other))


def _placed_pods_term_picks(
    term: PodAffinityTerm, holder: Pod, newcomer: Pod, spaces: Namespaces
) -> bool:
    """A namespace that does not exist has no labels."""
    where = newcomer.metadata.namespace
    if _own_namespace_is_meant(term):
        meant = where == holder.metadata.namespace
    else:
        meant = where in (term.namespaces or ()) or _selected(
            term.namespace_selector, spaces.get(where, {})
        )
    return meant and _selected(term.label_selector, _labels(newcomer))


class Required:
    """The three counts by (key, value) that kube-scheduler keeps for one newcomer."""

    def __init__(self, newcomer: Pod, cluster: Cluster, spaces: Namespaces) -> None:
        self.newcomer = newcomer
        self.spaces = spaces
        self.near: Counter[tuple[str, str]] = Counter()
        self.far: Counter[tuple[str, str]] = Counter()
        self.refusing: Counter[tuple[str, str]] = Counter()
        for node, pods in cluster:
            for pod in pods:
                self.count(pod, node, 1)

    def count(self, other: Pod, node: Node, difference: int) -> None:
        """Count a pod on a node, or take it out."""
        for term in _required(other, "pod_anti_affinity"):
            if _placed_pods_term_picks(term, other, self.newcomer, self.spaces):
                self._update(self.refusing, node, term.topology_key, difference)
        terms = _required(self.newcomer, "pod_affinity")
        if all(_newcomers_term_picks(t, self.newcomer, other, self.spaces) for t in terms):
            for term in terms:
                self._update(self.near, node, term.topology_key, difference)
        for term in _required(self.newcomer, "pod_anti_affinity"):
            if _newcomers_term_picks(term, self.newcomer, other, self.spaces):
                self._update(self.far, node, term.topology_key, difference)

    @staticmethod
    def _update(counts: Counter[tuple[str, str]], node: Node, key: str, difference: int) -> None:
        labels = node.metadata.labels or {}
        if key not in labels:
            return
        counts[key, labels[key]] += difference
        if counts[key, labels[key]] == 0:
            del counts[key, labels[key]]

    @property
    def is_skipped(self) -> bool:
        """Whether PreFilter says Skip."""
        return (
            not self.refusing
            and not _required(self.newcomer, "pod_affinity")
            and not _required(self.newcomer, "pod_anti_affinity")
        )

    def rejection(self, node: Node) -> tuple[str, bool] | None:
        """Return (reason, resolvable) or None."""
        labels = node.metadata.labels or {}
        if not self._is_near(labels):
            return AFFINITY, False
        for term in _required(self.newcomer, "pod_anti_affinity"):
            key = term.topology_key
            if key in labels and self.far[key, labels[key]] > 0:
                return ANTI_AFFINITY, True
        if any(self.refusing[pair] > 0 for pair in labels.items()):
            return EXISTING, True
        return None

    def _is_near(self, labels: Mapping[str, str]) -> bool:
        terms = _required(self.newcomer, "pod_affinity")
        if any(term.topology_key not in labels for term in terms):
            return False
        if all(self.near[t.topology_key, labels[t.topology_key]] > 0 for t in terms):
            return True
        return not self.near and all(
            _newcomers_term_picks(t, self.newcomer, self.newcomer, self.spaces) for t in terms
        )


def scores(
    newcomer: Pod,
    cluster: Cluster,
    feasible: Sequence[Node],
    spaces: Namespaces,
    *,
    hard_weight: int = 1,
    ignores_existing: bool = False,
) -> list[int] | None:
    """Return the normalised scores of the feasible nodes; None if the plugin skips."""
    wishes = [(term, 1) for term in _preferred(newcomer, "pod_affinity")]
    wishes += [(term, -1) for term in _preferred(newcomer, "pod_anti_affinity")]
    if ignores_existing and not wishes:
        return None
    sums: dict[str, dict[str, int]] = {}
    for node, pods in cluster:
        labels = node.metadata.labels or {}
        for key, weight in _contributions(newcomer, wishes, pods, spaces, hard_weight):
            if key in labels:
                by_value = sums.setdefault(key, {})
                by_value[labels[key]] = by_value.get(labels[key], 0) + weight
    if not sums:
        return None
    raw = []
    for node in feasible:
        labels = node.metadata.labels or {}
        raw.append(sum(sums[key].get(labels[key], 0) for key in sums if key in labels))
    low, high = min(raw), max(raw)
    return [int(100.0 * ((s - low) / (high - low))) if high > low else 0 for s in raw]


def _contributions(
    newcomer: Pod, wishes, pods: Sequence[Pod], spaces: Namespaces, hard_weight: int
):
    for other in pods:
        for wish, sign in wishes:
            term = wish.pod_affinity_term
            if _newcomers_term_picks(term, newcomer, other, spaces):
                yield term.topology_key, sign * wish.weight
        for term, weight in _held_wishes(other, hard_weight):
            if _placed_pods_term_picks(term, other, newcomer, spaces):
                yield term.topology_key, weight


def _held_wishes(pod: Pod, hard_weight: int) -> list[tuple[PodAffinityTerm, int]]:
    found = []
    if hard_weight:
        found += [(term, hard_weight) for term in _required(pod, "pod_affinity")]
    found += [(w.pod_affinity_term, w.weight) for w in _preferred(pod, "pod_affinity")]
    found += [(w.pod_affinity_term, -w.weight) for w in _preferred(pod, "pod_anti_affinity")]
    return found
