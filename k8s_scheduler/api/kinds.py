"""The kinds of objects, besides pods and nodes, that decisions depend on."""

import enum
from collections.abc import Mapping
from typing import TypeAlias

from k8s_scheduler.api.storage.objects import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from k8s_scheduler.api.workloads import (
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class Kind(enum.StrEnum):
    """A kind, under the API's name."""

    NAMESPACE = "Namespace"
    SERVICE = "Service"
    REPLICATION_CONTROLLER = "ReplicationController"
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    DEVICE_CLASS = "DeviceClass"


# By kind: its API group; the core group's name is empty.
GROUPS: Mapping[Kind, str] = {
    Kind.NAMESPACE: "",
    Kind.SERVICE: "",
    Kind.REPLICATION_CONTROLLER: "",
    Kind.REPLICA_SET: "apps",
    Kind.STATEFUL_SET: "apps",
    Kind.POD_DISRUPTION_BUDGET: "policy",
    Kind.PERSISTENT_VOLUME: "",
    Kind.PERSISTENT_VOLUME_CLAIM: "",
    Kind.STORAGE_CLASS: "storage.k8s.io",
    Kind.CSI_NODE: "storage.k8s.io",
    Kind.CSI_DRIVER: "storage.k8s.io",
    Kind.CSI_STORAGE_CAPACITY: "storage.k8s.io",
    Kind.VOLUME_ATTACHMENT: "storage.k8s.io",
    Kind.DEVICE_CLASS: "resource.k8s.io",
}

ClusterObject: TypeAlias = (
    Namespace
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PodDisruptionBudget
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CsiNode
    | CsiDriver
    | CsiStorageCapacity
    | VolumeAttachment
    | DeviceClass
)

TYPES: Mapping[Kind, type[ClusterObject]] = {
    Kind.NAMESPACE: Namespace,
    Kind.SERVICE: Service,
    Kind.REPLICATION_CONTROLLER: ReplicationController,
    Kind.REPLICA_SET: ReplicaSet,
    Kind.STATEFUL_SET: StatefulSet,
    Kind.POD_DISRUPTION_BUDGET: PodDisruptionBudget,
    Kind.PERSISTENT_VOLUME: PersistentVolume,
    Kind.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    Kind.STORAGE_CLASS: StorageClass,
    Kind.CSI_NODE: CsiNode,
    Kind.CSI_DRIVER: CsiDriver,
    Kind.CSI_STORAGE_CAPACITY: CsiStorageCapacity,
    Kind.VOLUME_ATTACHMENT: VolumeAttachment,
    Kind.DEVICE_CLASS: DeviceClass,
}
