"""What listing and watching of one resource share."""

from dataclasses import dataclass
from typing import Final, Generic

from k8s_scheduler.kube.decoding import ObjectDecoder
from k8s_scheduler.kube.http import Transport
from k8s_scheduler.kube.pace import Pace
from k8s_scheduler.kube.progress import Progress
from k8s_scheduler.kube.resources import Resource, T
from k8s_scheduler.kube.store import Store
from k8s_scheduler.kube.undecodable import UndecodableLog
from k8s_scheduler.lib.slices import Slice, SliceMeter

# How many objects are worked off between two looks at the slice's clock.
CHECK_EVERY: Final = 8


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """The collaborators of one reflector."""

    transport: Transport
    resource: Resource[T]
    decoder: ObjectDecoder[T]
    store: Store[T]
    progress: Progress
    undecodable: UndecodableLog
    meter: SliceMeter
    pace: Pace

    def start_slice(self) -> Slice:
        """Begin to count the CPU time that this resource takes."""
        return self.meter.start(f"reflector/{self.resource.plural}")
