"""Volumes of a pod, as far as scheduling reads them.

Of most sources only the identity of the disk matters: whether two pods can share it, and which
CSI driver will attach it.
"""

import msgspec

from k8s_scheduler.api.meta import Int32, Wire


class ClaimSource(Wire, frozen=True, gc=False):
    """A claim in the pod's namespace."""

    claim_name: str = ""


class EphemeralSource(Wire, frozen=True, gc=False):
    """A claim made for the pod, named after pod and volume."""


class GcePersistentDisk(Wire, frozen=True, gc=False):
    """A Google disk."""

    pd_name: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AwsElasticBlockStore(Wire, frozen=True, gc=False):
    """An Amazon disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    partition: Int32 = 0
    read_only: bool = False


class Rbd(Wire, frozen=True, gc=False):
    """A Ceph block device."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Iscsi(Wire, frozen=True, gc=False):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class AzureDisk(Wire, frozen=True, gc=False):
    """An Azure disk; the API server makes it a shared one unless told otherwise."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str = "Shared"


class AzureFile(Wire, frozen=True, gc=False):
    """An Azure share."""

    secret_name: str = ""
    share_name: str = ""


class Cinder(Wire, frozen=True, gc=False):
    """An OpenStack disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True, gc=False):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVolume(Wire, frozen=True, gc=False):
    """A vSphere disk."""

    volume_path: str = ""


class CsiInline(Wire, frozen=True, gc=False):
    """A volume that a CSI driver makes for the pod."""

    driver: str = ""


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
    csi: CsiInline | None = None
    image: ImageSource | None = None
