"""Label selectors in one form: a tuple of requirements that must all hold.

`None` stands for a selector that picks nothing (the API's absent selector), the empty tuple for
one that picks everything (the API's empty selector). Requirements are hashable, so equal
selectors are equal values, whichever of their two spellings was used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from k8s_scheduler.api.selectors.problems import requirement_problem
from k8s_scheduler.api.selectors.types import LabelSelector, SelectorRequirement

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"


class SelectorError(ValueError):
    """A selector that can't be parsed."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


Requirements: TypeAlias = tuple[Requirement, ...]
NOTHING: Final = None
EVERYTHING: Final[Requirements] = ()


def requirements_of(selector: LabelSelector | None) -> Requirements | None:
    """Return a selector's requirements; raises SelectorError if there is no sense in them."""
    if selector is None:
        return NOTHING
    pairs = pairs_of(selector.match_labels)
    for pair in pairs:
        if problem := requirement_problem(pair.key, pair.operator, pair.values):
            raise SelectorError(problem)
    return (*pairs, *map(_expression, selector.match_expressions or ()))


def pairs_of(labels: Mapping[str, str] | None) -> Requirements:
    return tuple(Requirement(key, IN, (value,)) for key, value in sorted((labels or {}).items()))


def matches(requirements: Requirements | None, labels: Mapping[str, str]) -> bool:
    return requirements is not NOTHING and all(r.holds(labels) for r in requirements)


def _expression(expression: SelectorRequirement) -> Requirement:
    values = tuple(expression.values or ())
    if problem := requirement_problem(expression.key, expression.operator, values):
        raise SelectorError(problem)
    return Requirement(expression.key, expression.operator, values)
