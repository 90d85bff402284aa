"""NodeAffinity: a pod goes to nodes that its selector and affinity pick, rather to preferred ones.

Filter: `nodeSelector` and required affinity, and the `addedAffinity` of the profile, which holds
for every pod. A pod that names its nodes (every required term has `metadata.name In [...]`, as
DaemonSet pods do) narrows the search to them. Preemption can't help.

Score. Assumption: weights say how much a preference is worth. Formula: the sum of the weights of
the preferred terms that match, the pod's and the added ones, scaled so that the best node gets
100. Ties are left to the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.encode import encode
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, required
from k8s_scheduler.api.config.node_selector import Selector, Term, selector_errors, term_errors
from k8s_scheduler.api.config.rules import RULE, Configured, Int32, Range
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import NodeAffinityTerms, PreferredSchedulingTerm
from k8s_scheduler.api.selectors.nodes import NAME_FIELD, is_empty, term_problem
from k8s_scheduler.api.selectors.types import NodeSelector
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.helpers.node_selection import (
    match_labels,
    match_selector,
    match_term,
)
from k8s_scheduler.core.framework.plugin import SKIP, Narrow, Reject, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.plugins.scoring import default_normalize

NOT_SELECTED = Reason(
    code="NodeAffinity/NotSelected",
    text="node(s) didn't match Pod's node affinity/selector",
)
NOT_ENFORCED = Reason(
    code="NodeAffinity/NotEnforced",
    text="node(s) didn't match scheduler-enforced node affinity",
)
CONFLICT = Reason(code="NodeAffinity/Conflict", text="pod affinity terms conflict")

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = Range(1, 100, "must be in the range 1-100")


class Preferred(Configured, frozen=True):
    """A weighted wish about nodes."""

    weight: Annotated[Int32, msgspec.Meta(extra={RULE: _WEIGHT})] = 0
    preference: Term = Term()


class AddedAffinity(Configured, frozen=True):
    """Node affinity, as pods have it."""

    required: Selector | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: tuple[Preferred, ...] = msgspec.field(default=(), name=_PREFERRED)


class NodeAffinityArgs(PluginArgs, frozen=True):
    """Arguments of NodeAffinity."""

    added_affinity: AddedAffinity | None = None

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        """Check the terms, and that every wish has a weight."""
        added = self.added_affinity or AddedAffinity()
        at = (*path, "addedAffinity")
        errors: list[FieldError] = []
        if added.required is not None:
            errors += selector_errors(added.required, (*at, _REQUIRED, "nodeSelectorTerms"))
        for i, preferred in enumerate(added.preferred):
            errors += term_errors(preferred.preference, (*at, _PREFERRED, i, "preference"))
            if not preferred.weight:
                errors.append(required((*at, _PREFERRED, i, "weight"), _WEIGHT.detail))
        return errors


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """What a node has to match."""

    labels: Mapping[str, str]
    required: NodeSelector | None
    # The one node that it comes down to, as for a DaemonSet's pod.
    only: NodeName | None = None


class NodeAffinityPlugin:
    """Rejects nodes that the pod, or the profile, does not pick, and prefers preferred ones.

    The pod picks by `nodeSelector` and node affinity, the profile by `addedAffinity`. A pod whose
    every required term names nodes narrows the search to them.
    """

    name: ClassVar[str] = "NodeAffinity"
    arguments: ClassVar[type[PluginArgs]] = NodeAffinityArgs
    reasons: ClassVar[tuple[Reason, ...]] = (NOT_SELECTED, NOT_ENFORCED, CONFLICT)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("label/"),)

    def __init__(self, args: NodeAffinityArgs) -> None:
        """Take the affinity that holds for every pod."""
        added = msgspec.convert(encode(args.added_affinity or AddedAffinity()), NodeAffinityTerms)
        self._added_required = added.required
        self._added_preferred = tuple(added.preferred or ())

    def prepare(self, pod: PodView, rows: RowsView) -> AffinityTerm | Skip | Reject | Narrow:
        """Take the pod's demands; those that name nodes narrow the search."""
        affinity = pod.node_affinity
        required = None if affinity is None else affinity.required
        if required is None and self._added_required is None and not pod.node_selector:
            return SKIP
        only = _only_node(required)
        term = AffinityTerm(pod.node_selector, required, only)
        if only is not None:
            return Narrow(term, (only,))
        names = _named_nodes(required)
        if names is None:
            return term
        return Narrow(term, names) if names else Reject((CONFLICT,), resolvable=False, term=term)

    def filter(self, term: AffinityTerm, rows: RowsView) -> Codes:
        """Reject what the profile, and then what the pod, does not pick."""
        if term.only is not None and not term.labels and self._added_required is None:
            return rows.where(~rows.mask_of(term.only), NOT_SELECTED, resolvable=False)
        picked = match_labels(term.labels, rows)
        if term.required is not None:
            picked &= match_selector(term.required, rows)
        codes = rows.where(~picked, NOT_SELECTED, resolvable=False)
        if self._added_required is not None:
            enforced = match_selector(self._added_required, rows)
            codes[~enforced] = rows.code((NOT_ENFORCED,), resolvable=False)
        return codes

    def pre_score(self, pod: PodView, rows: RowsView) -> tuple[PreferredSchedulingTerm, ...] | Skip:
        """Take the preferred terms; one that can't be parsed is an error of the pod."""
        affinity = pod.node_affinity
        preferred = tuple((affinity.preferred if affinity is not None else None) or ())
        if not preferred and not self._added_preferred:
            return SKIP
        terms = tuple(
            term
            for term in (*preferred, *self._added_preferred)
            if term.weight and not is_empty(term.preference)
        )
        for term in terms:
            if problem := term_problem(term.preference):
                raise StatusError(problem)
        return terms

    def score(self, term: tuple[PreferredSchedulingTerm, ...], rows: RowsView) -> Scores:
        """Add up the weights of what matches."""
        total = np.zeros(len(rows), dtype=np.int64)
        for preferred in term:
            total += np.where(match_term(preferred.preference, rows), preferred.weight, 0)
        return total

    def normalize(self, scores: Scores) -> Scores:
        return default_normalize(scores, reverse=False)


def _named_nodes(required: NodeSelector | None) -> tuple[NodeName, ...] | None:
    """Return the nodes that the terms name, if every term names some; None if one does not."""
    if required is None or not required.node_selector_terms:
        return None
    names: dict[NodeName, None] = {}
    for term in required.node_selector_terms:
        # Asked once for each name: as sets they take the same time however many there are.
        lists = [
            dict.fromkeys(field.values or ())
            for field in term.match_fields or ()
            if field.key == NAME_FIELD and field.operator == "In"
        ]
        if not lists:
            return None
        common = [name for name in lists[0] if all(name in others for others in lists[1:])]
        names.update((NodeName(name), None) for name in common)
    return tuple(sorted(names))


def _only_node(required: NodeSelector | None) -> NodeName | None:
    """Return the node that is demanded by name, if nothing else is demanded."""
    terms = None if required is None else required.node_selector_terms
    if not terms or len(terms) > 1 or terms[0].match_expressions:
        return None
    fields = terms[0].match_fields
    if not fields or len(fields) > 1:
        return None
    field = fields[0]
    values = field.values or ()
    if field.key != NAME_FIELD or field.operator != "In" or len(values) != 1:
        return None
    return NodeName(values[0])
