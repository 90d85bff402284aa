"""Owners of pods, and what else selects them, as far as scheduling reads them."""

from k8s_scheduler.api.meta import ClusterObject, Int32, Labels, Wire
from k8s_scheduler.api.selectors.types import LabelSelector


class Namespace(ClusterObject, frozen=True, gc=False):
    """A namespace; its labels can be selected."""


class PairsSpec(Wire, frozen=True, gc=False):
    """Selects pods by pairs alone."""

    selector: Labels | None = None


class Service(ClusterObject, frozen=True, gc=False):
    """A service and the pods behind it."""

    spec: PairsSpec = PairsSpec()


class ReplicationController(ClusterObject, frozen=True, gc=False):
    """The oldest kind of owner."""

    spec: PairsSpec = PairsSpec()


class SelectorSpec(Wire, frozen=True, gc=False):
    """Selects pods by labels."""

    selector: LabelSelector | None = None


class ReplicaSet(ClusterObject, frozen=True, gc=False):
    """The owner of a Deployment's pods."""

    spec: SelectorSpec = SelectorSpec()


class StatefulSet(ClusterObject, frozen=True, gc=False):
    """The owner of pods with an identity."""

    spec: SelectorSpec = SelectorSpec()


class DisruptionStatus(Wire, frozen=True, gc=False):
    """How many pods may be disrupted, and which have been already."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: Labels | None = None


class PodDisruptionBudget(ClusterObject, frozen=True, gc=False):
    """How many of the selected pods may go at once."""

    spec: SelectorSpec = SelectorSpec()
    status: DisruptionStatus = DisruptionStatus()


class DeviceClassSpec(Wire, frozen=True, gc=False):
    """Under which resource name a class of devices can be asked for."""

    extended_resource_name: str | None = None


class DeviceClass(ClusterObject, frozen=True, gc=False):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()
