"""What plugins get to see of nodes, of the pods on them, and of other objects.

`RowsView` gives the declared columns, cut down to the rows in question; anything else is an
error, in production too. A verdict can therefore depend on nothing the engine does not know
about. With a `Delta`, the one row in view is shown as it would be with other pods on it.

Columns of pods: `pods/labels` (how many pods of which labels are on a row), `pods/terminating`
(whether they are on their way out), `pods/terms` (which affinity terms they hold), `pods/volumes`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.label_selectors import Requirements
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.taints import Taint
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.reasons import Reason, Verdict, VerdictTable
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.delta import Delta
from k8s_scheduler.core.state.held_terms import PodTerm
from k8s_scheduler.core.state.node_table import Rows
from k8s_scheduler.core.state.volume_users import VolumeUser

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
# A mask over the distinct label sets of placed pods; `pods_by_row` makes counts of it.
PodMask = npt.NDArray[np.bool_]


class UndeclaredReadError(Exception):
    """A plugin reached for something it did not declare."""


class RowsView:
    """The declared columns of some rows, for one plugin."""

    __slots__ = ("_declared", "_delta", "_is_whole", "_plugin", "_rows", "_state", "_verdicts")

    def __init__(
        self,
        state: Cache,
        rows: Rows,
        *,
        plugin: str,
        declared: Declarations,
        verdicts: VerdictTable,
        delta: Delta | None = None,
    ) -> None:
        self._state = state
        self._rows = rows
        self._plugin = plugin
        self._declared = declared
        self._verdicts = verdicts
        self._delta = delta
        # All nodes in view, and no row without one: columns are shown as they are, uncopied.
        self._is_whole = rows is state.nodes.present_rows() and state.nodes.is_dense

    def __len__(self) -> int:
        return len(self._rows)

    # Nodes

    @property
    def all_nodes(self) -> "RowsView":
        """The same view over all nodes, as they are."""
        return RowsView(
            self._state,
            self._state.nodes.present_rows(),
            plugin=self._plugin,
            declared=self._declared,
            verdicts=self._verdicts,
        )

    @property
    def row_ids(self) -> list[NodeRow]:
        """The rows in view; they are keys of what `volume_users` and the like return."""
        return [NodeRow(row) for row in self._rows.tolist()]

    def name_of(self, row: NodeRow) -> NodeName:
        """Return the name of the node in a row. It never changes, so it is always visible."""
        return self._state.nodes.name_of(row)

    def row_of(self, name: NodeName) -> NodeRow | None:
        """Return the row of the node of this name."""
        return self._state.nodes.row_of(name)

    @property
    def layout(self) -> object:
        """Something that is the same object as long as every node keeps its row."""
        return self._state.nodes.present_rows()

    def full_column(self) -> npt.NDArray[np.int64]:
        """Return zeros for all rows there are, in view or not; `cut` makes it a column."""
        return np.zeros(self._state.nodes.row_count, dtype=np.int64)

    def cut(self, full: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the entries of the rows in view."""
        return self._cut(full)

    def mask_of(self, name: NodeName) -> Mask:
        """Return where the node of this name is."""
        row = self._state.nodes.row_of(name)
        found: Mask = self._rows == (NodeRow(-1) if row is None else row)
        return found

    def column(self, name: str) -> AnyColumn:
        """Return a declared column of these rows. Do not write to it."""
        self._check(name)
        found = self._cut(self._state.nodes.column(name))
        if self._delta is not None and (difference := self._delta.difference(name)):
            return found + difference
        return found

    @property
    def node_count(self) -> int:
        """How many nodes there are in all, not only in this view."""
        self._check("node_count")
        return len(self._state.nodes)

    def label(self, key: str) -> npt.NDArray[np.int64]:
        """Return the ids of each row's value of a label; negative where the label is absent."""
        self._check(f"label/{key}")
        return self._cut(self._state.nodes.labels.column(key))

    def label_id(self, value: str) -> int:
        """Return the id of a label value; no row has it if nobody ever had that value."""
        return self._state.nodes.labels.known_id(value)

    def label_value(self, value_id: int) -> str:
        """Return the label value with an id."""
        return self._state.nodes.labels.value(value_id)

    @property
    def label_value_count(self) -> int:
        """How many ids of label values there are: the length of an array by domain."""
        return self._state.nodes.labels.value_count

    def image_sizes(self, name: str) -> npt.NDArray[np.int64]:
        """Return the size of an image on each row, 0 where it is not."""
        self._check("images")
        return self._cut(self._state.nodes.images.column(name, self._state.nodes.row_count))

    def image_holders(self, name: str) -> int:
        """Return how many nodes hold an image, in view or not."""
        self._check("images")
        return len(self._state.nodes.images.sizes(name))

    def taint_sets(self) -> Iterable[tuple[int, tuple[Taint, ...]]]:
        """Return the live (id, taints) pairs that the column `taint_set` refers to."""
        self._check("taint_set")
        return self._state.nodes.taint_sets.items()

    def feature_sets(self) -> Iterable[tuple[int, tuple[str, ...]]]:
        """Return the live (id, features) pairs that the column `feature_set` refers to."""
        self._check("feature_set")
        return self._state.nodes.feature_sets.items()

    def spread_out(self, by_row: Mapping[NodeRow, int]) -> npt.NDArray[np.int64]:
        """Return a column of what `by_row` says of each row; 0 where it says nothing."""
        if not by_row:
            return np.zeros(len(self._rows), dtype=np.int64)
        full = np.zeros(self._state.nodes.row_count, dtype=np.int64)
        full[list(by_row.keys())] = list(by_row.values())
        return self._cut(full)

    def translate(self, column: str, by_id: Mapping[int, int]) -> npt.NDArray[np.int64]:
        """Return, for a column of ids, what `by_id` says for each; 0 where it says nothing."""
        ids = self.column(column)
        table = np.zeros(int(ids.max(initial=0)) + 1, dtype=np.int64)
        for value_id, value in by_id.items():
            if value_id < len(table):
                table[value_id] = value
        return table[ids]

    # Pods on nodes

    def port_users(self, protocol: str, port: int) -> Mapping[NodeRow, Mapping[str, int]]:
        """Return row -> address -> count of the pods that use a host port."""
        self._check("ports")
        if self._delta is not None:
            return self._delta.port_users(protocol, port)
        return self._state.nodes.ports.users(protocol, port)

    def pods_matching(
        self, namespaces: Iterable[str] | None, requirements: Requirements | None
    ) -> PodMask:
        """Return which pods are picked; `namespaces` of None are all. Masks can be combined."""
        self._check("pods/labels")
        return self._state.pods.label_sets.match(namespaces, requirements)

    def pods_by_row(self, picked: PodMask, *, with_terminating: bool) -> Counts:
        """Return how many of the picked pods are on each row, in view or not; `cut` makes a column.

        A `Delta` does not show here.
        """
        self._check("pods/labels")
        pods = self._state.pods
        counted = picked[pods.column("label_set")]
        if not with_terminating:
            self._check("pods/terminating")
            counted &= ~pods.column("terminating")
        return np.bincount(pods.column("row")[counted], minlength=self._state.nodes.row_count)

    def terms_picking(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[PodTerm]:
        """Return the terms of placed pods that pick a pod in a namespace with these labels."""
        self._check("pods/terms")
        return self._state.pods.held_terms.picking(namespace, namespace_labels, labels)

    def pods_by_domain(self, weights: PodMask | Counts, key: str) -> Counts:
        """Return the sum of the pods' weights on nodes with each value of a label, by its id.

        Weights are for label sets, as `pods_matching` has them. All nodes count, and terminating
        pods too. One more place at the end is always 0, so that the negative id of an absent label
        finds nothing. A `Delta` does not show here.
        """
        self._check("pods/labels")
        return self._sum_by_domain("label_set", weights, key)

    def holders_by_domain(self, weights: Mapping[PodTerm, int], key: str) -> Counts:
        """Return the sum of the weights of the terms that pods hold, laid out likewise."""
        self._check("pods/terms")
        return self._sum_by_domain("holder", self._state.pods.held_terms.weigh(weights), key)

    def volume_users(self, row: NodeRow) -> Mapping[PodUid, VolumeUser]:
        """Return the pods on a row that use volumes."""
        self._check("pods/volumes")
        if self._delta is not None and row == self._delta.row:
            return self._delta.volume_users()
        return self._state.volumes.on(row)

    def volume_users_by_row(self) -> Iterator[tuple[int, Mapping[PodUid, VolumeUser]]]:
        """Yield (position in this view, users) of the rows with pods that use volumes."""
        self._check("pods/volumes")
        if self._delta is not None:
            if users := self._delta.volume_users():
                yield 0, users
            return
        on = self._state.volumes.on
        for position, row in enumerate(self._rows.tolist()):
            if users := on(row):
                yield position, users

    def count_volumes(self) -> Counts:
        """Return how many claims and disks the pods of each row use; a shared one counts often."""
        self._check("pods/volumes")
        if self._delta is not None:
            users = self._delta.volume_users().values()
            return np.array([sum(len(user.volumes) for user in users)], dtype=np.int64)
        return self._cut(self._state.volumes.counts(self._state.nodes.row_count))

    def users_of_claim(self, namespace: str, claim: str) -> int:
        """Return how many pods on nodes use a claim. A `Delta` does not show here."""
        self._check("pods/volumes")
        users = self._state.volumes.rows_using(namespace, claim)
        nodes = self._state.nodes
        return sum(count for row, count in users.items() if nodes.node_at(row) is not None)

    # Other objects

    # The caller knows which type belongs to the kind.
    def object(self, kind: Kind, namespace: str, name: str) -> Any:
        """Return an object; None if there is none."""
        self._check_kind(kind)
        return self._state.objects.get(kind, namespace, name)

    def original(self, kind: Kind, namespace: str, name: str) -> Any:
        """Return an object as the API server has it, whatever it is assumed to be."""
        self._check_kind(kind)
        return self._state.objects.original(kind, namespace, name)

    def objects(self, kind: Kind, namespace: str) -> tuple[Any, ...]:
        """Return the objects of one namespace (empty: cluster-scoped), by name."""
        self._check_kind(kind)
        return self._state.objects.list(kind, namespace)

    def all_objects(self, kind: Kind) -> tuple[Any, ...]:
        """Return the objects of all namespaces, by namespace and name."""
        self._check_kind(kind)
        return self._state.objects.list_all(kind)

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

    # Sums

    def _sum_by_domain(self, column: str, weights: npt.NDArray[Any], key: str) -> Counts:
        """Sum up the weights, given by the ids in a column of pods, of the pods in each domain."""
        self._check(f"label/{key}")
        pods, labels = self._state.pods, self._state.nodes.labels
        ids, rows = pods.column(column), pods.column("row")
        counts = weights != 0
        counted = counts[ids]
        if not counted.all():
            ids, rows = ids[counted], rows[counted]
        # The row of a node that is gone has no labels, so its pods are in no domain: -1, which
        # becomes the place in front of the first.
        places = labels.column(key)[rows] + 1
        size = labels.value_count + 1
        distinct = weights[counts]
        if len(distinct) and (distinct == distinct[0]).all():
            found = np.bincount(places, minlength=size) * int(distinct[0])
        else:
            found = np.bincount(places, weights[ids], minlength=size).astype(np.int64)
        sums = np.empty(size, dtype=np.int64)
        sums[:-1] = found[1:]
        # Whoever looks up the domain of a node without the label finds nothing.
        sums[-1] = 0
        return sums

    # Declarations

    def _check(self, name: str) -> None:
        if not self._declared.cover(name):
            raise UndeclaredReadError(
                f"plugin {self._plugin} reads column {name!r} without declaring it in depends_on"
            )

    def _check_kind(self, kind: Kind) -> None:
        if not self._declared.cover_kind(kind):
            raise UndeclaredReadError(
                f"plugin {self._plugin} reads {kind} objects without declaring it in depends_on"
            )

    def _cut(self, column: AnyColumn) -> AnyColumn:
        """Return the part of a column that is in view; nobody can write to the state through it."""
        if not self._is_whole:
            return column.take(self._rows)
        part = column[: len(self._rows)]
        part.flags.writeable = False
        return part
