"""One row, or several, as they would be with some pods more or some pods less.

Dry runs of preemption and nominated pods are judged on it. Nothing of the state is changed or
copied: only the differences are kept, and views add them up.

Host ports are a set, as kube-scheduler has them in its dry runs: a port that one pod gives up is
free, also where another pod on the node has the same one (which no scheduler lets happen).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.ports import HostPort
from k8s_scheduler.api.resources import CPU, MEMORY, Requests
from k8s_scheduler.core.state.amounts.names import (
    NON_ZERO,
    POD_COUNT,
    REQUESTED,
    Families,
    wrapped,
)
from k8s_scheduler.core.state.columns import AnyColumn
from k8s_scheduler.core.state.nodes.ports import PortIndex
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.user import VolumeUser, volume_user
from k8s_scheduler.core.state.volumes.users_by_row import VolumeUsers

Differences: TypeAlias = npt.NDArray[np.int64]
_NO_ADDRESS: Final[Mapping[str, bool]] = {}


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod and what it takes from its node."""

    pod: Pod
    requests: Requests
    ports: tuple[HostPort, ...]

    @property
    def uid(self) -> PodUid:
        return PodUid(self.pod.metadata.uid)

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0


class Delta:
    """The differences of one row."""

    def __init__(self, row: NodeRow, *, ports: PortIndex, volumes: VolumeUsers) -> None:
        self.row = row
        self._ports = ports
        self._volumes = volumes
        # What to add to columns, by their names.
        self.sums: dict[str, int] = {}
        # By protocol and port: on which addresses it is taken, or is not any more.
        self._ports_held: dict[tuple[str, int], dict[str, bool]] = {}
        self._users: dict[PodUid, VolumeUser] | None = None

    def add(self, placed: PlacedPod) -> None:
        self._count(placed, 1)
        user = volume_user(placed.pod)
        if user is not None:
            self._own_users()[user.uid] = user

    def remove(self, placed: PlacedPod) -> None:
        self._count(placed, -1)
        if placed.pod.spec.volumes:
            self._own_users().pop(placed.uid, None)

    def remove_all(self, pods: Iterable[PlacedPod]) -> None:
        """Let pods be gone; what several in a row ask for alike is counted at once."""
        requests: Requests | None = None
        count = 0
        for placed in pods:
            if placed.requests is not requests:
                if requests is not None:
                    self._sum(requests, -count)
                requests, count = placed.requests, 0
            count += 1
            if placed.ports:
                self._hold(placed, is_held=False)
            if placed.pod.spec.volumes:
                self._own_users().pop(placed.uid, None)
        if requests is not None:
            self._sum(requests, -count)

    def copy(self) -> "Delta":
        twin = Delta(self.row, ports=self._ports, volumes=self._volumes)
        twin.sums = dict(self.sums)
        twin._ports_held = {port: dict(held) for port, held in self._ports_held.items()}
        twin._users = None if self._users is None else dict(self._users)
        return twin

    # Reading

    def difference(self, column: str) -> int:
        return self.sums.get(column, 0)

    def shifted(self, name: str, column: AnyColumn) -> AnyColumn:
        difference = self.difference(name)
        return column + difference if difference else column

    def differences(self, families: Families, resources: tuple[str, ...]) -> Differences:
        """Return what to add to the numbers of a block: [family][resource][0]."""
        found = [wrapped(self.difference(name)) for name in families.columns(resources)]
        return np.array(found, dtype=np.int64).reshape(2, len(resources), 1)

    def taken(self, row: NodeRow) -> Mapping[str, int]:
        """Return what is taken more on a row, by resource; cpu and memory included."""
        if row != self.row:
            return {}
        skipped = len(REQUESTED)
        return {
            column[skipped:]: wrapped(difference)
            for column, difference in self.sums.items()
            if column.startswith(REQUESTED)
        }

    def port_users(self, protocol: str, port: int) -> Mapping[NodeRow, Mapping[str, int]]:
        """Return row -> address -> count of the pods that use a host port, for this row."""
        if not self._ports_held:
            # As it is on most of the rows that are promised to pods, and these may be thousands.
            users = self._ports.users(protocol, port).get(self.row)
            return {self.row: users} if users else {}
        held = dict(self._ports.users(protocol, port).get(self.row, {}))
        for ip, is_held in self._ports_held.get((protocol, port), _NO_ADDRESS).items():
            held[ip] = int(is_held)
        left = {ip: count for ip, count in held.items() if count}
        return {self.row: left} if left else {}

    def users_on(self, row: NodeRow) -> Mapping[PodUid, VolumeUser] | None:
        if row != self.row:
            return None
        return self._volumes.on(row) if self._users is None else self._users

    @property
    def is_lasting(self) -> bool:
        """Whether it says the same whatever becomes of the row: it takes no copy of its users."""
        return self._users is None

    # Counting

    def _count(self, placed: PlacedPod, sign: int) -> None:
        self._sum(placed.requests, sign)
        if placed.ports:
            self._hold(placed, is_held=sign > 0)

    def _sum(self, requests: Requests, times: int) -> None:
        sums = self.sums
        for resource, amount in requests.amounts:
            name = REQUESTED + resource
            sums[name] = sums.get(name, 0) + times * amount
        for name, amount in (
            (NON_ZERO + CPU, requests.non_zero_milli_cpu),
            (NON_ZERO + MEMORY, requests.non_zero_memory_bytes),
            (POD_COUNT, 1),
        ):
            sums[name] = sums.get(name, 0) + times * amount

    def _hold(self, placed: PlacedPod, *, is_held: bool) -> None:
        for port in placed.ports:
            self._ports_held.setdefault((port.protocol, port.port), {})[port.ip] = is_held

    def _own_users(self) -> dict[PodUid, VolumeUser]:
        if self._users is None:
            self._users = dict(self._volumes.on(self.row))
        return self._users


class Deltas:
    """The differences of several rows, in the order of the rows in view.

    Reads like a `Delta`. The same columns are read again and again: each is put together once, so
    the deltas must not change afterwards.
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
