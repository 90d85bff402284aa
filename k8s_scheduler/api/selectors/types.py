"""Label and node selectors as they come over the wire."""

from k8s_scheduler.api.meta import Labels, Wire


class SelectorRequirement(Wire, frozen=True, gc=False):
    """One `key operator values` expression, on labels or on fields."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Wire, frozen=True, gc=False):
    """Selects objects by labels: all pairs and all expressions must hold."""

    match_labels: Labels | None = None
    match_expressions: list[SelectorRequirement] | None = None


class NodeSelectorTerm(Wire, frozen=True, gc=False):
    """Expressions and fields that must all hold; a term without either matches nothing."""

    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Wire, frozen=True, gc=False):
    """Terms of which one must match."""

    node_selector_terms: list[NodeSelectorTerm] | None = None
