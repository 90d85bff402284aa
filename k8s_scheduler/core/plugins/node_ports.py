"""NodePorts: a pod that needs ports of the node goes only where they are free.

Two ports collide if protocol and number are equal and the addresses are equal or one of them is
all addresses. Evicting the pod that holds the port helps.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from k8s_scheduler.api.ports import HostPort
from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.dependencies import Dependency, Row
from k8s_scheduler.core.framework.plugin import SKIP, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView
from k8s_scheduler.core.framework.views.values import NodeRow

TAKEN = Reason(
    code="NodePorts/Taken",
    text="node(s) didn't have free ports for the requested pod ports",
)


class NodePorts:
    """Rejects nodes on which a host port of the pod is taken."""

    name: ClassVar[str] = "NodePorts"
    reasons: ClassVar[tuple[Reason, ...]] = (TAKEN,)
    depends_on: ClassVar[tuple[Dependency, ...]] = (Row("ports"),)

    def prepare(self, pod: PodView, rows: RowsView) -> tuple[HostPort, ...] | Skip:
        """Nothing to reject for a pod without host ports."""
        return pod.host_ports or SKIP

    def quotas(self, term: tuple[HostPort, ...], pods: Departed, rows: RowsView) -> Iterable[Quota]:
        """Let none come that has a port which is wanted."""
        by_number = pods.by(_numbers)
        barred: dict[int, None] = {}
        for wanted in term:
            for place in by_number.get(wanted.port, ()):
                if any(wanted.conflicts(other) for other in pods.pods[place].host_ports):
                    barred[place] = None
        return (Quota(0, barred),)

    def filter(self, term: tuple[HostPort, ...], rows: RowsView) -> Codes:
        """Reject by every port that is taken."""
        taken: dict[NodeRow, int] = {}
        for wanted in term:
            for row, addresses in rows.port_users(wanted.protocol, wanted.port).items():
                if row not in taken and wanted.is_taken(addresses):
                    taken[row] = 1
            if len(taken) == len(rows):
                break
        return rows.where(rows.spread_out(taken).astype(np.bool_), TAKEN, resolvable=True)


def _numbers(pod: PodView) -> Iterator[int]:
    return (port.port for port in pod.host_ports)
