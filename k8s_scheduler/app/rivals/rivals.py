"""Whether another process serves a schedulerName of ours under another Lease: a rival.

Election keeps two replicas of one release apart, not two releases: each has a Lease of its own,
both lead, and both decide about the same pods. So each holder says on its Lease which names it
serves (`served_names`), and every replica looks at the Leases of others: at its start, then about
once a minute, and often for as long as something has to be settled.

    Warn     a rival that lives is told of: log, Event, metric
    Refuse   the same, and a replica that does not lead does not begin to while one may live
    Ignore   nothing is looked at

Refusing holds against two that begin at the same moment: a process that has taken its Lease looks
once more before it decides anything (`may_decide`), and lists are consistent, so of two the later
sees the other. If both do, both give their Leases back, and the one whose Lease comes later in the
alphabet waits for longer. A leader goes on when a rival comes: it is the other that should not have
begun, and pods must not be left without a scheduler.

What can't be looked at, for want of a right or of an answer, holds nothing up.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from k8s_scheduler.api.config.extras import IGNORE, REFUSE, Rivals
from k8s_scheduler.app.rivals.news import Rival, RivalNews
from k8s_scheduler.app.rivals.served_names import (
    DEFAULT_SCHEDULER,
    KUBE_SCHEDULER,
    LABEL,
    NOTE,
    served_by,
)
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.lease.holder_liveness import HolderLiveness, Liveness
from k8s_scheduler.kube.lease.other_leases import LeaseLook, OtherLease, labelled_leases, one_lease
from k8s_scheduler.kube.waiting import Sleep, wait_within

LOOK_SECONDS: Final = 60.0
# While a Lease is seen that may be a living rival's: holders renew every other second.
SOON_SECONDS: Final = 2.0
# With action Warn that is settled at the start; later the next ordinary look is soon enough.
SETTLING_SECONDS: Final = 30.0
# A look that takes longer has failed.
CALL_SECONDS: Final = 3.0
# How much longer the later one of two waits that have met: some looks of the other.
GIVE_WAY_SECONDS: Final = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ourselves:
    """What is ours, as of now: a reload changes names and settings."""

    # `namespace/name` of our Lease; empty without leader election.
    lease: str
    names: Callable[[], Collection[str]]
    settings: Callable[[], Rivals]


class RivalWatch:
    """Looks for rivals; `may_lead` and `may_decide` say whether they let us."""

    def __init__(
        self,
        transport: Transport,
        ourselves: Ourselves,
        news: RivalNews,
        *,
        clock: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self._transport = transport
        self._ourselves = ourselves
        self._news = news
        self._clock = clock
        self._sleep = sleep
        self._call_seconds = call_seconds
        self._liveness = HolderLiveness(clock)
        self._leases: tuple[OtherLease, ...] = ()
        self._has_looked = False
        # We lead, or have no Lease and decide: no rival is in the way any more.
        self._has_begun = False
        self._settled_by = clock() + SETTLING_SECONDS
        self._give_way_until = float("-inf")
        self._looking = asyncio.Lock()
        self._asked = asyncio.Event()

    # Before leading

    def may_lead(self) -> bool:
        if self._action != REFUSE:
            return True
        return self._has_looked and self._clock() >= self._give_way_until and not self._in_the_way()

    async def may_decide(self) -> bool:
        """Look once more, from a Lease that was just taken; False if it has to be given back."""
        if self._action != REFUSE:
            self._has_begun = True
            return True
        await self._look_in_time()
        met = self._in_the_way()
        self._has_begun = not met
        if met:
            # To tell of it may take a request more, for which there is no time with a Lease taken.
            self._asked.set()
        own = self._ourselves.lease
        if own and any(rival.lease.key < own for rival in met):
            self._give_way_until = self._clock() + GIVE_WAY_SECONDS
        return not met

    async def until_none(self) -> None:
        """Wait until no rival is in the way; for a process without leader election."""
        while not await self.may_decide():
            await self._sleep(SOON_SECONDS)

    def look_soon(self) -> None:
        """Look at once, and settle what is seen: the names that we serve have changed."""
        self._settled_by = self._clock() + SETTLING_SECONDS
        self._asked.set()

    # Looking

    async def run(self) -> None:
        while True:
            self._asked.clear()
            if self._action == IGNORE:
                await self._forget()
            else:
                await self._look_in_time()
                await self._tell()
            await wait_within(self._asked, self._pause_seconds(), sleep=self._sleep)

    async def _look_in_time(self) -> None:
        """Look; one that takes too long has failed."""
        async with self._looking:
            try:
                async with asyncio.timeout(self._call_seconds):
                    look = await self._look()
            except TimeoutError:
                self._news.failed(TimeoutError("no answer in time"))
            except KubeError as error:
                self._news.failed(error)
            else:
                self._news.looked(complete=look.complete)
                self._leases = look.leases
                self._liveness.look(look.leases)
            self._has_looked = True

    async def _look(self) -> LeaseLook:
        settings = self._ourselves.settings()
        look = await labelled_leases(
            self._transport,
            LABEL,
            note=NOTE,
            namespaces=settings.namespaces,
            timeout_seconds=self._call_seconds,
        )
        namespace, name = KUBE_SCHEDULER
        is_looked_into = not settings.namespaces or namespace in settings.namespaces
        if DEFAULT_SCHEDULER not in self._ourselves.names() or not is_looked_into:
            return look
        found = await one_lease(
            self._transport, namespace, name, note=NOTE, timeout_seconds=self._call_seconds
        )
        if found is None or any(lease.key == found.key for lease in look.leases):
            return look
        return LeaseLook((*look.leases, found), complete=look.complete)

    async def _forget(self) -> None:
        self._leases = ()
        self._liveness.look(())
        await self._tell()

    # What was seen

    @property
    def _action(self) -> str:
        return self._ourselves.settings().action

    def _rivals(self) -> list[Rival]:
        own, names = self._ourselves.lease, self._ourselves.names()
        found = []
        for lease in self._leases:
            liveness = self._liveness.of(lease)
            shared = tuple(sorted(served_by(lease).intersection(names)))
            if shared and liveness is not Liveness.DEAD and lease.key != own:
                found.append(Rival(lease, shared, lives=liveness is Liveness.LIVE))
        return found

    def _in_the_way(self) -> list[Rival]:
        return self._rivals() if self._action == REFUSE else []

    @property
    def _refuses(self) -> bool:
        return self._action == REFUSE and not self._has_begun

    async def _tell(self) -> None:
        rivals = self._rivals()
        refuses = self._refuses
        own = next((each for each in self._leases if each.key == self._ourselves.lease), None)
        told = rivals if refuses else [rival for rival in rivals if rival.lives]
        await self._news.tell(told, own=own, refuses=refuses)

    def _pause_seconds(self) -> float:
        rivals = self._rivals()
        unsettled = any(not rival.lives for rival in rivals)
        is_new = unsettled and self._clock() < self._settled_by
        return SOON_SECONDS if is_new or (rivals and self._refuses) else LOOK_SECONDS
