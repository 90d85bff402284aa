"""Several rows at once, each as it would be with some pods more.

Reads like a `Delta`, whose row is one of several: what a view shows is in the order of its rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.state.amounts.names import Families, wrapped
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.delta import Delta, Differences
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.user import VolumeUser


class Deltas:
    """The differences of several rows, in the order of the rows in view.

    They are read column by column, and the same columns again and again: each is put together once.
    Whoever changes one of the deltas afterwards makes another object.
    """

    __slots__ = ("_by_row", "_columns", "_deltas", "_sums")

    def __init__(self, deltas: Sequence[Delta]) -> None:
        self._deltas = deltas
        self._sums = [delta.sums for delta in deltas]
        self._columns: dict[str, Differences | None] = {}
        self._by_row: dict[NodeRow, Delta] | None = None

    def shifted(self, name: str, column: AnyColumn) -> AnyColumn:
        found = self._column(name)
        return column if found is None else column + found

    def differences(self, families: Families, resources: tuple[str, ...]) -> Differences:
        """Return what to add to the numbers of a block: [family][resource][row]."""
        names = families.columns(resources)
        found = np.zeros((len(names), len(self._deltas)), dtype=np.int64)
        for number, name in enumerate(names):
            column = self._column(name)
            if column is not None:
                found[number] = column
        return found.reshape(2, len(resources), len(self._deltas))

    def _column(self, name: str) -> Differences | None:
        """Return what to add to each row; None if that is nothing."""
        if name not in self._columns:
            found = [wrapped(sums[name]) if name in sums else 0 for sums in self._sums]
            self._columns[name] = np.array(found, dtype=np.int64) if any(found) else None
        return self._columns[name]

    def port_users(self, protocol: str, port: int) -> Mapping[NodeRow, Mapping[str, int]]:
        """Return row -> address -> count of the pods that use a host port, for these rows."""
        found: dict[NodeRow, Mapping[str, int]] = {}
        for delta in self._deltas:
            found.update(delta.port_users(protocol, port))
        return found

    def users_on(self, row: NodeRow) -> Mapping[PodUid, VolumeUser] | None:
        """Return the pods with volumes on a row; None if it is none of these."""
        delta = self._delta_of(row)
        return None if delta is None else delta.users_on(row)

    def taken(self, row: NodeRow) -> Mapping[str, int]:
        """Return what is taken more on a row, by resource; cpu and memory included."""
        delta = self._delta_of(row)
        return {} if delta is None else delta.taken(row)

    def _delta_of(self, row: NodeRow) -> Delta | None:
        if self._by_row is None:
            self._by_row = {delta.row: delta for delta in self._deltas}
        return self._by_row.get(row)
