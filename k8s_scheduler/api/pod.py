"""Pods, as far as scheduling and metrics read them."""

from typing import TypeAlias

import msgspec

from k8s_scheduler.api.meta import Condition, Int32, Int64, Labels, ObjectMeta, Wire
from k8s_scheduler.api.pod_volumes import Volume, read_volumes
from k8s_scheduler.api.selectors.types import LabelSelector, NodeSelector, NodeSelectorTerm
from k8s_scheduler.api.taints import Toleration

DEFAULT_SCHEDULER_NAME = "default-scheduler"

# Quantities stay as they came: a string, or a number from writers that do not quote.
ResourceList: TypeAlias = dict[str, str | Int64 | float]


class ResourceRequirements(Wire, frozen=True, gc=False):
    """What a container or a whole pod asks for; limits are shown in metrics, never decided by."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ActualResources(Wire, frozen=True, gc=False):
    """What a container or a whole pod really has."""

    requests: ResourceList | None = None


class ContainerPort(Wire, frozen=True, gc=False):
    """A port of a container; only host ports concern scheduling."""

    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartRule(Wire, frozen=True, gc=False):
    """What happens when a container exits in a certain way."""

    action: str = ""


class VolumeMount(Wire, frozen=True, gc=False):
    """Where a container mounts a volume; only what needs a feature of the node counts."""

    bind_mount_options: list[str] | None = None


class Container(Wire, frozen=True, gc=False):
    """A container: what it asks for, not what it runs."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    volume_mounts: list[VolumeMount] | None = None


class PreferredSchedulingTerm(Wire, frozen=True, gc=False):
    """A weighted wish about nodes."""

    weight: Int32
    preference: NodeSelectorTerm


class NodeAffinityTerms(Wire, frozen=True, gc=False):
    """Where a pod must or would like to run, by node labels and fields."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True, gc=False):
    """Pods to be near to, or far from, within a topology.

    `matchLabelKeys` and `mismatchLabelKeys` are not read: the API server has made them a part of
    the selector.
    """

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(Wire, frozen=True, gc=False):
    """A weighted wish about other pods."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire, frozen=True, gc=False):
    """Affinity or anti-affinity to other pods."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True, gc=False):
    """All affinities of a pod."""

    node_affinity: NodeAffinityTerms | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True, gc=False):
    """How evenly matching pods must be spread over a topology."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SchedulingGate(Wire, frozen=True, gc=False):
    """A gate that keeps a pod out of the queue until it is removed."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True, gc=False):
    """Devices that a pod needs."""

    name: str = ""


class PodSpec(Wire, frozen=True, gc=False):
    """What a pod asks of the scheduler."""

    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    priority: Int32 | None = None
    preemption_policy: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: ResourceList | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    host_network: bool = False
    host_users: bool | None = None
    # Only those that plugins look at.
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None

    def __post_init__(self) -> None:
        """Keep of the volumes what is read; every pod has one with a name of its own."""
        if self.volumes:
            msgspec.structs.force_setattr(self, "volumes", read_volumes(self.volumes))


class ContainerStatus(Wire, frozen=True, gc=False):
    """What a running container was really given; in-place resize makes it differ from its spec."""

    name: str = ""
    resources: ActualResources | None = None
    allocated_resources: ResourceList | None = None


class PodStatus(Wire, frozen=True, gc=False):
    """What has become of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ActualResources | None = None
    allocated_resources: ResourceList | None = None


class Pod(Wire, frozen=True, gc=False):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None
