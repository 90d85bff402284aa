"""The lease as far as it is ours: taking it, keeping it, giving it back.

Why two never write at once, whatever happens to answers:
* We count from the *start* of the last write that was answered with success. The server executed
  it later than that, and others saw it later still.
* `may_write` ends `renew_deadline` after that start. Others take a lease only after seeing its
  record unchanged for the whole lease duration it names, which is longer, on their own clock.
* A renewal whose answer is read after the deadline has passed comes too late, even if the server
  was in time: writes may have been refused in between, and nothing would repeat them. A term that
  was over for a moment is over for good.
* A write without an answer counts as not done. The lease is read before the next one, and a late
  write of ours carries an old resourceVersion, so it cannot undo anything.
* A call takes half of the renew deadline at most, as in client-go (`NewFromKubeconfig`): where a
  connection has died without a word, there is time for another try on another one.
* No remote timestamp is ever compared with a local clock. Ours goes on while the machine sleeps.

What this cannot do is call back a write that has started: keep the time limit of writes below
lease duration minus renew deadline.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import Conflict, Forbidden, KubeError, NotFound
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.lease.lease import Lease, LeaseConfig, LeaseStore, held_by, released
from k8s_scheduler.kube.lease.metadata import NO_NOTES, LeaseNotes
from k8s_scheduler.kube.lease.observed_lease import ObservedLease
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.watch.set_back import SetBack, Source

log = logging.getLogger(__name__)

# The share of the remaining time that one call may take, unless the renew deadline is short.
CALL_SHARE: Final = 0.5
_LEAST_CALL_SECONDS: Final = 1.0


class Try(Enum):
    """What came of an attempt to make or keep us the holder."""

    HELD = auto()  # the lease is ours, for certain
    TAKEN = auto()  # another process holds it
    CHANGED = auto()  # another process wrote in between
    REFUSED = auto()  # it is free, and we are told not to take it
    FAILED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectorHooks:
    """What the rest of the process adds to an election.

    `set_back` is told when versions of the lease show that storage was set back. `notes` are put on
    the lease by each write that makes or keeps us its holder. `may_lead` is asked before a free
    lease is taken; a process that leads already goes on.
    """

    set_back: Callable[[SetBack], None] = lambda _: None
    notes: Callable[[], LeaseNotes] = lambda: NO_NOTES
    may_lead: Callable[[], bool] = lambda: True


class Claim:
    """Our claim to one lease, and until when it certainly holds."""

    def __init__(
        self, transport: Transport, config: LeaseConfig, *, timing: Timing, hooks: ElectorHooks
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._store = LeaseStore(transport, namespace=config.namespace, name=config.name)
        self._clock = timing.clock
        self._wall_clock_ns = timing.wall_clock_ns
        self._log = BoundedLog(log, timing.clock)
        self.observed = ObservedLease(timing.clock, self._went_back)
        self.wrote: Callable[[Lease], None] = lambda _: None
        self.leading = False
        # We have led, and have not given the lease back since.
        self.in_term = False
        # When the write was answered that made us the leader.
        self.led_from = float("-inf")
        # The start of the last write that certainly made or kept us the holder.
        self.held_from = float("-inf")
        # The lease as our own last write left it; None whenever that is not certain.
        self.ours: Lease | None = None
        # The version that our last write was to replace, "" for none, until it has come to nothing.
        self._asked_over: str | None = None
        # We have asked for the lease to be taken from us; there may have been no answer.
        self._asked_to_release = False
        # We made the lease ourselves when we came to lead, and had never seen one before.
        self.is_newborn = False

    @property
    def may_hold(self) -> bool:
        return self.leading or (not self.in_term and self._asked_over is not None)

    @property
    def deadline(self) -> float:
        """When the last write that made or kept us the holder is too old to rely on."""
        return self.held_from + self._config.renew_deadline_seconds

    @property
    def is_in_time(self) -> bool:
        return self._clock() < self.deadline

    @property
    def free_at(self) -> float:
        """When the record last seen has been unchanged for the whole duration it names."""
        record = self.observed.record
        named = record.spec.lease_duration_seconds if record is not None else None
        return self.observed.since + float(named or self._config.lease_duration_seconds)

    def start_term(self) -> None:
        self.leading = self.in_term = True
        self._asked_to_release = False

    async def attempt(self, timeout_seconds: float) -> Try:
        give_up_at = self._clock() + timeout_seconds
        if self.ours is not None:
            tried = await self._write(self.ours, give_up_at)
            if tried is not Try.CHANGED:
                return tried
        asked_at = self._clock()
        if asked_at >= give_up_at:
            return Try.FAILED
        try:
            lease = await self._store.read(self._call_seconds(give_up_at - asked_at))
        except KubeError as error:
            self.complain("get", error)
            return Try.FAILED
        if lease is not None and not self.observed.look(lease, asked_at=asked_at):
            return Try.CHANGED
        if lease is not None and lease.holder != self._config.identity:
            self.is_newborn = False
        if lease is not None and not self._may_become_ours(lease):
            self._asked_over = None
        if not self._is_free(lease):
            return Try.TAKEN
        # A process that leads already is not asked.
        may_take = self.leading or self._hooks.may_lead()
        return await self._write(lease, give_up_at) if may_take else Try.REFUSED

    async def _write(self, lease: Lease | None, give_up_at: float) -> Try:
        self.ours = None
        started_at = self._clock()
        if started_at >= give_up_at:
            return Try.FAILED
        self._asked_over = lease.resource_version if lease is not None else ""
        if lease is None and self.observed.record is None:
            # Also if there is no answer, and what was made is found by the next try.
            self.is_newborn = True
        spec = held_by(self._config, lease, wall_ns=self._wall_clock_ns())
        try:
            seconds = self._call_seconds(give_up_at - started_at)
            written = await self._store.write(
                lease, spec, timeout_seconds=seconds, notes=self._hooks.notes()
            )
        except Conflict:
            return Try.CHANGED
        except KubeError as error:
            if lease is not None and isinstance(error, NotFound):
                return Try.CHANGED
            # Where the lease is to be made, it is its namespace that is not found.
            self.complain("create" if lease is None else "update", error)
            return Try.FAILED
        self.observed.look(written, asked_at=started_at)
        self.ours = written
        self.wrote(written)
        if self.leading and not self.is_in_time:
            # Of the term before this write: it must not go on, see above.
            return Try.FAILED
        self.held_from = started_at
        if not self.leading:
            self.led_from = self._clock()
        return Try.HELD if self.is_in_time else Try.FAILED

    async def give_back(self, give_up_at: float, call_seconds: float) -> bool:
        """Give the lease back by one write; return whether it is certainly not ours any more."""
        lease, self.ours = self.ours, None
        if lease is None:
            lease = await self._store.read(min(call_seconds, give_up_at - self._clock()))
        if lease is None or not self._may_become_ours(lease):
            if self._asked_to_release and self.is_in_time:
                # Too early for another process to take it: an earlier try gave it back.
                self.in_term = False
            return True
        asked_at = self._clock()
        if asked_at >= give_up_at:
            return False
        spec = released(lease, wall_ns=self._wall_clock_ns())
        seconds = min(call_seconds, give_up_at - asked_at)
        self._asked_to_release = True
        written = await self._store.write(lease, spec, timeout_seconds=seconds)
        self.in_term = False
        self.observed.look(written, asked_at=asked_at)
        log.info("released lease %s", self._config.full_name)
        return True

    def _may_become_ours(self, lease: Lease) -> bool:
        """Return whether the lease is ours, or a write of ours may yet make it so.

        Such a write got no answer and was to replace this very version. Any other write to this
        version makes the server refuse that one.
        """
        return self._config.identity == lease.holder or self._asked_over == lease.resource_version

    def _is_free(self, lease: Lease | None) -> bool:
        """Return whether no other process can still write under the record last seen."""
        if lease is None and self.observed.record is None:
            return True
        former = self.observed.former
        if former is not None and former.record.holder != self._config.identity:
            duration = former.record.spec.lease_duration_seconds
            seconds = float(duration or self._config.lease_duration_seconds)
            if self._clock() < former.noticed_at + seconds:
                return False
        if self.observed.holder in ("", self._config.identity):
            return True
        return self._clock() >= self.free_at

    def _call_seconds(self, left_seconds: float) -> float:
        share_seconds = self._config.renew_deadline_seconds * CALL_SHARE
        return min(left_seconds, max(share_seconds, _LEAST_CALL_SECONDS))

    def _went_back(self, known: str, seen: str) -> None:
        self._hooks.set_back(SetBack("leases", Source.LEASE, known=known, seen=seen))

    def complain(self, verb: str, error: KubeError) -> None:
        """Log a failed call, not more often than a log can bear."""
        config = self._config
        if isinstance(error, Forbidden):
            self._log.forbidden(
                verb, "leases.coordination.k8s.io", namespace=config.namespace, error=error
            )
        else:
            self._log.warning(
                verb, "cannot %s lease %s, trying again: %s", verb, config.full_name, error
            )
