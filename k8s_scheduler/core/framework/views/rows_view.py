"""What plugins get to see of nodes, of the pods on them, and of other objects.

`RowsView` gives the declared columns, cut down to the rows in question; anything else is an
error, in production too. A verdict can therefore depend on nothing the engine does not know
about. With a `Delta` or several, rows in view are shown as they would be with other pods on them.

Columns of pods: `pods/labels` (how many pods of which labels are on a row), `pods/terminating`
(whether they are on their way out), `pods/terms` (which affinity terms they hold), `pods/volumes`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.taints import TaintSet
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.base import (
    FEW,
    Codes,
    Counts,
    Mask,
    Scores,
    UndeclaredReadError,
    extremes,
)
from k8s_scheduler.core.framework.views.reads import NodeCount
from k8s_scheduler.core.framework.views.volumes_view import VolumesView
from k8s_scheduler.core.state.amounts.amounts import MANY
from k8s_scheduler.core.state.amounts.kept import Block, RowFormula
from k8s_scheduler.core.state.amounts.names import OFFERED_AND_TAKEN, Families, wrapped
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.class_index import Choices, ClassIndex
from k8s_scheduler.core.state.volumes.offers import StorageDemand

__all__ = [
    "FEW",
    "Codes",
    "Counts",
    "Mask",
    "RowsView",
    "Scores",
    "UndeclaredReadError",
    "extremes",
]


class RowsView(VolumesView):
    """The declared columns of some rows, for one plugin."""

    __slots__ = ()

    def count_nodes(self, mask: Mask | None = None) -> int:
        """Return for how many nodes the rows of a mask, or all in view, stand."""
        each = self._multiplicity
        if self._reads is not None:
            self._reads.node_count(NodeCount.ALL if mask is None else NodeCount.EACH)
        if each is None:
            return len(self._rows) if mask is None else int(np.count_nonzero(mask))
        return int(np.add.reduce(each if mask is None else each[mask]))

    # Nodes

    @property
    def all_nodes(self) -> "RowsView":
        """The same view over all nodes, as they are."""
        rows = self._state.nodes.present_rows()
        found = RowsView(self._state, rows, self._reader, self._verdicts, reads=self._reads)
        return found.seen_as(wide=True)

    @property
    def row_ids(self) -> list[NodeRow]:
        """The rows in view; they are keys of what `volume_users` and the like return."""
        return [NodeRow(row) for row in self._rows.tolist()]

    def name_of(self, row: NodeRow) -> NodeName:
        """Return the name of the node in a row. It never changes, so it is always visible."""
        return self._state.nodes.name_of(row)

    def row_of(self, name: NodeName) -> NodeRow | None:
        self._took_everywhere("name")
        return self._state.nodes.row_of(name)

    @property
    def layout(self) -> object:
        """Something that is the same object as long as every node keeps its row."""
        self._took_everywhere("name")
        return self._state.nodes.present_rows()

    @property
    def moment(self) -> tuple[int, ...]:
        """Numbers of which one is another as soon as anything has changed.

        For what is not to be worked out twice in a decision. They are not taken down.
        """
        return *self._state.moment, self._state.nodes.labels.generation

    def full_column(self) -> npt.NDArray[np.int64]:
        """Return zeros for all rows there are, in view or not; `cut` makes it a column."""
        return np.zeros(self._state.nodes.row_count, dtype=np.int64)

    def cut(self, full: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._cut(full)

    def mask_of(self, name: NodeName) -> Mask:
        self._took_column("name")
        row = self._state.nodes.row_of(name)
        found: Mask = self._rows == (NodeRow(-1) if row is None else row)
        return found

    def column(self, name: str) -> AnyColumn:
        """Return a declared column of these rows. Do not write to it."""
        self._check(name)
        self._took_column(name)
        found = self._cut(self._state.nodes.column(name))
        return found if self._delta is None else self._delta.shifted(name, found)

    def block(
        self, families: Families, resources: tuple[str, ...], *, exact: bool = False
    ) -> Block:
        """Return [family][resource][row] of declared columns. Do not write to it.

        In floats if they are exact and you do not insist on integers: the results are the same.
        """
        self._took_block(families, resources)
        amounts = self._state.nodes.amounts
        layout = amounts.layout(resources)
        exact = exact or not layout.is_small or self._delta is not None
        if self._is_whole and self._delta is None:
            return amounts.whole(families, layout, len(self._rows), exact=exact)
        found = amounts.part(families, layout, self._rows, exact=exact)
        if self._delta is None:
            return found
        return found + self._delta.differences(families, resources)

    def kept(
        self, formula: RowFormula, resources: tuple[str, ...]
    ) -> tuple[Block, list[float]] | None:
        """Return [number][row] of what is worked out of a block, and how much is free at least.

        Do not write to it. None where nothing is kept: work it out.
        """
        if len(self._rows) < MANY or self._delta is not None:
            return None
        self._took_block(formula.families, resources)
        nodes = self._state.nodes
        found = nodes.amounts.kept(formula, resources, nodes.row_count)
        if found is None:
            return None
        if self._is_whole:
            return found.shown[:, : len(self._rows)], found.least_free
        return found.shown.take(self._rows, axis=1, mode="clip"), found.least_free

    def _took_block(self, families: Families, resources: tuple[str, ...]) -> None:
        """Check and take down a read of all columns that these resources have in both families."""
        if not self._declared.cover_block(families, resources):
            for name in families.columns(resources):
                self._check(name)
        if self._reads is not None:
            for name in families.taken_down(resources):
                if self._wide or name not in self._reads.narrow:
                    self._took_column(name)

    @property
    def columns(self) -> object:
        """Something that is the same object as long as `with_columns` says the same."""
        return self._state.nodes.amounts.columns

    def with_columns(self, resources: Iterable[str]) -> tuple[str, ...]:
        """Return the resources that are read best by `block`; the others are by `cells`.

        This may decide how something is worked out, not what comes out. It is not taken down.
        """
        return self._state.nodes.amounts.with_columns(resources)

    def cells(
        self, resources: Mapping[str, int]
    ) -> Iterator[tuple[int, list[tuple[str, int, int]]]]:
        """Yield (position in this view, [(resource, offered, taken)]) of resources without columns.

        What is not told is zero. For any number of resources: it takes as long as there is
        something to tell.
        """
        self._took_block(OFFERED_AND_TAKEN, tuple(resources))
        on = self._state.nodes.amounts.cells_on
        delta = self._delta
        for position, row in enumerate(self._rows.tolist()):
            here = on(row)
            more = {} if delta is None else delta.taken(row)
            if not here and not more:
                continue
            told = [
                (name, cell[0], wrapped(cell[1] + more.get(name, 0)))
                for name, cell in here.items()
                if name in resources
            ]
            told += [(n, 0, less) for n, less in more.items() if n in resources and n not in here]
            if told:
                yield position, told

    def is_everywhere(self, resources: tuple[str, ...]) -> bool:
        """Return whether every node there is offers all these resources.

        This may decide how something is worked out, not what comes out. It is not taken down.
        """
        return self._state.nodes.amounts.layout(resources).is_everywhere

    @property
    def node_count(self) -> int:
        """How many nodes there are in all, not only in this view."""
        self._check("node_count")
        return self._took_scalar("node_count", len(self._state.nodes))

    def label(self, key: str) -> npt.NDArray[np.int64]:
        """Return the ids of each row's value of a label; negative where the label is absent."""
        name = f"label/{key}"
        self._check(name)
        self._took_column(name)
        return self._cut(self._state.nodes.labels.column(key))

    def label_here(self, key: str) -> str | None:
        """Return the value of a label on the one row in view; None if it has none."""
        name = f"label/{key}"
        self._check(name)
        self._took_column(name)
        labels = self._state.nodes.labels
        value_id = labels.id_at(int(self._rows[0]), key)
        return None if value_id < 0 else labels.value(value_id)

    def has_label(self, key: str) -> Mask:
        """Return which rows have a label, whatever its value."""
        name = f"has_label/{key}"
        self._check(name)
        self._took_column(name)
        found: Mask = self._cut(self._state.nodes.labels.column(key)) >= 0
        return found

    def is_label_on_all_nodes(self, key: str) -> bool:
        """Return whether every node there is, in view or not, has a label with this key."""
        self._took_label_everywhere(key)
        return self._state.nodes.labels.holder_count(key) == len(self._state.nodes)

    def domains(self, key: str) -> npt.NDArray[np.int64]:
        """Return the ids of the label's values that nodes, in view or not, have. Do not write."""
        self._took_label_everywhere(key)
        return self._state.nodes.labels.ids_in_use(key)

    def label_id(self, value: str) -> int:
        """Return the id of a label value; no row has it if no node ever had that value."""
        if self._wide:
            # What is kept with it is void when a new value gets an id.
            self._took_scalar("label_values", self._state.nodes.labels.generation)
        return self._state.nodes.labels.known_id(value)

    def label_value(self, value_id: int) -> str:
        return self._state.nodes.labels.value(value_id)

    def label_numbers(self, ids: npt.NDArray[np.int64]) -> tuple[Counts, Mask]:
        """Return label values of some ids as whole numbers, and which are any."""
        return self._state.nodes.label_numbers.at(ids)

    @property
    def label_value_count(self) -> int:
        """How many ids of label values there are: the length of an array by domain."""
        self._took_scalar("label_values", self._state.nodes.labels.generation)
        return self._state.nodes.labels.value_count

    @property
    def label_generation(self) -> int:
        """A number to keep arrays by domain with: another one once there are other ids.

        That decides how long an array is, not what is in it: no fact, unlike the former.
        """
        return self._state.nodes.labels.generation

    def image_sizes(self, name: str) -> npt.NDArray[np.int64]:
        """Return the size of an image on each row, 0 where it is not."""
        self._check("images")
        self._took_column("images")
        return self._cut(self._state.nodes.images.column(name, self._state.nodes.row_count))

    def image_holders(self, name: str) -> int:
        """Return how many nodes hold an image, in view or not."""
        self._check("images")
        return self._took_scalar(f"image/{name}", len(self._state.nodes.images.sizes(name)))

    def taint_sets(self) -> Iterable[tuple[int, TaintSet]]:
        """Return the (id, taints) pairs that the column `taint_set` refers to."""
        return self._sets("taint_set", self._state.nodes.taint_sets)

    def feature_sets(self) -> Iterable[tuple[int, tuple[str, ...]]]:
        """Return the (id, features) pairs that the column `feature_set` refers to."""
        return self._sets("feature_set", self._state.nodes.feature_sets)

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

    # Other objects

    # The caller knows which type belongs to the kind.
    def object(self, kind: Kind, namespace: str, name: str) -> Any:
        """Return an object; None if there is none."""
        self._check_kind(kind)
        found = self._state.objects.get(kind, namespace, name)
        if self._reads is not None:
            self._reads.object(("get", kind, namespace, name), found)
        return found

    def original(self, kind: Kind, namespace: str, name: str) -> Any:
        """Return an object as the API server has it, whatever it is assumed to be."""
        self._check_kind(kind)
        found = self._state.objects.original(kind, namespace, name)
        if self._reads is not None:
            self._reads.object(("original", kind, namespace, name), found)
        return found

    def objects(self, kind: Kind, namespace: str) -> tuple[Any, ...]:
        """Return the objects of one namespace (empty: cluster-scoped), by name."""
        self._check_kind(kind)
        found = self._state.objects.list(kind, namespace)
        if self._reads is not None:
            self._reads.object(("list", kind, namespace, ""), found)
        return found

    def all_objects(self, kind: Kind) -> tuple[Any, ...]:
        """Return the objects of all namespaces, by namespace and name."""
        self._check_kind(kind)
        found = self._state.objects.list_all(kind)
        if self._reads is not None:
            self._reads.object(("list_all", kind, "", ""), found)
        return found

    def offers(self, kind: Kind, class_name: str) -> ClassIndex | None:
        """Return the volumes or capacities that claims of a class can be served from, if any."""
        self._check_kind(kind)
        found = self._state.offers.of(kind, class_name)
        if self._reads is not None:
            stamp = None if found is None else found.stamp
            self._reads.object(("class", kind, class_name, ""), stamp)
        return found

    def choices(self, offers: ClassIndex, demand: StorageDemand, depth: int) -> Choices:
        """Return what suits a demand, by label value; right until the offers change."""
        return offers.choices(demand, depth, self._state.nodes.labels)

    # Verdicts

    def passed(self) -> Codes:
        """Return codes that let every row pass."""
        return np.zeros(len(self._rows), dtype=np.int64)

    def where(self, rejected: Mask, reason: Reason, *, resolvable: bool) -> Codes:
        """Return codes that reject the masked rows for one reason."""
        codes = self.passed()
        if np.count_nonzero(rejected):
            codes[rejected] = self.code((reason,), resolvable=resolvable)
        return codes

    def code(self, reasons: tuple[Reason, ...], *, resolvable: bool) -> int:
        return self._verdicts.code_of(self._reader.name, reasons, resolvable=resolvable)
