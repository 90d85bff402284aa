"""NodeDeclaredFeatures: a pod goes only to nodes that declare what its spec can't do without.

Which features a spec needs is the business of `api.node_features`. Preemption can't help.
Distinct sets of features are few, so each is judged once and the answer looked up per node.
"""

from typing import ClassVar

from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

UNDECLARED = Reason(
    code="NodeDeclaredFeatures/Undeclared",
    text="node(s) didn't match Pod's required features",
)


class NodeDeclaredFeatures:
    """Rejects nodes that do not declare a feature which the pod's spec can't do without."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    reasons: ClassVar[tuple[Reason, ...]] = (UNDECLARED,)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("feature_set"),)

    def prepare(self, pod: PodView, rows: RowsView) -> tuple[str, ...] | Skip:
        """Take what the pod needs; nearly all need nothing."""
        return pod.required_features or SKIP

    def filter(self, term: tuple[str, ...], rows: RowsView) -> Codes:
        rejected = rows.code((UNDECLARED,), resolvable=False)
        by_set = {
            set_id: rejected
            for set_id, declared in rows.feature_sets()
            if any(feature not in declared for feature in term)
        }
        return rows.translate("feature_set", by_set)
