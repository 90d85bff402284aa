"""Features of the node that a pod's spec can't do without."""

from k8s_scheduler.api.pod import Container, Pod

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


def required_features(pod: Pod) -> tuple[str, ...]:
    """Return the features that a node has to declare for the pod, sorted."""
    spec = pod.spec
    restarts = binds = False
    # Plain loops: every pod that comes is asked, and nearly none needs any.
    for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers):
        for container in containers or ():
            if container.restart_policy_rules and containers is not spec.ephemeral_containers:
                restarts = restarts or _restarts_all(container)
            for mount in container.volume_mounts or ():
                if mount.bind_mount_options:
                    binds = True
    shares = spec.host_network and spec.host_users is False
    if not (restarts or binds or shares):
        return ()
    needs = {
        RESTART_ALL: restarts,
        HOST_NETWORK_USER_NAMESPACES: shares,
        BIND_MOUNT_OPTIONS: binds,
    }
    return tuple(sorted(name for name, is_needed in needs.items() if is_needed))


def _restarts_all(container: Container) -> bool:
    return any(r.action == "RestartAllContainers" for r in container.restart_policy_rules or ())
