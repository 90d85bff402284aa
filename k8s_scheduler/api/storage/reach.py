"""From which nodes a volume, or a driver's capacity, can be reached.

Nodes are asked for their labels alone: `matchFields` of a volume's node affinity must make sense,
but which node they name is not looked at (so says kube-scheduler). Nearly all volumes are pinned,
`key In [values]`; what is pinned is found by its value, and need not be tried node by node.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from k8s_scheduler.api.selectors.labels import SelectorError, requirements_of
from k8s_scheduler.api.selectors.nodes import is_empty, term_problem
from k8s_scheduler.api.selectors.types import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
)
from k8s_scheduler.api.storage.objects import TopologySelectorTerm, VolumeNodeAffinity

_encode: Final = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Reach:
    """A selector over labels; None reaches everywhere. `pins` are its pairs, if it is no more."""

    selector: NodeSelector | None
    pins: tuple[tuple[str, str], ...] | None = None

    @property
    def key(self) -> bytes:
        """What equal reaches have in common."""
        return _encode(self.selector)


EVERYWHERE: Final = Reach(None)


def reach_of_affinity(affinity: VolumeNodeAffinity | None) -> Reach:
    if affinity is None or affinity.required is None:
        return EVERYWHERE
    return _reach(affinity.required.node_selector_terms or [])


def reach_of_topology(topology: LabelSelector | None) -> Reach:
    try:
        requirements = requirements_of(topology)
    except SelectorError:
        return _reach([])
    if requirements is None:
        return _reach([])
    expressions = [
        SelectorRequirement(key=r.key, operator=r.operator, values=list(r.values))
        for r in requirements
    ]
    return _reach([NodeSelectorTerm(match_expressions=expressions)]) if expressions else EVERYWHERE


def reach_of_topologies(allowed: list[TopologySelectorTerm] | None) -> Reach:
    """Return where a class lets its volumes be made; everywhere if it does not say."""
    if not allowed:
        return EVERYWHERE
    return _reach(
        [
            NodeSelectorTerm(
                match_expressions=[
                    SelectorRequirement(key=r.key, operator="In", values=r.values)
                    for r in term.match_label_expressions or ()
                ]
            )
            for term in allowed
        ]
    )


def _reach(terms: list[NodeSelectorTerm]) -> Reach:
    """Return the reach of alternatives: those that are empty or make no sense reach nothing."""
    sound = [term for term in terms if not is_empty(term) and not term_problem(term)]
    if any(not term.match_expressions for term in sound):
        return EVERYWHERE
    by_labels = [NodeSelectorTerm(match_expressions=term.match_expressions) for term in sound]
    return Reach(NodeSelector(node_selector_terms=by_labels), _pins(by_labels))


def _pins(terms: list[NodeSelectorTerm]) -> tuple[tuple[str, str], ...] | None:
    pins: dict[tuple[str, str], None] = {}
    for term in terms:
        expressions = term.match_expressions or []
        if len(expressions) != 1 or expressions[0].operator != "In":
            return None
        pins.update(((expressions[0].key, value), None) for value in expressions[0].values or ())
    return tuple(pins)
