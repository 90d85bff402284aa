"""Leader election on a Lease: at most one process writes at a time.

                acquire(): jittered tries             hold(): a renewal every retry period
     ┌───────┐  write answered with success  ┌─────────┐
     │STANDBY│ ────────────────────────────► │ LEADING │ ◄─┐ renewal answered with success:
     └───────┘                               └─────────┘ ──┘ the deadline moves on
         ▲                                        │
         │   renew deadline passed; another holder seen; hold() left in any way;  release()
         └────────────────────────────────────────┘

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

How soon one follows another: renewals come every retry period, and a candidate reads the lease
more often than that (`LOOK_SECONDS`), because it counts from when it *sees* a renewal and takes a
released lease when it sees it released. It also wakes just when the record has been unchanged for
long enough. So after a crash another process leads at most one look after the lease has run out. A
watch on the lease (`lease_watch`) shows most changes sooner. It may fail, because the looks go on,
and a candidate always reads the lease just before it takes it.

What this cannot do is call back a write that has started: keep the time limit of writes below
lease duration minus renew deadline.

A lease that is deleted while it is held looks free to a process that has never seen it; those that
have seen it wait as if it were still there. So
* the holder watches its lease. When it is shown deleted, the holder renews at once and, until that
  is answered, lets no further write begin (`writes_may_begin`). If another process was faster, the
  renewal finds that out, and the term is over;
* a process that made the lease itself, and had never seen one, says so (`is_newborn`). From the
  moment it was made no renewal of a former holder can succeed, so a former holder stops within its
  renew deadline. A process that must assume that there was one decides nothing for a lease duration
  (`let_others_stop`).

After a restore of the storage from a snapshot the lease is an older one, which may name no holder.
The holder that was seen before the restore counts as the holder for one more lease duration
(`ObservedLease.former`): its own renewal is refused, it reads the lease, and either takes it again
or has lost it.

The order when stopping: stop deciding, let the writes under way end while `hold` goes on, leave
`hold`, `release`. A process whose request for the lease was not answered releases it too
(`may_hold`): otherwise a process that has ended would hold it. After a loss the process should end:
it cannot know what it has missed.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import Conflict, Forbidden, KubeError, NotFound
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.lease.lease import (
    JITTER_FACTOR,
    Lease,
    LeaseConfig,
    LeaseStore,
    held_by,
    released,
)
from k8s_scheduler.kube.lease.lease_watch import LeaseWatch
from k8s_scheduler.kube.lease.metadata import NO_NOTES, LeaseNotes
from k8s_scheduler.kube.lease.observed_lease import ObservedLease
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.watch.set_back import SetBack, Source
from k8s_scheduler.obs.metrics import KubeMetrics

log = logging.getLogger(__name__)

# A candidate reads the lease at least this often, plus some jitter, while another process holds it,
# however long the retry period is.
LOOK_SECONDS: Final = 0.5
_LOOK_JITTER: Final = 0.2
# An event loop can't wait for less.
_SHORTEST_SECONDS: Final = 0.01
# The share of the remaining time that one call may take, unless the renew deadline is short.
_CALL_SHARE: Final = 0.5
_LEAST_CALL_SECONDS: Final = 1.0

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Return seconds of a clock that cannot be set and goes on while the machine sleeps."""
    return time.clock_gettime(_BOOT_CLOCK)


class _Try(Enum):
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


