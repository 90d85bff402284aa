"""Makes a new core where one has failed on a change that an informer told of.

    broken ─▶ writes under way end ─▶ a new core ─▶ told of everything ─▶ caught up ─▶ decides
                 │ not in time           ▲                 │ fails again
                 ▼                       └─────────────────┘ without what it failed on
              the process ends

Why a new one: a message is handled to its end or not at all only as long as nothing fails. A core
that has raised may have counted a pod on its node and not in its zone, and there is no way to tell
from outside. Taking the object out again would subtract what was never added. So nothing of it is
used any further: not what it holds, not what it was about to do. All that a core knows comes from
the API server, and the informers have it.

Why nothing is lost or done twice: it is what happens when a process ends and another one takes
over, in the same order. Nothing is decided from the failure on. Every write under way comes to its
end before anything is decided anew, and then pods and nodes are caught up with the server, so that
what was bound is known to be. What a core alone remembers (how often a pod was tried, how long it
waits yet, permits) begins anew, as after a restart.

Why it comes to an end: each failure is counted on its object (`left_out.py`), which is told of
last, then in part, then no more. A core that fails on more than `MOST_FAILURES` changes in a row of
attempts is wrong itself, and the process ends.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.write.dispatcher import Dispatcher
from k8s_scheduler.kube.write.write_lane import WriteLane
from k8s_scheduler.obs.metrics import SchedulerMetrics

logger = logging.getLogger(__name__)

# Each write comes to an end of its own accord, one in doubt two minutes after the last request that
# may have stored it. To end the process sooner would lose the answer: the next one lists the pod
# unbound, gives its room away, and then the Binding lands.
DRAIN_SECONDS: Final = 300.0
# So many changes may fail before a core was filled to its end.
MOST_FAILURES: Final = 20


class RebuildError(Exception):
    """No new core can be made; the process has to end."""


class CoreRebuild:
    """Waits for a core to fail."""

    def __init__(
        self,
        pump: Pump,
        make: Callable[[Setup], Scheduler],
        watched: WatchSet,
        *,
        dispatcher: Dispatcher,
        writes: WriteLane,
        metrics: SchedulerMetrics,
    ) -> None:
        self._pump = pump
        self._make = make
        self._watched = watched
        self._dispatcher = dispatcher
        self._writes = writes
        self._rebuilds = metrics.core_rebuilds
        self._left_out = metrics.objects_left_out

    async def run(self) -> None:
        while True:
            await self._pump.broken.wait()
            await self._rebuild()

    async def _rebuild(self) -> None:
        unended = await self._dispatcher.drain(DRAIN_SECONDS)
        unended += await self._writes.drain(DRAIN_SECONDS)
        if unended:
            raise RebuildError(f"{unended} writes have not ended within {DRAIN_SECONDS:g} s")
        for _ in range(MOST_FAILURES):
            self._pump.start_over(self._make(self._pump.core.setup))
            await self._fill()
            if not self._pump.broken.is_set():
                await self._catch_up()
            if not self._pump.broken.is_set():
                self._end()
                return
        raise RebuildError(f"the core has failed on {MOST_FAILURES} changes one after the other")

    async def _fill(self) -> None:
        """Tell a new core of all there is, as at a start; what was failed on before comes last."""
        part = self._pump.meter.start("rebuild")
        last = []
        for resource, key, tell in self._everything():
            if self._pump.left_out.is_last(resource, key):
                last.append(tell)
                continue
            tell()
            if self._pump.broken.is_set():
                break
            if part.full():
                await part.breathe()
        for tell in last:
            if not self._pump.broken.is_set():
                tell()
        part.finish()

    def _everything(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        pump, watched = self._pump, self._watched
        nodes, pods = watched.nodes.store, watched.pods.store
        for name in list(nodes):
            yield "nodes", name, partial(_tell, pump.node_changed, nodes, name)
        for kind, informer in list(watched.others.items()):
            change = partial(pump.object_changed, kind)
            for key, found in list(informer.store.items()):
                name = f"{found.metadata.namespace}/{found.metadata.name}"
                yield str(kind), name, partial(_tell, change, informer.store, key)
        for key, pod in list(pods.items()):
            yield "pods", pod.metadata.uid, partial(_tell, pump.pod_changed, pods, key)

    async def _catch_up(self) -> None:
        """See all that was written by the core before, and everything as it is now."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watched.nodes.catch_up())
            group.create_task(self._watched.pods.catch_up())

    def _end(self) -> None:
        self._pump.mend()
        self._rebuilds.inc()
        for resource, count in self._pump.left_out.counts().items():
            self._left_out.labels(resource).set(count)
        fields = {"objects_left_out": sum(self._pump.left_out.counts().values())}
        logger.warning("A new core was made, scheduling goes on", extra={"fields": fields})


def _tell(change: Callable[[Any, Any], None], store: Mapping[str, Any], key: str) -> None:
    if (known := store.get(key)) is not None:
        change(None, known)
