"""Placed pods and nodes as far as they are within the limits; the rest does not count.

They are facts that can't be sent away, so what is past a limit is left out where that is safe:

* **Placed pods.** Their affinity terms are asked at every decision for another pod. The first
  `affinityTerms` count whose selectors are within `selectorExpressions` and `selectorValues`
  together, in this order: required anti-affinity, required affinity, preferred anti-affinity,
  preferred affinity. Everything else of a placed pod counts fully, however much it is: a resource,
  host port, label or volume that is left out would overfill a node or break a rule of another pod.
* **Nodes.** Of more resources than `resources` those count that pods ask for most (cpu, memory,
  ephemeral-storage, pods), then the others by name: what is left out is not offered, so nothing is
  placed there that needs it. Of more taints than `taints` the first count, hard ones first, and
  `TOO_MANY_TAINTS` stands for the rest: only pods that tolerate every taint are placed there.
  Labels, images and features count fully: each costs no more than the object is large, and a label
  that is left out could let a pod in that must not be there.
"""

from typing import Final

import msgspec

from k8s_scheduler.api.config.limits import (
    NODE_LIMITS,
    POD_LIMITS,
    Excess,
    NodeLimits,
    PodLimits,
    excess,
)
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import (
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from k8s_scheduler.api.pod_counts import term_size, terms_of_affinity
from k8s_scheduler.api.taints import NO_SCHEDULE, Taint

TOO_MANY_TAINTS: Final = Taint(key="k8s-scheduler.io/too-many-taints", effect=NO_SCHEDULE)
_FIRST: Final = ("cpu", "memory", "ephemeral-storage", "pods")
_NONE: Final[tuple[Excess, ...]] = ()


def placed_within(pod: Pod, limits: PodLimits) -> tuple[Pod, tuple[Excess, ...]]:
    """Return a placed pod as it counts, and the limits that it is past."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return pod, _NONE
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    sizes = [term_size(t) for one in (near, far) for t in terms_of_affinity(one)]
    counts = (len(sizes), sum(e for e, _ in sizes), sum(v for _, v in sizes))
    allowed = (limits.affinity_terms, limits.selector_expressions, limits.selector_values)
    if counts[0] <= allowed[0] and counts[1] <= allowed[1] and counts[2] <= allowed[2]:
        return pod, _NONE
    cut = _Cut(*allowed)
    far_required, near_required = cut.required(far), cut.required(near)
    far_preferred, near_preferred = cut.preferred(far), cut.preferred(near)
    within = msgspec.structs.replace(
        affinity,
        pod_affinity=PodAffinity(near_required, near_preferred),
        pod_anti_affinity=PodAffinity(far_required, far_preferred),
    )
    spec = msgspec.structs.replace(pod.spec, affinity=within)
    return msgspec.structs.replace(pod, spec=spec), excess(_TERMS, allowed, counts)


_COUNTED_OF_PLACED: Final = ("affinity_terms", "selector_expressions", "selector_values")
_TERMS: Final = tuple(field for field in POD_LIMITS if field.name in _COUNTED_OF_PLACED)


class _Cut:
    """Takes terms as long as all of them together are within the limits, and then no more."""

    def __init__(self, terms: int, expressions: int, values: int) -> None:
        self._terms, self._expressions, self._values = terms, expressions, values

    def required(self, affinity: PodAffinity | None) -> list[PodAffinityTerm] | None:
        given = (affinity.required if affinity is not None else None) or []
        return given[: self._take([term_size(term) for term in given])] or None

    def preferred(self, affinity: PodAffinity | None) -> list[WeightedPodAffinityTerm] | None:
        given = (affinity.preferred if affinity is not None else None) or []
        return given[: self._take([term_size(w.pod_affinity_term) for w in given])] or None

    def _take(self, sizes: list[tuple[int, int]]) -> int:
        """Return how many of the next terms count."""
        for taken, (expressions, values) in enumerate(sizes):
            self._terms -= 1
            self._expressions -= expressions
            self._values -= values
            if min(self._terms, self._expressions, self._values) < 0:
                # It stays below zero: nothing after this one counts either.
                return taken
        return len(sizes)


def node_within(node: Node, limits: NodeLimits) -> tuple[Node, tuple[Excess, ...]]:
    """Return a node as it counts, and the limits that it is past."""
    offered, taints = node.status.allocatable or {}, node.spec.taints or []
    counts, allowed = (len(offered), len(taints)), (limits.resources, limits.taints)
    if counts[0] <= allowed[0] and counts[1] <= allowed[1]:
        return node, _NONE
    if counts[0] > allowed[0]:
        first = [name for name in _FIRST if name in offered]
        names = [*first, *sorted(offered.keys() - frozenset(first))][: allowed[0]]
        kept = {name: offered[name] for name in names}
        status = msgspec.structs.replace(node.status, allocatable=kept)
        node = msgspec.structs.replace(node, status=status)
    if counts[1] > allowed[1]:
        ordered = sorted(taints, key=lambda taint: not taint.is_hard)
        # The last place is for what stands for the rest.
        spec = msgspec.structs.replace(
            node.spec, taints=[*ordered[: allowed[1] - 1], TOO_MANY_TAINTS]
        )
        node = msgspec.structs.replace(node, spec=spec)
    return node, excess(NODE_LIMITS, allowed, counts)
