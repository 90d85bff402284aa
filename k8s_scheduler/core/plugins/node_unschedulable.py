"""NodeUnschedulable: keep pods off cordoned nodes.

Rejects a node whose spec.unschedulable is set unless the pod tolerates the taint that stands
for it. Preemption can't help, so the rejection stands until the node or the pod changes.
"""

from typing import ClassVar

from k8s_scheduler.api.taints import NO_SCHEDULE, Taint
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

UNSCHEDULABLE = Reason(
    code="NodeUnschedulable/Unschedulable",
    text="node(s) were unschedulable",
)
CORDON_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable:
    """Keeps pods off cordoned nodes, unless they tolerate the taint that stands for it."""

    name: ClassVar[str] = "NodeUnschedulable"
    reasons: ClassVar[tuple[Reason, ...]] = (UNSCHEDULABLE,)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("unschedulable"),)

    def prepare(self, pod: PodView, rows: RowsView) -> Skip | None:
        """Nothing to reject for a pod that tolerates cordoned nodes."""
        return SKIP if pod.tolerates(CORDON_TAINT) else None

    def filter(self, term: None, rows: RowsView) -> Codes:
        return rows.where(rows.column("unschedulable"), UNSCHEDULABLE, resolvable=False)
