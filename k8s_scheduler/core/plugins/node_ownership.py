"""NodeOwnership: a scheduler keeps to the nodes that are its own.

Rejects every node that the scheduler's own node selector does not pick, for whatever pod. Where
schedulers share a cluster and each has its nodes, they can't race for room. kube-scheduler has
nothing like it: the plugin runs only where SchedulerExtras set `nodeOwnership`, in every profile,
before all other filters.

Only the choice of nodes is limited. Nodes of others, and the pods on them, stay part of the
cluster: they count where pods are spread or look for each other. Preemption can't make a node
ours, so no pod is evicted elsewhere.
"""

from typing import ClassVar

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.extras import NodeOwnershipSettings
from k8s_scheduler.api.config.node_selector import Selector
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.helpers.node_selection import match_selector
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

NOT_OWNED = Reason(
    code="NodeOwnership/NotOwned",
    text="node(s) didn't match the node ownership of this scheduler",
)


class NodeOwnership:
    """Rejects the nodes that are not this scheduler's.

    Ours, and in no profile's list: where `nodeOwnership` is set in the extras, it runs before all
    others in every profile.
    """

    name: ClassVar[str] = "NodeOwnership"
    arguments: ClassVar[type[PluginArgs]] = NodeOwnershipSettings
    reasons: ClassVar[tuple[Reason, ...]] = (NOT_OWNED,)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("label/"),)

    def __init__(self, args: NodeOwnershipSettings) -> None:
        """Take the selector; the plugin runs only where there is one."""
        self._selector = (args.node_selector or Selector()).on_the_wire()

    def prepare(self, pod: PodView, rows: RowsView) -> None:
        """Nothing depends on the pod."""

    def filter(self, term: None, rows: RowsView) -> Codes:
        return rows.where(~match_selector(self._selector, rows), NOT_OWNED, resolvable=False)
