"""Node selectors in a configuration file, as pods have them: types and rules."""

import msgspec

from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, required
from k8s_scheduler.api.config.rules import Configured
from k8s_scheduler.api.selectors.nodes import expression_problem, field_problem
from k8s_scheduler.api.selectors.types import NodeSelector, SelectorRequirement


class AffinityRequirement(Configured, frozen=True):
    """One `key operator values` expression."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def on_the_wire(self) -> SelectorRequirement:
        return SelectorRequirement(self.key, self.operator, list(self.values))


class Term(Configured, frozen=True):
    """Expressions and fields that must all hold."""

    match_expressions: tuple[AffinityRequirement, ...] = ()
    match_fields: tuple[AffinityRequirement, ...] = ()


class Selector(Configured, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[Term, ...] = ()

    def on_the_wire(self) -> NodeSelector:
        return msgspec.convert(encode(self), NodeSelector)


def selector_errors(selector: Selector, path: FieldPath) -> list[FieldError]:
    if not selector.node_selector_terms:
        return [required(path, "must have at least one node selector term")]
    return [
        error
        for i, term in enumerate(selector.node_selector_terms)
        for error in term_errors(term, (*path, i))
    ]


def term_errors(term: Term, path: FieldPath) -> list[FieldError]:
    errors = []
    for i, expression in enumerate(term.match_expressions):
        if problem := expression_problem(expression.on_the_wire()):
            errors.append(FieldError((*path, "matchExpressions", i), problem))
    for i, field in enumerate(term.match_fields):
        if problem := field_problem(field.on_the_wire()):
            errors.append(FieldError((*path, "matchFields", i), problem))
    return errors
