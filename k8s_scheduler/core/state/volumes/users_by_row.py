"""Which placed pods use volumes that other pods may need or share."""

from collections.abc import Iterable, Mapping

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.core.state.volumes.attached_volumes import (
    AttachedVolumes,
    FewerVolumes,
    RowVolumes,
)
from k8s_scheduler.core.state.volumes.user import VolumeUser, volume_user
from k8s_scheduler.lib.hollow import compact

_NO_USERS: Mapping[PodUid, VolumeUser] = {}
_NOWHERE: Mapping[NodeRow, int] = {}


class VolumeUsers:
    """By row: the pods with volumes. By claim: the rows of its users."""

    def __init__(self, objects: ObjectStore) -> None:
        self._attached = AttachedVolumes(objects)
        self._rows: dict[NodeRow, dict[PodUid, VolumeUser]] = {}
        self._claims: dict[tuple[str, str], dict[NodeRow, int]] = {}
        self._counts = Columns()
        self._counts.add("volumes", np.int64)

    def add(self, row: NodeRow, pod: Pod) -> None:
        user = volume_user(pod)
        if user is None:
            return
        self._rows.setdefault(row, {})[user.uid] = user
        self._counts.reserve(row + 1)
        self._counts["volumes"][row] += len(user.volumes)
        for key in _claims_of(user):
            rows = self._claims.setdefault(key, {})
            rows[row] = rows.get(row, 0) + 1
        self._attached.came(row, user)

    def renew(self, row: NodeRow, pod: Pod) -> None:
        """Take a newer version of a pod with the same volumes: nothing is counted anew."""
        users, user = self._rows.get(row), volume_user(pod)
        if users is not None and user is not None:
            users[user.uid] = user

    def remove(self, row: NodeRow, uid: PodUid) -> None:
        """Let a pod go; one without volumes was never taken in."""
        users = self._rows.get(row)
        user = users.pop(uid, None) if users else None
        if users is None or user is None:
            return
        self._counts["volumes"][row] -= len(user.volumes)
        self._attached.left(row, user, users)
        if not users:
            del self._rows[row]
        for key in _claims_of(user):
            rows = self._claims[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                if not rows:
                    del self._claims[key]
        self._claims = compact(self._claims)

    def on(self, row: NodeRow) -> Mapping[PodUid, VolumeUser]:
        return self._rows.get(row, _NO_USERS)

    def attached_on(self, row: NodeRow) -> RowVolumes | None:
        """Return what drivers attach for the pods of a row; None if each has to be looked at."""
        return self._attached.on(row, self.on(row))

    def attached_without(self, row: NodeRow, gone: Iterable[VolumeUser]) -> FewerVolumes | None:
        found = self.attached_on(row)
        return None if found is None else self._attached.without(found, gone)

    def object_changed(self, kind: Kind, namespace: str, name: str) -> list[NodeRow]:
        """Take note of a change; return the rows for whose pods something else is attached now."""
        found = self._attached.object_changed(kind, namespace, name)
        for row in found:
            self._attached.forget_troubled(row, self.on(row))
        return found

    def forget_attached(self) -> list[NodeRow]:
        """Let go of what only saves looking at claims again; return the rows of which there was."""
        return self._attached.clear()

    def counts(self, row_count: int) -> AnyColumn:
        """Return how many volumes the pods of each row use; a shared one counts often."""
        self._counts.reserve(row_count)
        return self._counts["volumes"]

    def cut(self, rows: int) -> None:
        """Take note that there are only so many rows; no pods are on those behind them."""
        self._counts.cut(rows)
        self._rows = compact(self._rows)

    def rows_using(self, namespace: str, claim: str) -> Mapping[NodeRow, int]:
        return self._claims.get((namespace, claim), _NOWHERE)


def _claims_of(user: VolumeUser) -> list[tuple[str, str]]:
    return [
        (user.namespace, volume.persistent_volume_claim.claim_name)
        for volume in user.volumes
        if volume.persistent_volume_claim is not None
    ]
