"""Owners of pods, and what else selects them, as far as scheduling reads them."""

from k8s_scheduler.api.meta import Int32, Labels, ObjectMeta, Wire
from k8s_scheduler.api.selectors.types import LabelSelector


class Namespace(Wire, frozen=True, gc=False):
    """A namespace; its labels can be selected."""

    metadata: ObjectMeta


class PairsSpec(Wire, frozen=True, gc=False):
    """Selects pods by pairs alone."""

    selector: Labels | None = None


class Service(Wire, frozen=True, gc=False):
    """A service and the pods behind it."""

    metadata: ObjectMeta
    spec: PairsSpec = PairsSpec()


class ReplicationController(Wire, frozen=True, gc=False):
    """The oldest kind of owner."""

    metadata: ObjectMeta
    spec: PairsSpec = PairsSpec()


class SelectorSpec(Wire, frozen=True, gc=False):
    """Selects pods by labels."""

    selector: LabelSelector | None = None


class ReplicaSet(Wire, frozen=True, gc=False):
    """The owner of a Deployment's pods."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(Wire, frozen=True, gc=False):
    """The owner of pods with an identity."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()


class DisruptionStatus(Wire, frozen=True, gc=False):
    """How many pods may be disrupted, and which have been already."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: Labels | None = None


class PodDisruptionBudget(Wire, frozen=True, gc=False):
    """How many of the selected pods may go at once."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()
    status: DisruptionStatus = DisruptionStatus()


class DeviceClassSpec(Wire, frozen=True, gc=False):
    """Under which resource name a class of devices can be asked for."""

    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True, gc=False):
    """A class of devices."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()
