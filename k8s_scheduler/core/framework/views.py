"""What plugins get to see instead of the tables.

`PodView` holds what pods of one shape share: neither uid nor priority nor attempt, so a term
prepared from it is right for every pod of the shape. `RowsView` gives the declared columns, cut
down to the rows in question; anything else is an error, in production too. A verdict can
therefore depend on nothing the engine does not know about.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import NodeAffinity, Pod
from k8s_scheduler.api.ports import HostPort, host_ports
from k8s_scheduler.api.resources import Requests, pod_requests
from k8s_scheduler.api.taints import Taint, Toleration
from k8s_scheduler.core.framework.dependencies import Row
from k8s_scheduler.core.framework.reasons import Reason, Verdict, VerdictTable
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.node_table import NodeTable, Rows

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.int64]


class UndeclaredReadError(Exception):
    """A plugin reached for something it did not declare."""


class PodView:
    """The pod, as far as pods of one shape are alike."""

    __slots__ = ("_pod", "requests")

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self.requests: Requests = pod_requests(pod)

    @property
    def container_requests(self) -> Requests:
        """What the containers request, without what is set for the pod as a whole."""
        if self._pod.spec.resources is None:
            return self.requests
        return pod_requests(self._pod, with_pod_level=False)

    @property
    def node_name(self) -> NodeName:
        """The node the pod asks for by name; empty for nearly all."""
        return NodeName(self._pod.spec.node_name)

    @property
    def node_selector(self) -> Mapping[str, str]:
        """The labels a node must have."""
        return self._pod.spec.node_selector or {}

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """What the pod demands and prefers of nodes."""
        affinity = self._pod.spec.affinity
        return None if affinity is None else affinity.node_affinity

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The ports of the node itself that the pod needs."""
        return host_ports(self._pod)

    @property
    def images(self) -> tuple[str, ...]:
        """The images of init containers and containers, as written, in this order."""
        spec = self._pod.spec
        containers = (*(spec.init_containers or ()), *(spec.containers or ()))
        return tuple(container.image for container in containers)

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """What the pod puts up with."""
        return tuple(self._pod.spec.tolerations or ())

    def tolerates(self, taint: Taint) -> bool:
        """Return whether some toleration covers the taint."""
        return any(t.tolerates(taint) for t in self.tolerations)


class RowsView:
    """The declared columns of some rows, for one plugin."""

    __slots__ = ("_dependencies", "_plugin", "_rows", "_table", "_verdicts")

    def __init__(
        self,
        table: NodeTable,
        rows: Rows,
        *,
        plugin: str,
        dependencies: tuple[Row, ...],
        verdicts: VerdictTable,
    ) -> None:
        self._table = table
        self._rows = rows
        self._plugin = plugin
        self._dependencies = dependencies
        self._verdicts = verdicts

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, name: str) -> AnyColumn:
        """Return a declared column of these rows."""
        self._check(name)
        return self._table.column(name)[self._rows]

    @property
    def node_count(self) -> int:
        """How many nodes there are in all, not only in this view."""
        self._check("node_count")
        return len(self._table)

    def label(self, key: str) -> npt.NDArray[np.int64]:
        """Return the ids of each row's value of a label; negative where the label is absent."""
        self._check(f"label/{key}")
        return self._table.labels.column(key)[self._rows]

    def label_id(self, value: str) -> int:
        """Return the id of a label value; no row has it if nobody ever had that value."""
        return self._table.labels.known_id(value)

    def label_value(self, value_id: int) -> str:
        """Return the label value with an id."""
        return self._table.labels.value(value_id)

    def port_users(self, protocol: str, port: int) -> Mapping[NodeRow, Mapping[str, int]]:
        """Return row -> address -> count of the pods that use a host port."""
        self._check("ports")
        return self._table.ports.users(protocol, port)

    def image_sizes(self, name: str) -> Mapping[NodeRow, int]:
        """Return row -> size of an image, for all nodes that hold it."""
        self._check("images")
        return self._table.images.sizes(name)

    def spread_out(self, by_row: Mapping[NodeRow, int]) -> npt.NDArray[np.int64]:
        """Return a column of what `by_row` says of each row; 0 where it says nothing."""
        if not by_row:
            return np.zeros(len(self._rows), dtype=np.int64)
        full = np.zeros(self._table.row_count, dtype=np.int64)
        full[list(by_row.keys())] = list(by_row.values())
        return full[self._rows]

    def taint_sets(self) -> Iterable[tuple[int, tuple[Taint, ...]]]:
        """Return the live (id, taints) pairs that the column `taint_set` refers to."""
        self._check("taint_set")
        return self._table.taint_sets.items()

    def translate(self, column: str, by_id: Mapping[int, int]) -> npt.NDArray[np.int64]:
        """Return, for a column of ids, what `by_id` says for each; 0 where it says nothing."""
        ids = self.column(column)
        table = np.zeros(int(ids.max(initial=0)) + 1, dtype=np.int64)
        for value_id, value in by_id.items():
            if value_id < len(table):
                table[value_id] = value
        return table[ids]

    def mask_of(self, name: NodeName) -> Mask:
        """Return where the node of this name is. A name never changes, so it is always visible."""
        row = self._table.row_of(name)
        found: Mask = self._rows == (NodeRow(-1) if row is None else row)
        return found

    # Verdicts

    def passed(self) -> Codes:
        """Return codes that let every row pass."""
        return np.zeros(len(self._rows), dtype=np.int64)

    def where(self, rejected: Mask, reason: Reason, *, resolvable: bool) -> Codes:
        """Return codes that reject the masked rows for one reason."""
        return np.where(rejected, self.code((reason,), resolvable=resolvable), 0)

    def code(self, reasons: tuple[Reason, ...], *, resolvable: bool) -> int:
        """Return the code of a rejection by this plugin."""
        return self._verdicts.code(Verdict(self._plugin, reasons, resolvable))

    def _check(self, name: str) -> None:
        if not any(dependency.covers(name) for dependency in self._dependencies):
            raise UndeclaredReadError(
                f"plugin {self._plugin} reads column {name!r} without declaring it in depends_on"
            )
