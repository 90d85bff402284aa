"""Whether the holder of another Lease is alive, judged as an elector judges it.

    first look, held  ──▶ UNKNOWN ──its version changes──▶ LIVE ◀─────────────┐
                             │                               │                │ it changes
                             └── unchanged for the duration that it names ──▶ DEAD

A Lease that names no holder is free. No timestamp of a Lease is compared with our clock: what
counts is how long ago, by our clock, this version of it was first seen.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from k8s_scheduler.kube.lease.other_leases import OtherLease

# Of a Lease that names no duration; kube-scheduler's own default.
USUAL_SECONDS: Final = 15.0


class Liveness(Enum):
    """What is known of a holder."""

    UNKNOWN = auto()  # it may be alive: we have not looked for long enough
    LIVE = auto()
    DEAD = auto()  # or there is none


@dataclass(slots=True)
class _Seen:
    version: str
    since: float
    has_changed: bool = False


class HolderLiveness:
    """What was seen of Leases, from one look to the next."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def look(self, leases: Iterable[OtherLease]) -> None:
        """Take what a look has shown; Leases that it did not show are forgotten."""
        now, before = self._clock(), self._seen
        self._seen = {}
        for lease in leases:
            seen = before.get(lease.key)
            if seen is None or seen.version != lease.version:
                seen = _Seen(lease.version, now, has_changed=seen is not None)
            self._seen[lease.key] = seen

    def of(self, lease: OtherLease) -> Liveness:
        seen = self._seen.get(lease.key)
        if seen is None or not lease.holder:
            return Liveness.DEAD
        if self._clock() - seen.since >= (lease.duration_seconds or USUAL_SECONDS):
            return Liveness.DEAD
        return Liveness.LIVE if seen.has_changed else Liveness.UNKNOWN
