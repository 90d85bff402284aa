"""Leader election on a Lease: at most one process writes at a time.

                acquire(): jittered tries             hold(): a renewal every retry period
     ┌───────┐  write answered with success  ┌─────────┐
     │STANDBY│ ────────────────────────────► │ LEADING │ ◄─┐ renewal answered with success:
     └───────┘                               └─────────┘ ──┘ the deadline moves on
         ▲                                        │
         │   renew deadline passed; another holder seen; hold() left in any way;  release()
         └────────────────────────────────────────┘

Why two never write at once is told in `claim`.

How soon one follows another: renewals come every retry period, and a candidate reads the lease
more often than that (`LOOK_SECONDS`), because it counts from when it *sees* a renewal and takes a
released lease when it sees it released. It also wakes just when the record has been unchanged for
long enough. So after a crash another process leads at most one look after the lease has run out. A
watch on the lease (`lease_watch`) shows most changes sooner. It may fail, because the looks go on,
and a candidate always reads the lease just before it takes it.

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
from typing import Final

from k8s_scheduler.kube.errors import Conflict, KubeError
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.lease.claim import CALL_SHARE, Claim, ElectorHooks, Try
from k8s_scheduler.kube.lease.lease import JITTER_FACTOR, Lease, LeaseConfig
from k8s_scheduler.kube.lease.lease_watch import LeaseWatch
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.obs.metrics import KubeMetrics

log = logging.getLogger(__name__)

# A candidate reads the lease at least this often, plus some jitter, while another process holds it,
# however long the retry period is.
LOOK_SECONDS: Final = 0.5
_LOOK_JITTER: Final = 0.2
# An event loop can't wait for less.
_SHORTEST_SECONDS: Final = 0.01

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Return seconds of a clock that cannot be set and goes on while the machine sleeps."""
    return time.clock_gettime(_BOOT_CLOCK)


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
        self._config = config
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._uniform = timing.uniform
        self._status = metrics.leader_status.labels(name=config.name)
        self._status.set(0)
        # Whether further writes may begin: not while our lease is shown deleted and not renewed.
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._claim = Claim(transport, config, timing=timing, hooks=hooks or ElectorHooks())
        self._watch = LeaseWatch(
            transport,
            config,
            observed=self._claim.observed,
            vanished=self._vanished,
            complain=self._claim.complain,
            timing=timing,
        )

    @property
    def is_leading(self) -> bool:
        """Whether we lead, as far as is known; ask `may_write` before a write."""
        return self._claim.leading

    @property
    def may_hold(self) -> bool:
        return self._claim.may_hold

    @property
    def holder(self) -> str:
        return self._claim.observed.holder

    @property
    def lease(self) -> Lease | None:
        """The lease as our own last write left it; None whenever that is not certain."""
        return self._claim.ours

    def may_write(self) -> bool:
        return self._claim.leading and self._claim.is_in_time

    @property
    def is_newborn(self) -> bool:
        """Whether we came to lead by making a lease where, as far as we know, there never was."""
        return self._claim.is_newborn

    async def writes_may_begin(self) -> None:
        """Wait while the lease is shown deleted and not renewed; `may_write` is asked after."""
        await self._may_begin.wait()

    async def let_others_stop(self) -> None:
        """Wait until no holder of a lease that was gone before we made ours can write any more."""
        left = self._claim.led_from + self._config.lease_duration_seconds - self._clock()
        await self._sleep(max(0.0, left))

    def may_tell(self) -> bool:
        """Return whether an event about what we did may be written now.

        A process that gave the lease back may still tell what it did with it. A process that lost
        the lease may not: the new leader may tell otherwise by now.
        """
        return not self._claim.in_term or self._claim.is_in_time

    def on_write(self, wrote: Callable[[Lease], None]) -> None:
        """Give `wrote` the lease as each write leaves it: one that was remade has no notes."""
        self._claim.wrote = wrote

    async def acquire(self) -> None:
        """Wait until we lead.

        Whatever is read consistently from now on shows all that earlier leaders have written.
        """
        config = self._config
        log.info("attempting to acquire leader lease %s...", self._config.full_name)
        async with self._watch:
            while True:
                tried = await self._claim.attempt(config.renew_deadline_seconds)
                if tried is Try.HELD:
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
        next_at = self._claim.held_from + retry_seconds
        while True:
            seconds = max(0.0, min(next_at, self._claim.deadline) - self._clock())
            # Shown deleted, it is renewed at once.
            await self._watch.wait(seconds)
            left_seconds = self._claim.deadline - self._clock()
            if left_seconds <= 0.0:
                log.error("failed to renew lease %s: timed out", self._config.full_name)
                return
            tried_at = self._clock()
            tried = await self._claim.attempt(left_seconds)
            if tried is Try.TAKEN:
                log.error("lost lease %s to %s", self._config.full_name, self.holder)
                self._claim.held_from = float("-inf")
                return
            held = tried is Try.HELD
            if held:
                self._may_begin.set()
            next_at = (self._claim.held_from if held else tried_at) + retry_seconds

    def _vanished(self) -> None:
        """Take note that the watch has shown the lease deleted."""
        if self._claim.leading:
            log.warning("lease %s was deleted while it was held", self._config.full_name)
            self._may_begin.clear()

    async def release(self, *, timeout_seconds: float = 5.0) -> bool:
        """Give the lease back if it is still ours; return whether it is certainly not.

        Only after every write under way has ended: the next leader may start at once.
        """
        self._stop_leading()
        give_up_at = self._clock() + timeout_seconds
        while (tried_at := self._clock()) < give_up_at:
            try:
                if await self._claim.give_back(give_up_at, timeout_seconds * CALL_SHARE):
                    return True
            except Conflict:
                continue
            except KubeError as error:
                self._claim.complain("update", error)
                next_at = min(tried_at + self._config.retry_period_seconds, give_up_at)
                await self._sleep(max(0.0, next_at - self._clock()))
        return False

    def _pause_seconds(self, tried: Try) -> float:
        """Return how long a candidate waits before it tries again.

        The wait is random, so that candidates do not all try at the same moment.
        """
        retry_seconds = self._config.retry_period_seconds
        if tried is Try.FAILED:
            return retry_seconds * (1.0 + JITTER_FACTOR * self._uniform())
        look_seconds = min(LOOK_SECONDS, retry_seconds) * (1.0 + _LOOK_JITTER * self._uniform())
        if tried is Try.REFUSED:
            return look_seconds
        left_seconds = self._claim.free_at - self._clock()
        return max(_SHORTEST_SECONDS, min(look_seconds, left_seconds))

    def _start_leading(self) -> None:
        self._claim.start_term()
        self._status.set(1)
        log.info("successfully acquired lease %s", self._config.full_name)
        log.info("%s became leader", self._config.identity)

    def _stop_leading(self) -> None:
        # A write that waits to begin asks `may_write` next, and learns that the term is over.
        self._may_begin.set()
        if self._claim.leading:
            self._claim.leading = False
            self._status.set(0)
            log.info("%s stopped leading", self._config.identity)
