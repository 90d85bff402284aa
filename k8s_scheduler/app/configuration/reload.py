"""Follows the configuration while the scheduler runs.

    origin ── may have changed, SIGHUP ──▶ look ──▶ same text: nothing
                                            │
                                            ▼
                            read, check, resolve, compile, all aside
                                            │
             ┌──────────────────────────────┼─────────────────────────────┐
             ▼                              ▼                             ▼
      refused: all errors           means the same:               applied: swapped
      in log, metric, Event;        only counted                  between two decisions
      the last good one stays
             │ nothing is wrong with it, but what it needs could not be listed now
             └─▶ tried again by later looks, ever less often, and said no second time

What can't change without a restart is left as it was, and said; the rest of the change holds.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Final

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.app.configuration.apply import NotNowError, Swap, SwapError
from k8s_scheduler.app.configuration.initial import StartError, place_to_keep
from k8s_scheduler.app.configuration.interpretation import log_warnings, read, refusing
from k8s_scheduler.app.configuration.mounts import ADVICE, is_mounted_alone
from k8s_scheduler.app.configuration.offered import Offer, RefusedOffer, hash_of
from k8s_scheduler.app.configuration.reload_parts import LOOK_SECONDS, Origin, ReloadParts
from k8s_scheduler.app.configuration.status import mean_the_same, settle
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.lib.backoff import Backoff

logger = logging.getLogger(__name__)

# A try lists whatever is newly read, up to where that fails: not what a server in trouble needs
# often. The longest is what an operator who grants a missing right waits, unless SIGHUP is sent.
FIRST_RETRY_SECONDS: Final = 10.0
LONGEST_RETRY_SECONDS: Final = 300.0


class Reload:
    """Takes over what the origin offers, or refuses it."""

    def __init__(
        self,
        parts: ReloadParts,
        options: RunOptions,
        swap: Swap,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._parts = parts
        self._options = options
        self._flags = options.configuration_flags
        self._swap = swap
        self._wall_clock = wall_clock
        refused = options.configuration_refused
        # What was looked at last, whatever came of it.
        self._seen = hash_of(options.configuration_text or "") if refused is None else refused.hash
        # When that is tried again although it is the same; replicas need not keep apart.
        self._retry_at = math.inf
        self._backoff = Backoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, jitter=0.0)
        self._asked = asyncio.Event()

    def look_now(self) -> None:
        """Look at once, and judge again what is there."""
        self._asked.set()

    async def run(self) -> None:
        """Follow the origin until cancelled; without one there is nothing that could change."""
        if (text := self._options.configuration_text) is not None:
            in_force = self._parts.status.in_force
            self._parts.keeper.keep(place_to_keep(self._flags, in_force), text)
        origin = self._parts.origin
        if origin is None:
            while True:
                await self._asked.wait()
                self._asked.clear()
                logger.info("There is no configuration to be read again: defaults are in force")
        file = self._flags.config_file
        if file is not None and is_mounted_alone(file):
            fields = {"file": str(file), "reason": ADVICE}
            logger.warning(
                "Changes of the configuration will not be seen", extra={"fields": fields}
            )
        refused = self._options.configuration_refused
        if refused is not None:
            offer = await origin.look()
            await self._parts.events.refused(refused, offer, in_force=self._parts.status.hash)
        while True:
            asked = await self._wait(origin)
            await self.look(origin, asked=asked)
            await self._swap.tidy()

    async def _wait(self, origin: Origin) -> bool:
        """Return when it is time for a look; True if `look_now` asked for it."""
        waiting = [
            asyncio.ensure_future(origin.changed()),
            asyncio.ensure_future(self._asked.wait()),
        ]
        try:
            # Now and then in any case: a kind may be needed no longer.
            await asyncio.wait(waiting, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        asked = self._asked.is_set()
        self._asked.clear()
        return asked

    async def look(self, origin: Origin, *, asked: bool = False) -> None:
        """Take over what is offered, if it is new, due for another try, or asked for."""
        offer = await origin.look()
        clock = asyncio.get_running_loop().time
        is_retry = offer.hash == self._seen and not asked
        if is_retry and clock() < self._retry_at:
            return
        if not is_retry:
            self._backoff.reset()
        self._seen, self._retry_at = offer.hash, math.inf
        try:
            await self._take(offer)
        except NotNowError as error:
            self._retry_at = clock() + self._backoff.next_seconds()
            await self._refuse(offer, error, is_retry=is_retry)
        except (ConfigurationError, StartError, SwapError) as error:
            await self._refuse(offer, error)

    async def _take(self, offer: Offer) -> None:
        # Reading and checking takes longer than the loop may be held.
        offered = await asyncio.to_thread(read, self._flags, offer)
        keeps_in = place_to_keep(self._flags, offered)
        in_force, restart_needed = settle(self._options.configuration, offered)
        status = self._parts.status
        fields = {"source": offer.source, "hash": offer.hash}
        if mean_the_same(in_force, status.in_force):
            status.unchanged(in_force, offer.hash, restart_needed)
            logger.info("Configuration means the same as before", extra={"fields": fields})
        else:
            with refusing(offer):
                needed = await asyncio.to_thread(self._swap.reads, in_force)
            await self._swap.to(in_force, needed)
            log_warnings(in_force, self._flags)
            status.applied(in_force, offer.hash, restart_needed)
            self._swap.has_taken_effect()
            logger.info("Configuration reloaded", extra={"fields": fields})
        if restart_needed:
            fields = {"fields_changed": ", ".join(restart_needed)}
            logger.warning(
                "Part of the configuration needs a restart to take effect", extra={"fields": fields}
            )
        self._parts.keeper.keep(keeps_in, offer.text)

    async def _refuse(self, offer: Offer, error: Exception, *, is_retry: bool = False) -> None:
        errors = tuple(str(error).splitlines())
        refusal = RefusedOffer(offer.hash, offer.source, self._wall_clock(), errors)
        status = self._parts.status
        if is_retry:
            status.refuse_again(refusal)
            return
        status.refuse(refusal)
        fields = {
            "source": offer.source,
            "hash": offer.hash,
            "in_force": status.hash,
            "errors": list(errors),
        }
        logger.error(
            "Configuration refused, the last good one stays in force", extra={"fields": fields}
        )
        await self._parts.events.refused(refusal, offer, in_force=status.hash)
