"""The arguments of NodeAffinity: affinity that a profile adds to every pod of it."""

from typing import Annotated, Final

import msgspec

from k8s_scheduler.api.config.arguments.base import PluginArguments
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, required
from k8s_scheduler.api.config.rules import RULE, Int32, Range
from k8s_scheduler.api.config.struct import Configured
from k8s_scheduler.api.selectors.nodes import expression_problem, field_problem
from k8s_scheduler.api.selectors.types import SelectorRequirement

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = Range(1, 100, "must be in the range 1-100")


class AffinityRequirement(Configured, frozen=True):
    """One `key operator values` expression."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def on_the_wire(self) -> SelectorRequirement:
        """Return the same as pods have it."""
        return SelectorRequirement(self.key, self.operator, list(self.values))


class Term(Configured, frozen=True):
    """Expressions and fields that must all hold."""

    match_expressions: tuple[AffinityRequirement, ...] = ()
    match_fields: tuple[AffinityRequirement, ...] = ()


class Selector(Configured, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[Term, ...] = ()


class Preferred(Configured, frozen=True):
    """A weighted wish about nodes."""

    weight: Annotated[Int32, msgspec.Meta(extra={RULE: _WEIGHT})] = 0
    preference: Term = Term()


class AddedAffinity(Configured, frozen=True):
    """Node affinity, as pods have it."""

    required: Selector | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: tuple[Preferred, ...] = msgspec.field(default=(), name=_PREFERRED)


class NodeAffinityArgs(Configured, frozen=True):
    """Arguments of NodeAffinity."""

    added_affinity: AddedAffinity | None = None


def _rules(args: NodeAffinityArgs, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    added = args.added_affinity
    if added is not None:
        at = (*path, "addedAffinity")
        if added.required is not None:
            errors += selector_errors(added.required, (*at, _REQUIRED, "nodeSelectorTerms"))
        for i, preferred in enumerate(added.preferred):
            errors += _term(preferred.preference, (*at, _PREFERRED, i, "preference"))
            if not preferred.weight:
                errors.append(required((*at, _PREFERRED, i, "weight"), _WEIGHT.detail))
    return errors


def selector_errors(selector: Selector, path: FieldPath) -> list[FieldError]:
    """Return what is wrong with the terms of a selector."""
    if not selector.node_selector_terms:
        return [required(path, "must have at least one node selector term")]
    return [
        error
        for i, term in enumerate(selector.node_selector_terms)
        for error in _term(term, (*path, i))
    ]


def _term(term: Term, path: FieldPath) -> list[FieldError]:
    errors = []
    for i, expression in enumerate(term.match_expressions):
        if problem := expression_problem(expression.on_the_wire()):
            errors.append(FieldError((*path, "matchExpressions", i), problem))
    for i, field in enumerate(term.match_fields):
        if problem := field_problem(field.on_the_wire()):
            errors.append(FieldError((*path, "matchFields", i), problem))
    return errors


NODE_AFFINITY: Final = PluginArguments(NodeAffinityArgs, broken_rules=_rules)
