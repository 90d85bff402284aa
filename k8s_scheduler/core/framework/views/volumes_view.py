"""What plugins get to see of the volumes that placed pods use."""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.views.base import Counts
from k8s_scheduler.core.framework.views.placed_pods_view import PlacedPodsView
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.user import VolumeUser


class Attached(Protocol):
    """Volumes that are attached on a row, by unique name."""

    @property
    def by_driver(self) -> Mapping[str, int]:
        """How many there are."""

    def __contains__(self, name: str) -> bool: ...


class VolumesView(PlacedPodsView):
    """The volumes of pods on some rows, for one plugin."""

    __slots__ = ()

    def volume_users(self, row: NodeRow) -> Mapping[PodUid, VolumeUser]:
        """Return the pods on a row that use volumes."""
        self._check("pods/volumes")
        self._took_column("pods/volumes", wide=row not in self._rows)
        if self._delta is not None and (users := self._delta.users_on(row)) is not None:
            return users
        return self._state.volumes.on(row)

    def attached_volumes(self, row: NodeRow) -> tuple[Attached | None, list[VolumeUser]]:
        """Return what drivers attach for the pods on a row, and pods whose volumes to add to it.

        What objects say is in it, so reading it is reading no object. None where `volume_users`
        have to be looked at one by one.
        """
        users = self.volume_users(row)
        known = self._state.volumes
        here = known.on(row)
        if users is here:
            return known.attached_on(row), []
        gone = [user for uid, user in here.items() if users.get(uid) is not user]
        come = [user for uid, user in users.items() if here.get(uid) is not user]
        return (known.attached_without(row, gone) if gone else known.attached_on(row)), come

    def volume_users_by_row(self) -> Iterator[tuple[int, Mapping[PodUid, VolumeUser]]]:
        """Yield (position in this view, users) of the rows with pods that use volumes."""
        self._check("pods/volumes")
        self._took_column("pods/volumes")
        on = self._state.volumes.on if self._delta is None else self._delta.users_on
        for position, row in enumerate(self._rows.tolist()):
            if users := on(row):
                yield position, users

    def count_volumes(self) -> Counts:
        """Return how many claims and disks the pods of each row use; a shared one counts often."""
        self._check("pods/volumes")
        self._took_column("pods/volumes")
        if self._delta is None:
            return self._cut(self._state.volumes.counts(self._state.nodes.row_count))
        users_on = self._delta.users_on
        users = [(users_on(row) or {}).values() for row in self._rows.tolist()]
        return np.array([sum(len(u.volumes) for u in each) for each in users], dtype=np.int64)

    def users_of_claim(self, namespace: str, claim: str) -> int:
        """Return how many pods on nodes use a claim. A `Delta` does not show here."""
        self._check("pods/volumes")
        self._took_everywhere("pods/volumes")
        self._took_everywhere("name")
        users = self._state.volumes.rows_using(namespace, claim)
        nodes = self._state.nodes
        return sum(count for row, count in users.items() if nodes.node_at(row) is not None)
