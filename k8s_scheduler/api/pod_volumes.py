"""Volumes of a pod, as far as scheduling reads them.

Only claims, disks of in-tree plugins and images are kept, and of most of them only what identifies
the disk: whether two pods can share it, and which CSI driver will attach it. Config maps, secrets,
tokens and inline CSI volumes are not kept. The name of a volume is kept where a plugin reads it.
Admission and controllers give volumes names of their own (`kube-api-access-x7k2p`), so whatever is
kept without being read makes every pod different from all others: see `core.framework.shapes`.
"""

from typing import Final

import msgspec

from k8s_scheduler.api.meta import Wire


class ClaimSource(Wire, frozen=True, gc=False):
    """A claim in the pod's namespace."""

    claim_name: str = ""


class EphemeralSource(Wire, frozen=True, gc=False):
    """A claim made for the pod, named after pod and volume."""


class GcePersistentDisk(Wire, frozen=True, gc=False):
    """A Google disk."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Wire, frozen=True, gc=False):
    """An Amazon disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class Rbd(Wire, frozen=True, gc=False):
    """A Ceph block device."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Iscsi(Wire, frozen=True, gc=False):
    """An iSCSI disk."""

    iqn: str = ""
    read_only: bool = False


class AzureDisk(Wire, frozen=True, gc=False):
    """An Azure disk; the API server makes it a shared one unless told otherwise."""

    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str = "Shared"


class AzureFile(Wire, frozen=True, gc=False):
    """An Azure share; that it is one is all that matters."""


class Cinder(Wire, frozen=True, gc=False):
    """An OpenStack disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True, gc=False):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVolume(Wire, frozen=True, gc=False):
    """A vSphere disk; that it is one is all that matters."""


class ImageSource(Wire, frozen=True, gc=False):
    """An image mounted as a volume."""

    reference: str = ""


class Volume(Wire, frozen=True, gc=False):
    """One volume; at most one source is set."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    image: ImageSource | None = None


_SOURCES: Final = len(Volume.__struct_fields__) - 1


def read_volumes(volumes: list[Volume]) -> list[Volume] | None:
    """Return the volumes that plugins look at, as far as they do; None if they look at none.

    The list itself, if all of it is read.
    """
    # Most volumes have none of the sources that are decoded.
    found = [
        volume if not volume.name or _name_is_read(volume) else _unnamed(volume)
        for volume in volumes
        if msgspec.structs.astuple(volume).count(None) < _SOURCES
    ]
    return volumes if found == volumes else found or None


def _name_is_read(volume: Volume) -> bool:
    """Return whether a claim is named after the volume, or an error text may name it.

    Disks that CSI drivers have taken over may fail to be translated: that text names the volume.
    """
    return (
        volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
    )


def _unnamed(volume: Volume) -> Volume:
    return msgspec.structs.replace(volume, name="")
