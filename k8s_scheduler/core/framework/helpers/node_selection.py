"""Node selectors over whole columns: which rows a selector picks.

The rules are kube-scheduler's. Terms are alternatives, what is inside a term must all hold, and a
term without anything inside picks nothing. A term that can't be parsed picks nothing either, but
does not spoil the others; code that reports it to the user asks `api.node_selectors.term_problem`.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.selectors.nodes import NAME_FIELD, is_empty, term_problem, whole_number
from k8s_scheduler.api.selectors.types import NodeSelector, NodeSelectorTerm, SelectorRequirement
from k8s_scheduler.api.storage.reach import Reach
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView

# As many values are compared one by one; more are sought together.
_FEW: Final = 8


def match_labels(wanted: Mapping[str, str], rows: RowsView) -> Mask:
    """Return where every pair is among the node's labels."""
    picked = np.ones(len(rows), dtype=np.bool_)
    for key, value in wanted.items():
        picked &= rows.label(key) == rows.label_id(value)
    return picked


def match_selector(selector: NodeSelector, rows: RowsView) -> Mask:
    """Return where at least one term holds."""
    picked = np.zeros(len(rows), dtype=np.bool_)
    for term in selector.node_selector_terms or ():
        picked |= match_term(term, rows)
    return picked


def picks_one(selector: NodeSelector, rows: RowsView) -> bool:
    """Return whether at least one term holds on the one row in view."""
    return any(_holds(term, rows) for term in selector.node_selector_terms or ())


def _holds(term: NodeSelectorTerm, rows: RowsView) -> bool:
    expressions = term.match_expressions or ()
    if len(expressions) == 1 and expressions[0].operator == "In" and not term.match_fields:
        # As of nearly all volumes: no array is needed for that.
        wanted, value = expressions[0].values or (), rows.label_here(expressions[0].key)
        return value is not None and value in wanted and not term_problem(term)
    return bool(match_term(term, rows)[0])


def match_reach(reach: Reach, rows: RowsView) -> Mask:
    """Return the rows from which something with this reach can be reached."""
    if reach.selector is None:
        return np.ones(len(rows), dtype=np.bool_)
    if reach.pins is None or len(reach.pins) > _FEW:
        return match_selector(reach.selector, rows)
    found = np.zeros(len(rows), dtype=np.bool_)
    for key, value in reach.pins:
        found |= rows.label(key) == rows.label_id(value)
    return found


def match_term(term: NodeSelectorTerm, rows: RowsView) -> Mask:
    if is_empty(term) or term_problem(term):
        return np.zeros(len(rows), dtype=np.bool_)
    picked = np.ones(len(rows), dtype=np.bool_)
    for expression in term.match_expressions or ():
        picked &= _match_expression(expression, rows)
    for field in term.match_fields or ():
        picked &= _match_field(field, rows)
    return picked


def _match_expression(expression: SelectorRequirement, rows: RowsView) -> Mask:
    ids = rows.label(expression.key)
    present: Mask = ids >= 0
    match expression.operator:
        case "Exists":
            return present
        case "DoesNotExist":
            return ~present
        case "In" | "NotIn":
            wanted = [rows.label_id(value) for value in expression.values or ()]
            found = present & _is_one_of(ids, wanted)
            return found if expression.operator == "In" else ~found
    return _match_number(expression, ids, rows)


def _is_one_of(ids: npt.NDArray[np.int64], wanted: list[int]) -> Mask:
    if len(wanted) > _FEW:
        return np.isin(ids, wanted)
    found = np.zeros(len(ids), dtype=np.bool_)
    for value_id in wanted:
        found |= ids == value_id
    return found


def _match_number(
    expression: SelectorRequirement,
    ids: npt.NDArray[np.int64],
    rows: RowsView,
) -> Mask:
    """Compare label values as numbers; what is no number is not picked."""
    bound = whole_number((expression.values or [""])[0])
    if bound is None:
        return np.zeros(len(rows), dtype=np.bool_)
    numbers, is_number = rows.label_numbers(ids)
    picked: Mask = numbers > bound if expression.operator == "Gt" else numbers < bound
    return picked & is_number


def _match_field(field: SelectorRequirement, rows: RowsView) -> Mask:
    # Only the name is a field of nodes; any other is empty on all of them.
    value = (field.values or [""])[0]
    if field.key == NAME_FIELD:
        same = rows.mask_of(NodeName(value))
    else:
        same = np.full(len(rows), not value)
    return same if field.operator == "In" else ~same
