"""Which volumes of a pod a CSI driver has to attach, by driver and handle.

Disks of in-tree plugins count only on nodes with a CSINode; nothing else about a node matters, so
a pod's volumes are told in at most two ways. Claims without a volume count as one that their
class's driver will make; its handle is made up, and the same for all pods with that claim.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

from k8s_scheduler.api.csi_translation import (
    IN_TREE_BY_NAME,
    TranslationError,
    in_tree_plugin,
)
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from k8s_scheduler.api.volume_claims import (
    claim_not_found,
    claim_of,
    class_of_claim,
    not_the_owner,
)
from k8s_scheduler.api.volumes import Volume
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views import RowsView

# No driver has a handle like this.
_TO_BE_MADE: Final = "\x00to be made: "

# `driver/handle` -> driver
Attachable: TypeAlias = dict[str, str]


class MissingClaimError(Exception):
    """A claim that the pod can't do without is not there."""


class Owner(Protocol):
    """The pod whose volumes are asked about; its name is asked for only if a claim has it."""

    @property
    def namespace(self) -> str:
        """Where it lives."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def controls(self, metadata: ObjectMeta) -> bool:
        """Return whether it is the controlling owner of a claim."""
        ...


def attachable(
    volumes: Iterable[Volume],
    owner: Owner,
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
        driver, handle = _driver_of(claim, rows, on_csi_node=on_csi_node)
        if driver and handle:
            found[unique_name(driver, handle)] = driver
    return found


def unique_name(driver: str, handle: str) -> str:
    """Return the name under which one volume counts once."""
    return f"{driver}/{handle}"


def _in_tree_disk(volume: Volume, *, on_csi_node: bool) -> Attachable:
    """Return a disk that is written into the pod, if a driver attaches it."""
    plugin = in_tree_plugin(volume)
    if plugin is None or not plugin.migrated or not on_csi_node:
        return {}
    try:
        handle = plugin.handle_in(volume)
    except TranslationError as error:
        raise StatusError(
            f"converting volume({volume.name}) from inline to csi: {error}"
        ) from error
    return {unique_name(plugin.driver, handle): plugin.driver}


def _driver_of(
    claim: PersistentVolumeClaim, rows: RowsView, *, on_csi_node: bool
) -> tuple[str, str]:
    """Return (driver, handle) of a claim's volume; empty where no driver has to do with it."""
    volume: PersistentVolume | None = None
    if claim.spec.volume_name:
        volume = rows.object(Kind.PERSISTENT_VOLUME, "", claim.spec.volume_name)
    if volume is None:
        return _driver_to_be(claim, rows, on_csi_node=on_csi_node)
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.migrated or not on_csi_node:
        return "", ""
    try:
        return plugin.driver, plugin.handle_in(volume.spec, volume.metadata.labels)
    except TranslationError:
        return "", ""


def _driver_to_be(
    claim: PersistentVolumeClaim, rows: RowsView, *, on_csi_node: bool
) -> tuple[str, str]:
    """Return (driver, handle) of the volume that will be made for a claim."""
    class_name = class_of_claim(claim)
    found: StorageClass | None = None
    if class_name:
        found = rows.object(Kind.STORAGE_CLASS, "", class_name)
    if found is None:
        return "", ""
    handle = f"{_TO_BE_MADE}{claim.metadata.namespace}/{claim.metadata.name}"
    plugin = IN_TREE_BY_NAME.get(found.provisioner)
    if plugin is None:
        return found.provisioner, handle
    return (plugin.driver, handle) if plugin.migrated and on_csi_node else ("", "")
