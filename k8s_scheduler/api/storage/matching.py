"""Whether a volume suits a claim, wherever the pod may run.

From where a volume can be reached is a question to nodes and asked elsewhere.
"""

from typing import Final

from k8s_scheduler.api.storage.objects import PersistentVolume, PersistentVolumeClaim

AVAILABLE: Final = "Available"
FILESYSTEM: Final = "Filesystem"


def is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume is bound to a claim or reserved for it; a uid, if set, counts."""
    kept = volume.spec.claim_ref
    if kept is None:
        return False
    metadata = claim.metadata
    if (kept.namespace, kept.name) != (metadata.namespace, metadata.name):
        return False
    return not kept.uid or kept.uid == metadata.uid


def is_free(volume: PersistentVolume) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == AVAILABLE
        and volume.metadata.deletion_timestamp is None
    )


def is_alike(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether mode and attributes class are what the claim asks for."""
    wanted, offered = claim.spec, volume.spec
    return (wanted.volume_mode or FILESYSTEM) == (offered.volume_mode or FILESYSTEM) and (
        wanted.volume_attributes_class_name or ""
    ) == (offered.volume_attributes_class_name or "")


def allows_access(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume can be used in all the ways the claim asks for."""
    offered = volume.spec.access_modes or ()
    return all(mode in offered for mode in claim.spec.access_modes or ())
