"""VolumeRestrictions: pods that can't share a disk or a claim do not come together.

Disks written into the pod itself (Google, Amazon, Ceph, iSCSI) conflict with the same disk in a
pod of the same node, for some unless both only read. A ReadWriteOncePod claim that a pod anywhere
uses already keeps all others off every node. Evicting the other pod helps in both cases.

Counting conflicts is kube-scheduler's: a claim in use counts once, however many pods use it; a pod
that comes or goes counts once for each of its volumes with the claim's *name*, in any namespace.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.storage.claims import READ_WRITE_ONCE_POD, claim_not_found, named_claims
from k8s_scheduler.api.storage.objects import PersistentVolumeClaim
from k8s_scheduler.core.framework.departed import Departed, Quota
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.plugin import SKIP, Reject, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

DISK_CONFLICT = Reason(code="VolumeRestrictions/DiskConflict", text="node(s) had no available disk")
CLAIM_IN_USE = Reason(
    code="VolumeRestrictions/ClaimInUse",
    text="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
)


def missing_claim(name: str) -> Reason:
    """Return the reason for a claim that is not there."""
    return Reason(code="VolumeRestrictions/MissingClaim", text=claim_not_found(name))


# What two volumes have in common that are one disk: its kind, and what it is called there.
Handle: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The pod's disks, its ReadWriteOncePod claims, and how often those are in use."""

    # By handle: whether it is only read.
    disks: Mapping[Handle, bool]
    exclusive: frozenset[str]
    conflicts: int


class VolumeRestrictions:
    """Rejects nodes with a pod that uses the same disk and can't share it.

    Rejects every node for a ReadWriteOncePod claim that another pod uses.
    """

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
        if not conflicts and not any(map(_is_disk, volumes)):
            return SKIP
        return Restrictions(_disks(volumes), frozenset(exclusive), conflicts)

    def add_pod(self, term: Restrictions, pod: PodView, rows: RowsView) -> Restrictions:
        """Count one more pod's use of the claims."""
        return _recounted(term, pod, 1)

    def remove_pod(self, term: Restrictions, pod: PodView, rows: RowsView) -> Restrictions:
        return _recounted(term, pod, -1)

    def counts(self, term: Restrictions) -> bool:
        """Only claims that are for one pod are counted; disks are looked at where they are."""
        return bool(term.exclusive)

    def without(self, term: Restrictions, pods: Departed, rows: RowsView) -> Restrictions:
        by_claim = pods.by(_names_of_claims)
        shared = sum(len(by_claim.get(name, ())) for name in sorted(term.exclusive))
        return replace(term, conflicts=term.conflicts - shared) if shared else term

    def quotas(self, term: Restrictions, pods: Departed, rows: RowsView) -> Iterable[Quota] | None:
        """Let none come that has one of the disks, or a claim that is for one pod only."""
        barred: dict[int, None] = {}
        if term.exclusive:
            by_claim = pods.by(_names_of_claims)
            for name in sorted(term.exclusive):
                barred |= dict.fromkeys(by_claim.get(name, ()))
            if barred and term.conflicts < 0:
                # Some more may come before it is one too many, and one may count several times.
                return None
        if term.disks:
            by_disk = pods.by(_names_of_disks)
            for handle in term.disks:
                for place in dict.fromkeys(by_disk.get(handle, ())):
                    if _is_taken(term.disks, pods.pods[place].volumes):
                        barred[place] = None
        return (Quota(0, barred),)

    def filter(self, term: Restrictions, rows: RowsView) -> Codes:
        """Reject by disks first, then by claims."""
        codes = rows.passed()
        if term.conflicts > 0:
            codes[:] = rows.code((CLAIM_IN_USE,), resolvable=True)
        if term.disks:
            taken = np.zeros(len(rows), dtype=np.bool_)
            for position, users in rows.volume_users_by_row():
                held = (volume for user in users.values() for volume in user.volumes)
                taken[position] = _is_taken(term.disks, held)
            codes[taken] = rows.code((DISK_CONFLICT,), resolvable=True)
        return codes


def _recounted(term: Restrictions, pod: PodView, sign: int) -> Restrictions:
    shared = sum(name in term.exclusive for name in named_claims(pod.volumes))
    return replace(term, conflicts=term.conflicts + sign * shared) if shared else term


def _names_of_claims(pod: PodView) -> Iterator[str]:
    return named_claims(pod.volumes)


def _names_of_disks(pod: PodView) -> Iterator[Handle]:
    for volume in pod.volumes:
        for handle, _ in _handles(volume):
            yield handle


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


def _disks(volumes: Iterable[Volume]) -> dict[Handle, bool]:
    """Return the disks of a pod, and whether it only reads them."""
    found: dict[Handle, bool] = {}
    for volume in volumes:
        for handle, only_reads in _handles(volume):
            found[handle] = found.get(handle, True) and only_reads
    return found


def _is_taken(disks: Mapping[Handle, bool], held: Iterable[Volume]) -> bool:
    """Return whether one of the disks is among the volumes of others, and can't be shared.

    By handles: a pod may have thousands of volumes, and so may those that are there.
    """
    return any(
        handle in disks and not (disks[handle] and only_reads)
        for volume in held
        for handle, only_reads in _handles(volume)
    )


def _handles(volume: Volume) -> Iterator[tuple[Handle, bool]]:
    """Yield what a volume's disk is known by, and whether it can be shared with others who read."""
    if (google := volume.gce_persistent_disk) is not None:
        yield ("gce", google.pd_name), google.read_only
    if (amazon := volume.aws_elastic_block_store) is not None:
        yield ("aws", amazon.volume_id), False
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn), iscsi.read_only
    if (ceph := volume.rbd) is not None:
        # Two images are one if they have the name, the pool and some monitor in common.
        for monitor in ceph.monitors or ():
            yield ("rbd", ceph.pool, ceph.image, monitor), ceph.read_only
