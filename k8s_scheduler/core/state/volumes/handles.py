"""Which driver attaches a volume, and what the driver calls it.

Disks of in-tree plugins count only on nodes with a CSINode; nothing else about a node matters.
Claims without a volume count as one that their class's driver will make; its handle is made up, and
the same for all pods with that claim.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.storage.claims import class_of_claim
from k8s_scheduler.api.storage.csi_translation import (
    IN_TREE_BY_NAME,
    TranslationError,
    in_tree_plugin,
)
from k8s_scheduler.api.storage.objects import PersistentVolume, PersistentVolumeClaim, StorageClass

# No driver has a handle like this.
_TO_BE_MADE: Final = "\x00to be made: "
NO_DRIVER: Final = ("", "")

# Returns an object by kind, namespace and name; None if there is none.
GetObject: TypeAlias = Callable[[Kind, str, str], Any]


def unique_name(driver: str, handle: str) -> str:
    return f"{driver}/{handle}"


def driver_of_disk(volume: Volume, *, on_csi_node: bool) -> tuple[str, str]:
    """Return (driver, handle) of a disk that is written into a pod; empty if no driver attaches it.

    Raises TranslationError if its driver can't be told about it.
    """
    plugin = in_tree_plugin(volume)
    if plugin is None or not plugin.migrated or not on_csi_node:
        return NO_DRIVER
    return plugin.driver, plugin.handle_in(volume)


def driver_of_claim(
    claim: PersistentVolumeClaim, get: GetObject, *, on_csi_node: bool
) -> tuple[str, str]:
    """Return (driver, handle) of a claim's volume; empty where no driver has to do with it."""
    volume: PersistentVolume | None = None
    if claim.spec.volume_name:
        volume = get(Kind.PERSISTENT_VOLUME, "", claim.spec.volume_name)
    if volume is None:
        return _driver_to_be(claim, get, on_csi_node=on_csi_node)
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.migrated or not on_csi_node:
        return NO_DRIVER
    try:
        return plugin.driver, plugin.handle_in(volume.spec, volume.metadata.labels)
    except TranslationError:
        return NO_DRIVER


def _driver_to_be(
    claim: PersistentVolumeClaim, get: GetObject, *, on_csi_node: bool
) -> tuple[str, str]:
    class_name = class_of_claim(claim)
    found: StorageClass | None = None
    if class_name:
        found = get(Kind.STORAGE_CLASS, "", class_name)
    if found is None:
        return NO_DRIVER
    handle = f"{_TO_BE_MADE}{claim.metadata.namespace}/{claim.metadata.name}"
    plugin = IN_TREE_BY_NAME.get(found.provisioner)
    if plugin is None:
        return found.provisioner, handle
    return (plugin.driver, handle) if plugin.migrated and on_csi_node else NO_DRIVER
