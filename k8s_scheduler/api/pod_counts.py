# hot
"""What a pod asks for, counted, and whether that is within `PodLimits`.

Every pod that enters the queue is counted, so this is plain loops over lengths. Nothing is parsed:
counting takes time in proportion to the object, as decoding it did.
"""

import operator
from collections.abc import Iterable
from typing import Final

import msgspec

from k8s_scheduler.api.config.limits import POD_LIMITS, Excess, PodLimits, excess
from k8s_scheduler.api.pod import (
    Affinity,
    Container,
    NodeAffinityTerms,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
)
from k8s_scheduler.api.selectors.types import LabelSelector, NodeSelectorTerm, SelectorRequirement

_encode: Final = msgspec.msgpack.Encoder().encode
_allowed: Final = msgspec.structs.astuple


def pod_excess(pod: Pod, limits: PodLimits) -> tuple[Excess, ...]:
    counts, allowed = pod_counts(pod), _allowed(limits)
    if not any(map(operator.gt, counts, allowed)):
        return ()
    return excess(POD_LIMITS, allowed, counts)


def excess_text(found: tuple[Excess, ...]) -> str:
    """Return what a user is told of a pod that waits because of limits."""
    return (
        f"pod has {'; '.join(map(str, found))}; it is not tried until it asks for less or the "
        "scheduler's configuration allows more"
    )


def pod_counts(pod: Pod) -> tuple[int, ...]:
    """Return the counts of a pod in the order of the fields of `PodLimits`."""
    spec, labels = pod.spec, pod.metadata.labels
    containers = spec.containers or ()
    if spec.init_containers:
        containers = [*spec.init_containers, *containers]
    terms, expressions, values = _pod_selectors(spec)
    node_terms, node_expressions, node_values = _node_selectors(spec)
    volumes = spec.volumes or ()
    return (
        terms,
        len(spec.topology_spread_constraints or ()),
        expressions,
        values,
        node_terms,
        node_expressions,
        node_values,
        _resources(spec, containers),
        _host_ports(containers),
        len(spec.tolerations or ()),
        len(volumes),
        _claims(spec) if volumes or spec.resource_claims else 0,
        len(containers),
        len(labels or ()),
        len(_encode(spec)) + len(_encode(labels)),
    )


def term_size(term: PodAffinityTerm) -> tuple[int, int]:
    expressions, values = _selector_size(term.label_selector)
    more, further = _selector_size(term.namespace_selector)
    return expressions + more, values + further + len(term.namespaces or ())


def terms_of_affinity(affinity: PodAffinity | None) -> Iterable[PodAffinityTerm]:
    if affinity is not None:
        yield from affinity.required or ()
        for wish in affinity.preferred or ():
            yield wish.pod_affinity_term


def _pod_selectors(spec: PodSpec) -> tuple[int, int, int]:
    affinity, constraints = spec.affinity, spec.topology_spread_constraints
    if affinity is None and not constraints:
        return 0, 0, 0
    terms = expressions = values = 0
    for term in _terms(affinity):
        more, further = term_size(term)
        terms, expressions, values = terms + 1, expressions + more, values + further
    for constraint in constraints or ():
        more, further = _selector_size(constraint.label_selector)
        expressions += more + len(constraint.match_label_keys or ())
        values += further
    return terms, expressions, values


def _terms(affinity: Affinity | None) -> Iterable[PodAffinityTerm]:
    if affinity is None:
        return
    yield from terms_of_affinity(affinity.pod_affinity)
    yield from terms_of_affinity(affinity.pod_anti_affinity)


def _selector_size(selector: LabelSelector | None) -> tuple[int, int]:
    if selector is None:
        return 0, 0
    pairs = len(selector.match_labels or ())
    expressions = selector.match_expressions or ()
    return pairs + len(expressions), pairs + _value_count(expressions)


def _node_selectors(spec: PodSpec) -> tuple[int, int, int]:
    pairs = len(spec.node_selector or ())
    node_affinity = None if spec.affinity is None else spec.affinity.node_affinity
    if node_affinity is None:
        return 0, pairs, pairs
    terms, expressions, values = 0, pairs, pairs
    for term in _node_terms(node_affinity):
        terms += 1
        for parts in (term.match_expressions, term.match_fields):
            if parts:
                expressions += len(parts)
                values += _value_count(parts)
    return terms, expressions, values


def _node_terms(affinity: NodeAffinityTerms) -> Iterable[NodeSelectorTerm]:
    if affinity.required is not None:
        yield from affinity.required.node_selector_terms or ()
    for wish in affinity.preferred or ():
        yield wish.preference


def _value_count(expressions: Iterable[SelectorRequirement]) -> int:
    return sum(len(expression.values or ()) for expression in expressions)


def _resources(spec: PodSpec, containers: Iterable[Container]) -> int:
    names: set[str] = set()
    for container in containers:
        if container.resources is not None and container.resources.requests:
            names.update(container.resources.requests)
    if spec.resources is not None and spec.resources.requests:
        names.update(spec.resources.requests)
    if spec.overhead:
        names.update(spec.overhead)
    return len(names)


def _host_ports(containers: Iterable[Container]) -> int:
    count = 0
    for container in containers:
        for port in container.ports or ():
            count += port.host_port > 0
    return count


def _claims(spec: PodSpec) -> int:
    count = len(spec.resource_claims or ())
    for volume in spec.volumes or ():
        count += volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return count