class Elector:
    """One candidate. Call `acquire`, then `hold`; `may_write` may be called at any time."""

    def __init__(
        self,
        transport: Transport,
        config: LeaseConfig,
        *,
        metrics: KubeMetrics,
        timing: Timing,
        hooks: ElectorHooks | None = None,
    ) -> None:
        """Be a candidate for a lease; the clock of `timing` must go on while the machine sleeps."""
        hooks = hooks or ElectorHooks()
        clock = timing.clock
        self._config = config
        self._wrote: Callable[[Lease], None] = lambda _: None
        self._set_back = hooks.set_back
        self._notes = hooks.notes
        self._may_lead = hooks.may_lead
        self._store = LeaseStore(transport, namespace=config.namespace, name=config.name)
        self._clock = clock
        self._wall_clock_ns = timing.wall_clock_ns
        self._sleep = timing.sleep
        self._uniform = timing.uniform
        self._log = BoundedLog(log, clock)
        self._status = metrics.leader_status.labels(name=config.name)
        self._status.set(0)
        self._leading = False
        # We have led, and have not given the lease back since.
        self._in_term = False
        # When the write was answered that made us the leader.
        self._led_from = float("-inf")
        # The start of the last write that certainly made or kept us the holder.
        self._held_from = float("-inf")
        # The lease as our own last write left it; None whenever that is not certain.
        self._ours: Lease | None = None
        # The version that our last write was to replace, "" for none, until it has come to nothing.
        self._asked_over: str | None = None
        # We have asked for the lease to be taken from us; there may have been no answer.
        self._asked_to_release = False
        # We made the lease ourselves when we came to lead, and had never seen one before.
        self._is_newborn = False
        # Whether further writes may begin: not while our lease is shown deleted and not renewed.
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._observed = ObservedLease(clock, self._went_back)
        self._watch = LeaseWatch(
            transport,
            config,
            observed=self._observed,
            vanished=self._vanished,
            complain=self._complain,
            timing=timing,
        )

    @property
    def is_leading(self) -> bool:
        """Whether we lead, as far as is known; ask `may_write` before a write."""
        return self._leading

    @property
    def may_hold(self) -> bool:
        """Whether the lease is ours to give back, or may be: we have asked for it."""
        return self._leading or (not self._in_term and self._asked_over is not None)

    @property
    def holder(self) -> str:
        """The holder when the lease was last seen; empty if there was none, or it is not known."""
        return self._observed.holder

    @property
    def lease(self) -> Lease | None:
        """The lease as our own last write left it; None whenever that is not certain."""
        return self._ours

    def may_write(self) -> bool:
        """Return whether a write may start now."""
        return self._leading and self._clock() < self._deadline

    @property
    def is_newborn(self) -> bool:
        """Whether we came to lead by making a lease where, as far as we know, there never was."""
        return self._is_newborn

    async def writes_may_begin(self) -> None:
        """Wait while the lease is shown deleted and not renewed; `may_write` is asked after."""
        await self._may_begin.wait()

    async def let_others_stop(self) -> None:
        """Wait until no holder of a lease that was gone before we made ours can write any more."""
        left = self._led_from + self._config.lease_duration_seconds - self._clock()
        await self._sleep(max(0.0, left))

    def may_tell(self) -> bool:
        """Return whether an event about what we did may be written now.

        A process that gave the lease back may still tell what it did with it. A process that lost
        the lease may not: the new leader may tell otherwise by now.
        """
        return not self._in_term or self._clock() < self._deadline

    def on_write(self, wrote: Callable[[Lease], None]) -> None:
        """Give `wrote` the lease as each write leaves it: one that was remade has no notes."""
        self._wrote = wrote

    async def acquire(self) -> None:
        """Wait until we lead.

        Whatever is read consistently from now on shows all that earlier leaders have written.
        """
        config = self._config
        log.info("attempting to acquire leader lease %s...", self._lease_name)
        async with self._watch:
            while True:
                tried = await self._try(config.renew_deadline_seconds)
                if tried is _Try.HELD:
                    # Before the watch is closed: a cancellation there must find a lease to release.
                    self._start_leading()
                    return
                await self._watch.wait(self._pause_seconds(tried))

    async def hold(self) -> None:
        """Renew until the lease is lost; however it ends, we do not lead afterwards."""
        try:
            async with self._watch:
                await self._renew()
        finally:
            self._stop_leading()

    async def _renew(self) -> None:
        retry_seconds = self._config.retry_period_seconds
        next_at = self._held_from + retry_seconds
        while True:
            seconds = max(0.0, min(next_at, self._deadline) - self._clock())
            # Shown deleted, it is renewed at once.
            await self._watch.wait(seconds)
            left_seconds = self._deadline - self._clock()
            if left_seconds <= 0.0:
                log.error("failed to renew lease %s: timed out", self._lease_name)
                return
            tried_at = self._clock()
            tried = await self._try(left_seconds)
            if tried is _Try.TAKEN:
                log.error("lost lease %s to %s", self._lease_name, self.holder)
                self._held_from = float("-inf")
                return
            held = tried is _Try.HELD
            if held:
                self._may_begin.set()
            next_at = (self._held_from if held else tried_at) + retry_seconds

    def _vanished(self) -> None:
        """Take note that the watch has shown the lease deleted."""
        if self._leading:
            log.warning("lease %s was deleted while it was held", self._lease_name)
            self._may_begin.clear()

    def _went_back(self, known: str, seen: str) -> None:
        self._set_back(SetBack("leases", Source.LEASE, known=known, seen=seen))

    async def release(self, *, timeout_seconds: float = 5.0) -> bool:
        """Give the lease back if it is still ours; return whether it is certainly not.

        Only after every write under way has ended: the next leader may start at once.
        """
        self._stop_leading()
        give_up_at = self._clock() + timeout_seconds
        while (tried_at := self._clock()) < give_up_at:
            try:
                if await self._give_back(give_up_at, timeout_seconds * _CALL_SHARE):
                    return True
            except Conflict:
                continue
            except KubeError as error:
                self._complain("update", error)
                next_at = min(tried_at + self._config.retry_period_seconds, give_up_at)
                await self._sleep(max(0.0, next_at - self._clock()))
        return False

    async def _give_back(self, give_up_at: float, call_seconds: float) -> bool:
        lease, self._ours = self._ours, None
        if lease is None:
            lease = await self._store.read(min(call_seconds, give_up_at - self._clock()))
        if lease is None or not self._may_become_ours(lease):
            if self._asked_to_release and self._clock() < self._deadline:
                # Too early for another process to take it: an earlier try gave it back.
                self._in_term = False
            return True
        asked_at = self._clock()
        if asked_at >= give_up_at:
            return False
        spec = released(lease, wall_ns=self._wall_clock_ns())
        seconds = min(call_seconds, give_up_at - asked_at)
        self._asked_to_release = True
        written = await self._store.write(lease, spec, timeout_seconds=seconds)
        self._in_term = False
        self._observed.look(written, asked_at=asked_at)
        log.info("released lease %s", self._lease_name)
        return True

    def _may_become_ours(self, lease: Lease) -> bool:
        """Return whether the lease is ours, or a write of ours may yet make it so.

        Such a write got no answer and was to replace this very version. Any other write to this
        version makes the server refuse that one.
        """
        return self._config.identity == lease.holder or self._asked_over == lease.resource_version

    async def _try(self, timeout_seconds: float) -> _Try:
        """Make or keep us the holder, within the time."""
        give_up_at = self._clock() + timeout_seconds
        if self._ours is not None:
            tried = await self._write(self._ours, give_up_at)
            if tried is not _Try.CHANGED:
                return tried
        asked_at = self._clock()
        if asked_at >= give_up_at:
            return _Try.FAILED
        try:
            lease = await self._store.read(self._call_seconds(give_up_at - asked_at))
        except KubeError as error:
            self._complain("get", error)
            return _Try.FAILED
        if lease is not None and not self._observed.look(lease, asked_at=asked_at):
            return _Try.CHANGED
        if lease is not None and lease.holder != self._config.identity:
            self._is_newborn = False
        if lease is not None and not self._may_become_ours(lease):
            self._asked_over = None
        if not self._is_free(lease):
            return _Try.TAKEN
        # A process that leads already is not asked.
        may_take = self._leading or self._may_lead()
        return await self._write(lease, give_up_at) if may_take else _Try.REFUSED

    async def _write(self, lease: Lease | None, give_up_at: float) -> _Try:
        self._ours = None
        started_at = self._clock()
        if started_at >= give_up_at:
            return _Try.FAILED
        self._asked_over = lease.resource_version if lease is not None else ""
        if lease is None and self._observed.record is None:
            # Also if there is no answer, and what was made is found by the next try.
            self._is_newborn = True
        spec = held_by(self._config, lease, wall_ns=self._wall_clock_ns())
        try:
            seconds = self._call_seconds(give_up_at - started_at)
            written = await self._store.write(
                lease, spec, timeout_seconds=seconds, notes=self._notes()
            )
        except Conflict:
            return _Try.CHANGED
        except KubeError as error:
            if lease is not None and isinstance(error, NotFound):
                return _Try.CHANGED
            # Where the lease is to be made, it is its namespace that is not found.
            self._complain("create" if lease is None else "update", error)
            return _Try.FAILED
        self._observed.look(written, asked_at=started_at)
        self._ours = written
        self._wrote(written)
        if self._leading and self._clock() >= self._deadline:
            # Of the term before this write: it must not go on, see above.
            return _Try.FAILED
        self._held_from = started_at
        if not self._leading:
            self._led_from = self._clock()
        return _Try.HELD if self._clock() < self._deadline else _Try.FAILED

    def _call_seconds(self, left_seconds: float) -> float:
        """Return how long one call may take, of the time that is left for all of them."""
        share_seconds = self._config.renew_deadline_seconds * _CALL_SHARE
        return min(left_seconds, max(share_seconds, _LEAST_CALL_SECONDS))

    def _is_free(self, lease: Lease | None) -> bool:
        """Return whether no other process can still write under the record last seen."""
        if lease is None and self._observed.record is None:
            return True
        former = self._observed.former
        if former is not None and former.record.holder != self._config.identity:
            duration = former.record.spec.lease_duration_seconds
            seconds = float(duration or self._config.lease_duration_seconds)
            if self._clock() < former.noticed_at + seconds:
                return False
        if self.holder in ("", self._config.identity):
            return True
        return self._clock() >= self._free_at

    @property
    def _free_at(self) -> float:
        """When the record last seen has been unchanged for the whole duration it names."""
        record = self._observed.record
        named = record.spec.lease_duration_seconds if record is not None else None
        return self._observed.since + float(named or self._config.lease_duration_seconds)

    def _pause_seconds(self, tried: _Try) -> float:
        """Return how long a candidate waits before it tries again.

        The wait is random, so that candidates do not all try at the same moment.
        """
        retry_seconds = self._config.retry_period_seconds
        if tried is _Try.FAILED:
            return retry_seconds * self._jitter()
        look_seconds = min(LOOK_SECONDS, retry_seconds) * (1.0 + _LOOK_JITTER * self._uniform())
        if tried is _Try.REFUSED:
            return look_seconds
        left_seconds = self._free_at - self._clock()
        return max(_SHORTEST_SECONDS, min(look_seconds, left_seconds))

    @property
    def _deadline(self) -> float:
        return self._held_from + self._config.renew_deadline_seconds

    @property
    def _lease_name(self) -> str:
        return f"{self._config.namespace}/{self._config.name}"

    def _jitter(self) -> float:
        return 1.0 + JITTER_FACTOR * self._uniform()

    def _start_leading(self) -> None:
        self._leading = self._in_term = True
        self._asked_to_release = False
        self._status.set(1)
        log.info("successfully acquired lease %s", self._lease_name)
        log.info("%s became leader", self._config.identity)

    def _stop_leading(self) -> None:
        # A write that waits to begin asks `may_write` next, and learns that the term is over.
        self._may_begin.set()
        if self._leading:
            self._leading = False
            self._status.set(0)
            log.info("%s stopped leading", self._config.identity)

    def _complain(self, verb: str, error: KubeError) -> None:
        if isinstance(error, Forbidden):
            self._log.forbidden(
                verb,
                "leases.coordination.k8s.io",
                namespace=self._config.namespace,
                error=error,
            )
        else:
            self._log.warning(
                verb, "cannot %s lease %s, trying again: %s", verb, self._lease_name, error
            )
