"""VolumeRestrictions: pods that can't share a disk or a claim do not come together.

Disks written into the pod itself (Google, Amazon, Ceph, iSCSI) conflict with the same disk in a
pod of the same node, for some unless both only read. A ReadWriteOncePod claim that a pod anywhere
uses already keeps all others off every node. Evicting the other pod helps in both cases.

Counting conflicts is kube-scheduler's: a claim in use counts once, whoever uses it; a pod that
comes or goes counts once for each of its volumes with the claim's *name*, whatever its namespace.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.storage import PersistentVolumeClaim
from k8s_scheduler.api.volume_claims import READ_WRITE_ONCE_POD, claim_not_found, named_claims
from k8s_scheduler.api.volumes import Rbd, Volume
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.plugin import SKIP, Reject, Skip
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Codes, RowsView

DISK_CONFLICT = Reason(code="VolumeRestrictions/DiskConflict", text="node(s) had no available disk")
CLAIM_IN_USE = Reason(
    code="VolumeRestrictions/ClaimInUse",
    text="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
)


def missing_claim(name: str) -> Reason:
    """Return the reason for a claim that is not there."""
    return Reason(code="VolumeRestrictions/MissingClaim", text=claim_not_found(name))


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The pod's disks, its ReadWriteOncePod claims, and how often those are in use."""

    disks: tuple[Volume, ...]
    exclusive: frozenset[str]
    conflicts: int


class VolumeRestrictions:
    """Rejects nodes with somebody who can't share."""

    name: ClassVar[str] = "VolumeRestrictions"
    reasons: ClassVar[tuple[Reason, ...]] = (DISK_CONFLICT, CLAIM_IN_USE)
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("pods/volumes"),
        Object(Kind.PERSISTENT_VOLUME_CLAIM),
    )

    def prepare(self, pod: PodView, rows: RowsView) -> Restrictions | Skip | Reject:
        """Find the pod's disks, and which of its claims are for one pod only and taken."""
        volumes = pod.volumes
        exclusive: dict[str, None] = {}
        for name in named_claims(volumes):
            claim: PersistentVolumeClaim | None = rows.object(
                Kind.PERSISTENT_VOLUME_CLAIM, pod.namespace, name
            )
            if claim is None:
                return Reject((missing_claim(name),), resolvable=False)
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive[name] = None
        conflicts = sum(rows.users_of_claim(pod.namespace, name) > 0 for name in exclusive)
        disks = tuple(volume for volume in volumes if _is_disk(volume))
        if not disks and not conflicts:
            return SKIP
        return Restrictions(disks, frozenset(exclusive), conflicts)

    def add_pod(self, term: Restrictions, pod: PodView, rows: RowsView) -> Restrictions:
        """Count one more pod's use of the claims."""
        return _recounted(term, pod, 1)

    def remove_pod(self, term: Restrictions, pod: PodView, rows: RowsView) -> Restrictions:
        """Count one pod less."""
        return _recounted(term, pod, -1)

    def filter(self, term: Restrictions, rows: RowsView) -> Codes:
        """Reject by disks first, then by claims."""
        codes = rows.passed()
        if term.conflicts > 0:
            codes[:] = rows.code((CLAIM_IN_USE,), resolvable=True)
        if term.disks:
            taken = np.zeros(len(rows), dtype=np.bool_)
            for position, users in rows.volume_users_by_row():
                held = (volume for user in users.values() for volume in user.volumes)
                taken[position] = _conflict(term.disks, held)
            codes[taken] = rows.code((DISK_CONFLICT,), resolvable=True)
        return codes


def _recounted(term: Restrictions, pod: PodView, sign: int) -> Restrictions:
    shared = sum(name in term.exclusive for name in named_claims(pod.volumes))
    return replace(term, conflicts=term.conflicts + sign * shared) if shared else term


def _is_disk(volume: Volume) -> bool:
    return any(
        source is not None
        for source in (
            volume.gce_persistent_disk,
            volume.aws_elastic_block_store,
            volume.rbd,
            volume.iscsi,
        )
    )


def _conflict(wanted: tuple[Volume, ...], held: Iterable[Volume]) -> bool:
    return any(_same_disk(mine, other) for other in held for mine in wanted)


def _same_disk(mine: Volume, other: Volume) -> bool:
    """Return whether two volumes are one disk that can't be shared."""
    if mine.gce_persistent_disk is not None and other.gce_persistent_disk is not None:
        a, b = mine.gce_persistent_disk, other.gce_persistent_disk
        return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
    if mine.aws_elastic_block_store is not None and other.aws_elastic_block_store is not None:
        return mine.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if mine.iscsi is not None and other.iscsi is not None:
        same = mine.iscsi.iqn == other.iscsi.iqn
        return same and not (mine.iscsi.read_only and other.iscsi.read_only)
    if mine.rbd is not None and other.rbd is not None:
        same = _same_image(mine.rbd, other.rbd)
        return same and not (mine.rbd.read_only and other.rbd.read_only)
    return False


def _same_image(a: Rbd, b: Rbd) -> bool:
    """Return whether two Ceph images are one: some monitor in common, same pool and image."""
    shared = any(monitor in (b.monitors or ()) for monitor in a.monitors or ())
    return shared and (a.pool, a.image) == (b.pool, b.image)
