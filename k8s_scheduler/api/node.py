"""Nodes, as far as scheduling reads them."""

from k8s_scheduler.api.meta import Condition, Int64, ObjectMeta, Wire
from k8s_scheduler.api.pod import ResourceList
from k8s_scheduler.api.taints import Taint


class NodeSpec(Wire, frozen=True, gc=False):
    """What administrators decided about a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class ContainerImage(Wire, frozen=True, gc=False):
    """An image that a node holds."""

    names: list[str] | None = None
    size_bytes: Int64 = 0


class NodeStatus(Wire, frozen=True, gc=False):
    """What a node offers."""

    allocatable: ResourceList | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None
    declared_features: list[str] | None = None


class Node(Wire, frozen=True, gc=False):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
