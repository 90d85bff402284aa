"""Which placed pods use volumes that pods can get in each other's way with."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from k8s_scheduler.api.meta import ObjectMeta, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.volumes import Volume
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.columns import AnyColumn, Columns
from k8s_scheduler.lib.hollow import compact

_NOBODY: Mapping[PodUid, "VolumeUser"] = {}
_NOWHERE: Mapping[NodeRow, int] = {}


@dataclass(frozen=True, slots=True)
class VolumeUser:
    """A pod and those of its volumes that matter."""

    namespace: str
    name: str
    uid: PodUid
    volumes: tuple[Volume, ...]

    def controls(self, metadata: ObjectMeta) -> bool:
        """Return whether the pod is the controlling owner of an object."""
        return any(o.controller and o.uid == self.uid for o in metadata.owner_references or ())


def volume_user(pod: Pod) -> VolumeUser | None:
    """Return the pod as a user of volumes; None if it has none that matter."""
    if not pod.spec.volumes:
        return None
    volumes = tuple(v for v in pod.spec.volumes if has_disk(v))
    if not volumes:
        return None
    metadata = pod.metadata
    return VolumeUser(metadata.namespace, metadata.name, PodUid(metadata.uid), volumes)


def has_disk(volume: Volume) -> bool:
    """Return whether a volume is a claim or a disk; of those that are kept, images are neither."""
    return volume.image is None or volume != Volume(image=volume.image)


class VolumeUsers:
    """By row: the pods with volumes. By claim: the rows of its users."""

    def __init__(self) -> None:
        self._rows: dict[NodeRow, dict[PodUid, VolumeUser]] = {}
        self._claims: dict[tuple[str, str], dict[NodeRow, int]] = {}
        self._counts = Columns()
        self._counts.add("volumes", np.int64)

    def add(self, row: NodeRow, pod: Pod) -> None:
        """Take in a pod."""
        user = volume_user(pod)
        if user is None:
            return
        self._rows.setdefault(row, {})[user.uid] = user
        self._counts.reserve(row + 1)
        self._counts["volumes"][row] += len(user.volumes)
        for key in _claims_of(user):
            rows = self._claims.setdefault(key, {})
            rows[row] = rows.get(row, 0) + 1

    def remove(self, row: NodeRow, uid: PodUid) -> None:
        """Let a pod go; one without volumes was never taken in."""
        users = self._rows.get(row)
        user = users.pop(uid, None) if users else None
        if users is None or user is None:
            return
        self._counts["volumes"][row] -= len(user.volumes)
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
        """Return the users on a row."""
        return self._rows.get(row, _NOBODY)

    def counts(self, row_count: int) -> AnyColumn:
        """Return how many volumes the pods of each row use; a shared one counts often."""
        self._counts.reserve(row_count)
        return self._counts["volumes"]

    def rows_using(self, namespace: str, claim: str) -> Mapping[NodeRow, int]:
        """Return row -> number of pods for the users of a claim."""
        return self._claims.get((namespace, claim), _NOWHERE)


def _claims_of(user: VolumeUser) -> list[tuple[str, str]]:
    return [
        (user.namespace, volume.persistent_volume_claim.claim_name)
        for volume in user.volumes
        if volume.persistent_volume_claim is not None
    ]
