"""What a candidate has seen of the Lease, and since when it has not changed.

A candidate reads the Lease (a look) and watches it. The two take different ways, so what arrives
later may be older:

* An event counts only if its version is certainly newer than the one last seen: it can neither
  bring an older record back nor restart the count.
* The answer to a look also counts when it is older, because a server that was restored from a
  backup has older versions from then on. It is ignored only if the look began before the newer
  version was seen.

A look that shows an older version proves such a restore, and `went_back` is called. The record that
it shows is an old one. Whatever holder it names, the holder that was seen before may still write,
until its next renewal fails. `former` says since when.

`since` is when the record was first seen here. The server had written it by then, on either way,
and that is all the elector's argument needs.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from k8s_scheduler.kube.lease.lease import Record
from k8s_scheduler.kube.resources import is_newer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormerRecord:
    """The record that was seen before the storage was set back, and when that was noticed."""

    record: Record
    noticed_at: float


class ObservedLease:
    """The record last seen, and since when."""

    def __init__(
        self, clock: Callable[[], float], went_back: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        """`went_back` gets the known version and the lower one."""
        self._clock = clock
        self._went_back = went_back
        self.record: Record | None = None
        self.former: FormerRecord | None = None
        self.since = float("-inf")

    @property
    def version(self) -> str:
        return self.record.resource_version if self.record is not None else ""

    @property
    def holder(self) -> str:
        return self.record.holder if self.record is not None else ""

    def look(self, record: Record, *, asked_at: float) -> bool:
        """Take the answer to a look that began at `asked_at`; return whether it counts."""
        known, seen = self.version, record.resource_version
        if is_newer(known, seen):
            if asked_at <= self.since:
                return False
            if self.record is not None and self.record.holder:
                self.former = FormerRecord(self.record, self._clock())
            self._went_back(known, seen)
        self._see(record)
        return True

    def show(self, record: Record) -> bool:
        """Take an event, which may be late; return whether it counts."""
        if not is_newer(record.resource_version, self.version):
            return False
        self._see(record)
        return True

    def _see(self, record: Record) -> None:
        """Note when the record changed. The version shows every write, even by a stopped clock."""
        if self.record is None or self.version != record.resource_version:
            if record.holder != self.holder and record.holder:
                log.info("new leader elected: %s", record.holder)
            self.since = self._clock()
        self.record = record
