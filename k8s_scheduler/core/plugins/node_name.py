"""NodeName: a pod that names its node may only go there.

Preemption can't help: only a node of that name can.
"""

from typing import ClassVar

from k8s_scheduler.api.meta import NodeName as Name
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.plugin import SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

OTHER_NODE = Reason(
    code="NodeName/OtherNode",
    text="node(s) didn't match the requested node name",
)


class NodeName:
    """A pod that names its node may only go there."""

    name: ClassVar[str] = "NodeName"
    reasons: ClassVar[tuple[Reason, ...]] = (OTHER_NODE,)
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def prepare(self, pod: PodView, rows: RowsView) -> Name | Skip:
        """Nothing to reject unless the pod names a node."""
        return pod.node_name or SKIP

    def filter(self, term: Name, rows: RowsView) -> Codes:
        return rows.where(~rows.mask_of(term), OTHER_NODE, resolvable=False)
