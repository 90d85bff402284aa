"""What a candidate has seen of the Lease, and since when it has not changed.

Looks and the watch are answered by different ways, so what arrives later may be older:

* An event counts when its version is certainly newer than the one last seen, and not otherwise:
  it can neither put an older record back nor begin the count anew.
* A look's answer counts as well when it is older, because a server that was restored from a backup
  has older versions for ever after. Only if the look began before the newer version was seen is
  its answer of the past, and is left aside.

A look that shows an older version proves such a restore (`went_back` is called). The record that
comes back with it is of the past: whoever it names, or nobody, the holder that was seen before may
be writing, until it has tried to renew what is there no more. `former` says for how long.

`since` is when the record was first seen here. The server had written it by then, whichever way it
came, and that is all the elector's argument needs.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from k8s_scheduler.kube.lease.lease import Record
from k8s_scheduler.kube.resources import is_newer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Former:
    """The record that was seen before the storage was set back, and when that was noticed."""

    record: Record
    noticed_at: float


class Sight:
    """The record last seen."""

    def __init__(
        self, clock: Callable[[], float], went_back: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        """See nothing yet. `went_back` is told the known version and the lower one."""
        self._clock = clock
        self._went_back = went_back
        self.record: Record | None = None
        self.former: Former | None = None
        self.since = float("-inf")

    @property
    def version(self) -> str:
        """The version last seen; empty before the first."""
        return self.record.resource_version if self.record is not None else ""

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; empty when nobody or not known."""
        return self.record.holder if self.record is not None else ""

    def look(self, record: Record, *, asked_at: float) -> bool:
        """Take an answer to what was asked then; return whether it is the newest that is known."""
        known, seen = self.version, record.resource_version
        if is_newer(known, seen):
            if asked_at <= self.since:
                return False
            if self.record is not None and self.record.holder:
                self.former = Former(self.record, self._clock())
            self._went_back(known, seen)
        self._see(record)
        return True

    def show(self, record: Record) -> bool:
        """Take an event, which may be late; return whether it is news."""
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
