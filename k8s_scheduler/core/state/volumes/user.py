"""A placed pod as a user of volumes."""

from dataclasses import dataclass

from k8s_scheduler.api.meta import ObjectMeta, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_volumes import Volume


@dataclass(frozen=True, slots=True)
class VolumeUser:
    """A pod and those of its volumes that matter."""

    namespace: str
    name: str
    uid: PodUid
    volumes: tuple[Volume, ...]

    def controls(self, metadata: ObjectMeta) -> bool:
        return any(o.controller and o.uid == self.uid for o in metadata.owner_references or ())


def volume_user(pod: Pod) -> VolumeUser | None:
    if not pod.spec.volumes:
        return None
    volumes = tuple(v for v in pod.spec.volumes if has_disk(v))
    if not volumes:
        return None
    metadata = pod.metadata
    return VolumeUser(metadata.namespace, metadata.name, PodUid(metadata.uid), volumes)


def has_disk(volume: Volume) -> bool:
    """Return whether a volume is a claim or a disk; of those that are kept, images are neither."""
    return volume.image is None or volume != Volume(image=volume.image)
