"""Which nominated pods count for a pod in question: the others that are not less important."""

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.framework.runtime import Nominated
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.delta import PlacedPod


def nominated_for(state: Cache, pod: Pod) -> Nominated:
    """Return, by row, the pods whose promised room the pod has to respect."""
    if not len(state.nominations):
        return {}
    priority = pod.spec.priority or 0
    found: dict[NodeRow, list[PlacedPod]] = {}
    for node in state.nominations.nodes():
        row = state.nodes.row_of(node)
        if row is None or state.nodes.node_at(row) is None:
            continue
        others = [
            placed
            for uid, other in state.nominations.on(node).items()
            if uid != pod.metadata.uid and (other.spec.priority or 0) >= priority
            for placed in _as_placed(other)
        ]
        if others:
            found[row] = others
    return found


def _as_placed(pod: Pod) -> tuple[PlacedPod, ...]:
    """Return the pod as if it were placed; one that can't be read takes nothing."""
    try:
        return (PlacedPod(pod, pod_requests(pod), host_ports(pod)),)
    except QuantityError:
        return ()
