"""Which volumes of a pod a CSI driver has to attach, by driver and handle.

Nothing about a node matters but whether it has a CSINode (`state.volume_handles`), so a pod's
volumes are told in at most two ways.
"""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.storage.claims import (
    claim_not_found,
    claim_of,
    not_the_owner,
)
from k8s_scheduler.api.storage.csi_translation import TranslationError
from k8s_scheduler.api.storage.objects import PersistentVolumeClaim
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.framework.views.values import driver_of_claim, driver_of_disk, unique_name

# `driver/handle` -> driver
Attachable: TypeAlias = dict[str, str]


class MissingClaimError(Exception):
    """A claim that the pod can't do without is not there."""


class PodWithVolumes(Protocol):
    """The pod whose volumes are asked about; its name is asked for only if a claim has it."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    def controls(self, metadata: ObjectMeta) -> bool: ...


def attachable(
    volumes: Iterable[Volume],
    owner: PodWithVolumes,
    rows: RowsView,
    *,
    on_csi_node: bool,
    must_exist: bool,
) -> Attachable:
    """Return what has to be attached for a pod on a node with or without a CSINode.

    Raises MissingClaimError for a claim that must exist, and StatusError for one that is not the
    pod's own or a disk that can't be translated.
    """
    found: Attachable = {}
    for volume in volumes:
        used = claim_of(volume, owner)
        if used is None:
            found.update(_in_tree_disk(volume, on_csi_node=on_csi_node))
            continue
        if not used.name:
            raise StatusError("PersistentVolumeClaim had no name")
        claim: PersistentVolumeClaim | None = rows.object(
            Kind.PERSISTENT_VOLUME_CLAIM, owner.namespace, used.name
        )
        if claim is None:
            if must_exist:
                raise MissingClaimError(
                    f"looking up PVC {owner.namespace}/{used.name}: {claim_not_found(used.name)}"
                )
            continue
        if used.ephemeral and not owner.controls(claim.metadata):
            raise StatusError(not_the_owner(claim.metadata, owner.namespace, owner.name))
        driver, handle = driver_of_claim(claim, rows.object, on_csi_node=on_csi_node)
        if driver and handle:
            found[unique_name(driver, handle)] = driver
    return found


def _in_tree_disk(volume: Volume, *, on_csi_node: bool) -> Attachable:
    """Return a disk that is written into the pod, if a driver attaches it."""
    try:
        driver, handle = driver_of_disk(volume, on_csi_node=on_csi_node)
    except TranslationError as error:
        raise StatusError(
            f"converting volume({volume.name}) from inline to csi: {error}"
        ) from error
    return {unique_name(driver, handle): driver} if driver else {}
