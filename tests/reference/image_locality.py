"""ImageLocality, node by node, to compare with."""

from collections.abc import Sequence

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod

MIB = 1024 * 1024


def images_of(pod: Pod) -> list[str]:
    """Return every image the pod needs, as nodes name it."""
    wanted = [c.image for c in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))]
    wanted += [v.image.reference for v in pod.spec.volumes or () if v.image]
    return [name if ":" in name.rpartition("/")[2] else name + ":latest" for name in wanted]


def held(node: Node) -> dict[str, int]:
    return {name: i.size_bytes for i in node.status.images or () for name in i.names or ()}


def score(pod: Pod, node: Node, nodes: Sequence[Node]) -> int:
    wanted = images_of(pod)
    if not wanted:
        return 0
    total = 0
    for name in wanted:
        if name in held(node):
            holders = sum(name in held(other) for other in nodes)
            total += int(held(node)[name] * (holders / len(nodes)))
    low, high = 23 * MIB, 1000 * MIB * len(wanted)
    return 100 * (min(max(total, low), high) - low) // (high - low)
