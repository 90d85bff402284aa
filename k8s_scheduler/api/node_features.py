"""Features of the node that a pod's spec can't do without."""

from collections.abc import Iterator

from k8s_scheduler.api.pod import Container, Pod, PodSpec

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


def required_features(pod: Pod) -> tuple[str, ...]:
    """Return the features that a node has to declare for the pod, sorted."""
    return tuple(sorted(_inferred(pod.spec)))


def _inferred(spec: PodSpec) -> Iterator[str]:
    lasting = (*(spec.containers or ()), *(spec.init_containers or ()))
    if any(_restarts_all(container) for container in lasting):
        yield RESTART_ALL
    if spec.host_network and spec.host_users is False:
        yield HOST_NETWORK_USER_NAMESPACES
    if any(_has_mount_options(c) for c in (*lasting, *(spec.ephemeral_containers or ()))):
        yield BIND_MOUNT_OPTIONS


def _restarts_all(container: Container) -> bool:
    return any(r.action == "RestartAllContainers" for r in container.restart_policy_rules or ())


def _has_mount_options(container: Container) -> bool:
    return any(mount.bind_mount_options for mount in container.volume_mounts or ())
