"""TaintToleration: keep pods off nodes whose taints they do not tolerate.

Filter: only NoSchedule and NoExecute reject. Preemption can't help.

Score. Assumption: a PreferNoSchedule taint is worth avoiding, each as much as the next. Formula:
the number of such taints the pod does not tolerate, scaled so that the worst node gets 0 and a
node without any gets 100. Ties are left to the engine.

Distinct sets of taints are few, so each is judged once and the answer looked up per node.
"""

from typing import ClassVar

from k8s_scheduler.api.taints import PREFER_NO_SCHEDULE, Toleration, Tolerations
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import MAX_SCORE, Same
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores
from k8s_scheduler.core.plugins.scoring import default_normalize

UNTOLERATED = Reason(
    code="TaintToleration/Untolerated",
    text="node(s) had untolerated taint(s)",
)


class TaintToleration:
    """Rejects nodes with a `NoSchedule` or `NoExecute` taint that the pod does not tolerate.

    Prefers nodes with few untolerated `PreferNoSchedule` taints.
    """

    name: ClassVar[str] = "TaintToleration"
    reasons: ClassVar[tuple[Reason, ...]] = (UNTOLERATED,)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("taint_set"),)

    def prepare(self, pod: PodView, rows: RowsView) -> tuple[Toleration, ...]:
        """Take the pod's tolerations; a pod without any is rejected by every hard taint."""
        return pod.tolerations

    def filter(self, term: tuple[Toleration, ...], rows: RowsView) -> Codes:
        tolerations = Tolerations(term)
        by_set = {
            set_id: 1
            for set_id, taints in rows.taint_sets()
            if taints and not tolerations.cover_hard(taints)
        }
        if not by_set:
            return rows.passed()
        return rows.translate("taint_set", by_set) * rows.code((UNTOLERATED,), resolvable=False)

    def pre_score(self, pod: PodView, rows: RowsView) -> tuple[Toleration, ...] | Same:
        """Take the tolerations that speak of soft taints; mostly there are no such taints."""
        term = tuple(t for t in pod.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        tolerations = Tolerations(term)
        if any(tolerations.uncovered_soft(taints) for _, taints in rows.taint_sets()):
            return term
        return Same(MAX_SCORE)

    def score(self, term: tuple[Toleration, ...], rows: RowsView) -> Scores:
        """Count untolerated soft taints."""
        tolerations = Tolerations(term)
        uncovered = tolerations.uncovered_soft
        by_set = {set_id: uncovered(taints) for set_id, taints in rows.taint_sets()}
        return rows.translate("taint_set", by_set)

    def normalize(self, scores: Scores) -> Scores:
        """Reverse the scale: a node without an untolerated taint gets 100."""
        return default_normalize(scores, reverse=True)
