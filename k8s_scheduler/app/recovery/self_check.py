"""Compares what this process believes with what the API server has, and puts right what is wrong.

    SIGUSR2, or every so often ─▶ informers against lists ─▶ core against informers ─▶ sums
                                      differs: a new list        differs: told again     recounted

Nothing here should ever find anything. What it finds is a bug, or memory that was changed from
outside: it is logged with its name, counted, and repaired by the same ways that news comes in, so a
recording shows the repair too. SIGUSR2 also writes a summary of cache and queue to the log, as
kube-scheduler does.

The informers are compared as far as their watch has come (`kube/watch/comparing.py`). The core is
told of each change as it enters an informer, so those two agree at every moment, and a slice of the
loop is enough to compare a part of them. What the core is told by other ways, of a pod that was
read to be gone or in the middle of a reload, is left out (`Pump.knows_otherwise`).
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from k8s_scheduler.app.recovery.core_check import CoreCheck
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.kube.watch.comparing import Comparer, Discrepancy, NotComparableError
from k8s_scheduler.kube.watch.informer import Informer, all_synced
from k8s_scheduler.obs.metrics import SchedulerMetrics

logger = logging.getLogger(__name__)

# So many objects are named in a line; the metric has the number.
_NAMED: Final = 20


class SelfCheck:
    """Runs comparisons, one at a time."""

    def __init__(
        self,
        core: CoreCheck,
        comparers: Callable[[], Mapping[Informer[Any], Comparer[Any]]],
        *,
        metrics: SchedulerMetrics,
        interval_seconds: float,
        sleep: Sleep = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        """Compare every `interval_seconds`, give or take a tenth; 0: only when asked."""
        self._core = core
        self._comparers = comparers
        self._differences = metrics.cache_differences
        self._comparisons = metrics.cache_comparisons
        self._interval_seconds = interval_seconds
        self._sleep = sleep
        self._uniform = uniform
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Dump and compare now; what SIGUSR2 does."""
        self._core.dump()
        self._asked.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._serve())
            if self._interval_seconds > 0:
                group.create_task(self._remind())

    async def _remind(self) -> None:
        while True:
            await self._sleep(self._interval_seconds * (0.9 + 0.2 * self._uniform()))
            self._asked.set()

    async def _serve(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            await all_synced(self._comparers)
            await self.compare()

    async def compare(self) -> None:
        failed, wrong = 0, 0
        for informer, comparer in self._comparers().items():
            found: list[Discrepancy] = []
            problem = ""
            try:
                if not (informer.is_absent or informer.dropped.is_set()):
                    found = await comparer.compare()
            except (KubeError, NotComparableError) as error:
                problem = str(error)
            if informer.dropped.is_set():
                # A change of the configuration came in between: it is not kept up any more.
                continue
            if problem:
                failed += 1
                fields = {"resource": informer.resource.label, "error": problem}
                logger.warning("Cache could not be compared", extra={"fields": fields})
                continue
            if found:
                self._report(informer.resource.label, found, "listing anew")
                await informer.relist()
            wrong += len(found)
        for resource, differing in (await self._core.compare()).items():
            self._report(resource, differing, "told again")
            wrong += len(differing)
        wrong += await self._core.recount()
        result = "failed" if failed else "different" if wrong else "same"
        self._comparisons.labels(result).inc()
        counts = {"differences": wrong, "not_compared": failed}
        logger.info("Cache was compared with the API server", extra={"fields": counts})

    def _report(self, resource: str, found: list[Discrepancy], repair: str) -> None:
        self._differences.labels(resource).inc(len(found))
        named = [f"{each.key}: {each.problem}" for each in found[:_NAMED]]
        logger.error(
            "Cache differs from the API server",
            extra={
                "fields": {
                    "resource": resource,
                    "differences": len(found),
                    "objects": "; ".join(named),
                    "repair": repair,
                }
            },
        )
