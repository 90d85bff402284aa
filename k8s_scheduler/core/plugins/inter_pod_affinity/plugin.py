"""InterPodAffinity: a pod goes near to pods that it needs, and away from those it avoids.

Filter, in this order: required affinity (only a newcomer near to the pods in question may stay,
evicting pods can't help), required anti-affinity of the newcomer, and that of placed pods
(evicting the pods in the way helps). Near is what has the same value of the term's topology key
among its labels; a node without the key is near to nothing.

Score: see `scoring`. Ties are left to the engine.

`matchLabelKeys` and `mismatchLabelKeys` are no business of the scheduler: the API server has
merged them into the label selector when the pod was created.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import msgspec

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.rules import RULE, Int32, Range
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.selectors.labels import SelectorError
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.plugin import SKIP, Reject, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.framework.views.values import Crowd
from k8s_scheduler.core.plugins.inter_pod_affinity.filtering import RequiredTerm
from k8s_scheduler.core.plugins.inter_pod_affinity.scoring import (
    Wish,
    concern_anybody,
    has_preferences,
    row_scores,
    scaled_between_extremes,
    wishes,
)

TOO_FAR = Reason(
    code="InterPodAffinity/Affinity",
    text="node(s) didn't match pod affinity rules",
)
TOO_NEAR = Reason(
    code="InterPodAffinity/AntiAffinity",
    text="node(s) didn't match pod anti-affinity rules",
)
REFUSED = Reason(
    code="InterPodAffinity/ExistingAntiAffinity",
    text="node(s) didn't satisfy existing pods anti-affinity rules",
)

_PERCENTAGE: Final = Range(0, 100, "not in valid range [0, 100]")


class InterPodAffinityArgs(PluginArgs, frozen=True):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[Int32, msgspec.Meta(extra={RULE: _PERCENTAGE})] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class InterPodAffinity:
    """Rejects nodes too far from pods that the pod needs, or too near to those it avoids.

    Also nodes near to pods that avoid it; prefers by the preferred terms of both sides.
    """

    name: ClassVar[str] = "InterPodAffinity"
    arguments: ClassVar[type[PluginArgs]] = InterPodAffinityArgs
    reasons: ClassVar[tuple[Reason, ...]] = (TOO_FAR, TOO_NEAR, REFUSED)
    judges_by_group: ClassVar[bool] = True
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("label/"),
        Row("pods/labels"),
        Row("pods/terms"),
        Object(Kind.NAMESPACE),
    )

    def __init__(self, args: InterPodAffinityArgs) -> None:
        """Take what the required terms of placed pods weigh, and whether preferred ones count."""
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_existing = args.ignore_preferred_terms_of_existing_pods

    # Filter

    def prepare(self, pod: PodView, rows: RowsView) -> RequiredTerm | Skip | Reject:
        """Find the pods that count; skip a pod that has no terms and that no term picks."""
        try:
            term = RequiredTerm.of(pod, rows)
        except SelectorError as error:
            unreadable = Reason(code="InterPodAffinity/Unreadable", text=f"parsing pod: {error}")
            return Reject((unreadable,), resolvable=False)
        return SKIP if term.rejects_nothing(rows) else term

    def add_pod(self, term: RequiredTerm, pod: PodView, rows: RowsView) -> RequiredTerm:
        return term.with_pod(pod, rows, 1)

    def remove_pod(self, term: RequiredTerm, pod: PodView, rows: RowsView) -> RequiredTerm:
        return term.with_pod(pod, rows, -1)

    def remove_pods(
        self, term: RequiredTerm, pods: Crowd, rows: RowsView
    ) -> tuple[RequiredTerm, Sequence[int]]:
        """Count pods less; those are in the way that the pod avoids, or that avoid it."""
        return term.without(pods, rows)

    def filter(self, term: RequiredTerm, rows: RowsView) -> Codes:
        """Reject by the first rule that is broken."""
        codes = rows.passed()
        # What is looked at last speaks first.
        rules = (
            (term.refused(rows), REFUSED, True),
            (term.too_near(rows), TOO_NEAR, True),
            (term.too_far(rows), TOO_FAR, False),
        )
        for broken, reason, resolvable in rules:
            if broken is not None:
                codes[broken] = rows.code((reason,), resolvable=resolvable)
        return codes

    # Score

    def pre_score(self, pod: PodView, rows: RowsView) -> tuple[Wish, ...] | Skip:
        """Find the preferred terms that count; without any there is no score."""
        if self._ignores_existing and not has_preferences(pod.terms):
            return SKIP
        found = wishes(pod, rows, hard_pod_affinity_weight=self._hard_weight)
        return found if concern_anybody(found, rows) else SKIP

    def score(self, term: tuple[Wish, ...], rows: RowsView) -> Scores:
        return row_scores(term, rows)

    def normalize(self, scores: Scores) -> Scores:
        """Scale between the lowest and the highest."""
        return scaled_between_extremes(scores)
