"""What claims and volumes say about themselves: class, binding, size, and the claims of a pod."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.pod import ResourceList
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.quantity import nano
from k8s_scheduler.api.storage.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    annotations_of,
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
LOST: Final = "Lost"

_STORAGE: Final = "storage"


@dataclass(frozen=True, slots=True)
class UsedClaim:
    """A claim that a pod uses through one of its volumes; `ephemeral` ones are made for the pod."""

    name: str
    ephemeral: bool


class Named(Protocol):
    """A pod that is asked for its name only if a claim is named after it."""

    @property
    def name(self) -> str: ...


def claim_of(volume: Volume, pod: Named) -> UsedClaim | None:
    if volume.persistent_volume_claim is not None:
        return UsedClaim(volume.persistent_volume_claim.claim_name, ephemeral=False)
    if volume.ephemeral is not None:
        return UsedClaim(f"{pod.name}-{volume.name}", ephemeral=True)
    return None


def named_claims(volumes: tuple[Volume, ...]) -> Iterator[str]:
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the class a claim asks for; empty if none. The old annotation goes first."""
    named = annotations_of(claim.metadata).get(BETA_CLASS)
    return (claim.spec.storage_class_name or "") if named is None else named


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the class a volume belongs to; empty if none. The old annotation goes first."""
    named = annotations_of(volume.metadata).get(BETA_CLASS)
    return volume.spec.storage_class_name if named is None else named


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether both sides agree on the claim's volume."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in annotations_of(claim.metadata)


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    """Return the node for which the claim's volume is being made; None if it is not."""
    return annotations_of(claim.metadata).get(SELECTED_NODE)


def requested_nano(claim: PersistentVolumeClaim) -> int | None:
    """Return how much a claim asks for, in nano-units; None if it does not say."""
    resources = claim.spec.resources
    return None if resources is None else storage_nano(resources.requests)


def storage_nano(amounts: ResourceList | None) -> int | None:
    """Return the amount of storage in a list of resources, in nano-units; None if it has none."""
    found = (amounts or {}).get(_STORAGE)
    return None if found is None else nano(found)


# Texts, kube-scheduler's to the letter


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


def unset_binding_mode(name: str) -> str:
    return f'VolumeBindingMode not set for StorageClass "{name}"'


def not_the_owner(claim: ObjectMeta, namespace: str, pod_name: str) -> str:
    return (
        f"PVC {claim.namespace}/{claim.name} was not created for pod {namespace}/{pod_name} "
        "(pod is not owner)"
    )
