"""What listing and watching of one resource share."""

from dataclasses import dataclass
from typing import Final, Generic

from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.resources import Resource, T
from k8s_scheduler.kube.watch.decoding import ObjectDecoder
from k8s_scheduler.kube.watch.list_tickets import Progress
from k8s_scheduler.kube.watch.reflector_limits import Pace
from k8s_scheduler.kube.watch.reflector_log import UndecodableLog
from k8s_scheduler.kube.watch.set_back import SetBack, Signals, Source
from k8s_scheduler.kube.watch.store import Store
from k8s_scheduler.lib.slices import Slice, SliceMeter

# How many objects are worked off between two looks at the slice's clock.
CHECK_EVERY: Final = 8


@dataclass(frozen=True, slots=True)
class ReflectorParts(Generic[T]):
    """The collaborators of one reflector."""

    transport: Transport
    resource: Resource[T]
    decoder: ObjectDecoder[T]
    store: Store[T]
    progress: Progress
    undecodable: UndecodableLog
    meter: SliceMeter
    pace: Pace
    signals: Signals

    def report_set_back(self, source: Source, *, seen: str) -> None:
        """Say that a version is lower than one known before, and list everything again."""
        known = self.progress.resource_version
        self.progress.doubt()
        self.signals.set_back(SetBack(self.resource.label, source, known=known, seen=seen))

    def complete_list(
        self, ticket: int, version: str, *, went_back: tuple[str, str] | None
    ) -> None:
        """Take note of a list that is applied in full, and of what it shows about the storage.

        `went_back` are the known and the listed version of an object that the list shows older
        than it was: of that, too, only a restored storage is the cause.
        """
        known, goes_back = self.progress.resource_version, self.progress.goes_back(version)
        is_expected = self.progress.is_doubted
        self.progress.complete_list(ticket, version)
        plural = self.resource.label
        if goes_back:
            self.signals.set_back(
                SetBack(plural, Source.LIST, known=known, seen=version, listed=True)
            )
        elif went_back is not None and not is_expected:
            known, seen = went_back
            self.signals.set_back(
                SetBack(plural, Source.OBJECT, known=known, seen=seen, listed=True)
            )

    def start_slice(self) -> Slice:
        return self.meter.start(f"reflector/{self.resource.label}")
