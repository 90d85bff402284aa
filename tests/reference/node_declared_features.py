"""NodeDeclaredFeatures, node by node, to compare with."""

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod


def needed(pod: Pod) -> set[str]:
    """Return the features that a node has to declare."""
    spec = pod.spec
    features = set()
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        for rule in container.restart_policy_rules or ():
            if rule.action == "RestartAllContainers":
                features.add("RestartAllContainersOnContainerExits")
        for mount in container.volume_mounts or ():
            if mount.bind_mount_options:
                features.add("VolumeBindMountOptions")
    if spec.host_network and spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    return features


def rejects(pod: Pod, node: Node) -> bool:
    return not needed(pod) <= set(node.status.declared_features or ())
