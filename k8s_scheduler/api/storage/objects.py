"""Storage objects, as far as scheduling reads them."""

import msgspec

from k8s_scheduler.api.meta import ClusterObject, Int32, Labels, ObjectMeta, Wire
from k8s_scheduler.api.pod import ResourceList
from k8s_scheduler.api.pod_volumes import (
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GcePersistentDisk,
    PortworxVolume,
    VsphereVolume,
)
from k8s_scheduler.api.selectors.types import LabelSelector, NodeSelector


class ClaimReference(Wire, frozen=True, gc=False):
    """The claim a volume is bound to, or kept for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiVolume(Wire, frozen=True, gc=False):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Wire, frozen=True, gc=False):
    """From where a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True, gc=False):
    """What a volume is."""

    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None


class PersistentVolumeStatus(Wire, frozen=True, gc=False):
    """What has become of a volume."""

    phase: str = ""


class PersistentVolume(ClusterObject, frozen=True, gc=False):
    """A volume that outlives pods."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResources(Wire, frozen=True, gc=False):
    """How much a claim asks for."""

    requests: ResourceList | None = None


class PersistentVolumeClaimSpec(Wire, frozen=True, gc=False):
    """What a claim asks for; a class of None is not the same as an empty one."""

    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Wire, frozen=True, gc=False):
    """What has become of a claim."""

    phase: str = ""


class PersistentVolumeClaim(ClusterObject, frozen=True, gc=False):
    """A wish for a volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologyRequirement(Wire, frozen=True, gc=False):
    """A label and the values it may have."""

    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(Wire, frozen=True, gc=False):
    """Requirements that must all hold."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(ClusterObject, frozen=True, gc=False):
    """How volumes of a kind come into being."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeNodeResources(Wire, frozen=True, gc=False):
    """How many volumes of a driver a node can attach; None is no limit."""

    count: Int32 | None = None


class CsiNodeDriver(Wire, frozen=True, gc=False):
    """A driver on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(Wire, frozen=True, gc=False):
    """The drivers of a node."""

    drivers: list[CsiNodeDriver] | None = None


class CsiNode(ClusterObject, frozen=True, gc=False):
    """What CSI drivers say about a node of the same name."""

    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Wire, frozen=True, gc=False):
    """What a driver can do."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(ClusterObject, frozen=True, gc=False):
    """A CSI driver."""

    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(ClusterObject, frozen=True, gc=False):
    """How much a driver can still provide in a part of the cluster."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachmentSource(Wire, frozen=True, gc=False):
    """What is attached: a volume by name, or one written out."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Wire, frozen=True, gc=False):
    """What a driver attaches where."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachmentStatus(Wire, frozen=True, gc=False):
    """Whether it is attached."""

    attached: bool = False


class VolumeAttachment(ClusterObject, frozen=True, gc=False):
    """A volume on its way to, or at, a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


def annotations_of(metadata: ObjectMeta) -> Labels:
    return metadata.annotations or {}
