"""What follows when the storage of the API server was set back, as by a restored etcd snapshot.

    a lower version is seen (kube/watch/set_back.py)
      └▶ decide nothing ─▶ list every kind ─▶ read what was agreed to and not shown ─▶ decide
                                                         └─ once more after `SETTLE_SECONDS`

The lists bring ghosts to their end and show what came in their place. Binds that were decided
before and are not sent yet fail, and their pods are decided anew; those in doubt are read, as ever.
A write that was under way at the restore is answered within its time limit: what it says may be of
the storage before, so what was agreed to is read a second time after that.

Where a resource was not heard of for a while, or this process was stopped for a while, and versions
are not lower, they may have overtaken ours: the content is compared with a list of the server, and
what is wrong in a way that the watch can't mend any more means the same as a lower version.

Further news while this goes on is acted on when it is over: a server that gives out versions at
random must not make us list without end.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.kube.watch.comparing import Comparer
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.watch.set_back import AWAY_SECONDS, SetBack, Source
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

# Longer than any write may take.
SETTLE_SECONDS: Final = 5.0
# A watch that shows nothing for so long, though a list does, may be of another history.
COMPARE_SECONDS: Final = 4.0
# Resources that come back within so long are compared together.
_GATHER_SECONDS: Final = 1.0
# Short beside `AWAY_SECONDS`: a loop that was merely busy was not away.
_TICK_SECONDS: Final = 0.25
# So often a comparison is tried that the server does not answer.
_TRIES: Final = 3


class Restored:
    """Hears of lower versions, and brings everything up to date."""

    def __init__(
        self,
        pump: Pump,
        watched: WatchSet,
        comparer: Callable[[Informer[Any]], Comparer[Any]],
        *,
        metrics: KubeMetrics,
        clock: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Act on what is heard; `clock` goes on while the machine sleeps."""
        self._clock = clock
        self._pump = pump
        self._watched = watched
        self._comparer = comparer
        self._counts = {source: metrics.storage_set_back.labels(source) for source in Source}
        self._sleep = sleep
        self._noticed = asyncio.Event()
        self._is_listing = False
        # Resources that are watched again after a while without a word. A dict is an ordered set.
        self._returned: dict[str, None] = {}
        self._came_back = asyncio.Event()

    def notice(self, news: SetBack) -> None:
        self._counts[news.source].inc()
        fields = {
            "resource": news.resource,
            "seen_in": news.source.value,
            "known_version": news.known,
            "version": news.seen,
        }
        logger.warning(
            "API server's storage was set back to an older state, listing everything anew",
            extra={"fields": fields},
        )
        if not self._is_listing:
            self._doubt(news)
        self._noticed.set()

    def returned(self, resource: str) -> None:
        """Take note of a resource that is watched again after a while without a word."""
        self._returned[resource] = None
        self._came_back.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._list_anew())
            group.create_task(self._compare(group))
            group.create_task(self._look_at_the_clock())

    def _doubt(self, news: SetBack | None) -> None:
        self._pump.doubt()
        for informer in self._watched:
            if news is None or not (news.listed and news.resource == informer.resource.label):
                informer.doubt()

    async def _list_anew(self) -> None:
        while True:
            await self._noticed.wait()
            self._noticed.clear()
            self._is_listing = True
            for informer in tuple(self._watched):
                await informer.trusted()
            await self._pump.trust(self._watched.pods.store)
            await self._sleep(SETTLE_SECONDS)
            await self._pump.trust(self._watched.pods.store)
            self._is_listing = False
            if self._noticed.is_set():
                self._doubt(None)

    async def _look_at_the_clock(self) -> None:
        """Notice when this process was stopped for a while, and heard of nothing meanwhile."""
        while True:
            before = self._clock()
            await self._sleep(_TICK_SECONDS)
            if self._clock() - before >= AWAY_SECONDS:
                for informer in tuple(self._watched):
                    self.returned(informer.resource.label)

    async def _compare(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._came_back.wait()
            # All that come back at the same time are compared together.
            await self._sleep(_GATHER_SECONDS)
            self._came_back.clear()
            returned, self._returned = self._returned, {}
            for informer in tuple(self._watched):
                if informer.resource.label in returned and informer.synced.is_set():
                    # Each by itself: one that is not answered holds up no other.
                    group.create_task(self._compare_one(informer))

    async def _compare_one(self, informer: Informer[Any]) -> None:
        for _ in range(_TRIES):
            if informer.dropped.is_set():
                return
            try:
                doubtful = await self._comparer(informer).doubtful(COMPARE_SECONDS)
            except KubeError as error:
                fields = {"resource": informer.resource.label, "error": str(error)}
                logger.warning("Cache could not be compared", extra={"fields": fields})
                await self._sleep(COMPARE_SECONDS)
                continue
            if doubtful:
                version = informer.resource_version
                plural = informer.resource.label
                self.notice(SetBack(plural, Source.COMPARISON, known=version, seen=doubtful))
            return
