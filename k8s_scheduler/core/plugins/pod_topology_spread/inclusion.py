"""Which nodes count: a constraint may leave out those where the newcomer could not go anyway."""

from collections.abc import Mapping
from dataclasses import dataclass

from k8s_scheduler.api.selectors.types import NodeSelector
from k8s_scheduler.api.taints import Toleration, Tolerations
from k8s_scheduler.core.framework.helpers.node_selection import match_labels, match_selector
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Mask, RowsView
from k8s_scheduler.core.plugins.pod_topology_spread.constraints import Constraint


@dataclass(frozen=True, slots=True)
class Inclusion:
    """What of a pod rules out nodes. Masks are None where nothing is ruled out."""

    labels: Mapping[str, str]
    required: NodeSelector | None
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, pod: PodView) -> "Inclusion":
        """Take the pod's demands and tolerations."""
        affinity = pod.node_affinity
        required = None if affinity is None else affinity.required
        return cls(pod.node_selector, required, pod.tolerations)

    def masks(self, constraints: tuple[Constraint, ...], rows: RowsView) -> list[Mask | None]:
        """Return, for each constraint, the nodes that its policies let count."""
        affinity = taints = None
        if any(c.honors_affinity for c in constraints):
            affinity = self._by_affinity(rows)
        if any(c.honors_taints for c in constraints):
            taints = self._by_taints(rows)
        return [
            both(affinity if c.honors_affinity else None, taints if c.honors_taints else None)
            for c in constraints
        ]

    def _by_affinity(self, rows: RowsView) -> Mask | None:
        picked = match_labels(self.labels, rows) if self.labels else None
        if self.required is None:
            return picked
        return both(picked, match_selector(self.required, rows))

    def _by_taints(self, rows: RowsView) -> Mask | None:
        tolerations = Tolerations(self.tolerations)
        unbearable = {
            set_id: 1 for set_id, taints in rows.taint_sets() if not tolerations.cover_hard(taints)
        }
        return rows.translate("taint_set", unbearable) == 0 if unbearable else None


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
