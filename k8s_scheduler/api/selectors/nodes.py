"""Rules of node selectors that need no node: what a term may hold, and how values are read."""

from collections.abc import Iterable
from typing import Final

from k8s_scheduler.api.names import is_label_value, is_qualified_name
from k8s_scheduler.api.selectors.types import NodeSelectorTerm, SelectorRequirement

NAME_FIELD: Final = "metadata.name"
_INT64: Final = 2**63
_INT64_DIGITS: Final = 19


def is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def term_problem(term: NodeSelectorTerm) -> str | None:
    """Return why a term can't be parsed; None if it can."""
    problems = [
        *map(expression_problem, term.match_expressions or ()),
        *map(field_problem, term.match_fields or ()),
    ]
    return next((problem for problem in problems if problem), None)


def expression_problem(expression: SelectorRequirement) -> str | None:
    """Return why an expression on labels can't be parsed; None if it can."""
    values = expression.values or []
    if not is_qualified_name(expression.key):
        return f"{expression.key!r} is not a label key"
    if expression.operator in ("In", "NotIn"):
        if not values:
            return f"{expression.operator} needs at least one value"
    elif expression.operator in ("Exists", "DoesNotExist"):
        if values:
            return f"{expression.operator} takes no values"
    elif expression.operator in ("Gt", "Lt"):
        if len(values) != 1 or whole_number(values[0]) is None:
            return f"{expression.operator} needs exactly one value, a whole number"
    else:
        return f"{expression.operator!r} is not an operator"
    return _value_problem(values)


def field_problem(field: SelectorRequirement) -> str | None:
    """Return why an expression on fields can't be parsed; None if it can."""
    if field.operator not in ("In", "NotIn"):
        return f"{field.operator!r} is not an operator for fields"
    return None if len(field.values or ()) == 1 else "a field needs exactly one value"


def _value_problem(values: Iterable[str]) -> str | None:
    bad = next((value for value in values if not is_label_value(value)), None)
    return None if bad is None else f"{bad!r} is not a label value"


def whole_number(text: str) -> int | None:
    """Return a base-10 int64, as Go's ParseInt reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    significant = digits.lstrip("0")
    if len(significant) > _INT64_DIGITS:
        # Thousands are more than Python reads.
        return None
    number = int(significant or 0) * (-1 if text[0] == "-" else 1)
    return number if -_INT64 <= number < _INT64 else None
