"""Compares the core with the informers, a slice at a time; tells it again what it has wrong."""

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Any, Final

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, key_of
from k8s_scheduler.app.driver.changes import reads_the_same
from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.kube.watch.comparing import Discrepancy
from k8s_scheduler.kube.watch.informer import Informer

logger = logging.getLogger(__name__)

# So many nodes and pods are written to the log by a dump.
_DUMPED: Final = 200
_ROWS: Final = 64
_CHECK_EVERY: Final = 16
_GONE: Final = "it is gone"


class CoreCheck:
    """The core of a pump, and the informers that it hears from."""

    def __init__(
        self,
        pump: Pump,
        watched: WatchSet,
    ) -> None:
        self._pump = pump
        self._watched = watched

    async def compare(self) -> dict[str, list[Discrepancy]]:
        """Return what the core had wrong, by resource; it has been told again."""
        found: dict[str, list[Discrepancy]] = defaultdict(list)
        if not self._pump.is_whole:
            # It has failed, and another one is about to be told of everything.
            return found
        held = self._pump.core.holdings
        async for node in self._sliced(self._watched.nodes.store.values()):
            if _is_outdated(self._watched.nodes, node):
                continue
            if problem := held.node_problem(node):
                found["nodes"].append(Discrepancy(key_of(node.metadata), problem))
                self._pump.node_changed(None, node)
        async for node in self._sliced(held.nodes()):
            # Taken a slice ago: both may have heard of its end since.
            if key_of(node.metadata) not in self._watched.nodes.store and held.has_node(node):
                found["nodes"].append(Discrepancy(key_of(node.metadata), _GONE))
                self._pump.node_changed(node, None)
        await self._compare_pods(found)
        for kind, informer in list(self._watched.others.items()):
            await self._compare_objects(kind, informer, found)
        return found

    async def _compare_pods(self, found: dict[str, list[Discrepancy]]) -> None:
        held = self._pump.core.holdings
        store = self._watched.pods.store
        async for pod in self._sliced(store.values()):
            if _is_outdated(self._watched.pods, pod) or self._pump.knows_otherwise(pod):
                # Told again of one that was read to be gone, the core would try to place it.
                continue
            if problem := held.pod_problem(pod):
                found["pods"].append(Discrepancy(key_of(pod.metadata), problem))
                self._pump.pod_changed(None, pod)
        async for pod in self._sliced(held.pods()):
            known = store.get(key_of(pod.metadata))
            is_gone = known is None or known.metadata.uid != pod.metadata.uid
            if is_gone and held.has_pod(pod):
                found["pods"].append(Discrepancy(key_of(pod.metadata), _GONE))
                self._pump.pod_changed(pod, None)

    async def _compare_objects(
        self, kind: Kind, informer: Informer[ClusterObject], found: dict[str, list[Discrepancy]]
    ) -> None:
        held, store = self._pump.core.holdings, informer.store
        resource = informer.resource.label
        async for known in self._sliced(store.values()):
            if informer.dropped.is_set():
                # A change of the configuration came in between: the core has to forget them.
                return
            if _is_outdated(informer, known):
                continue
            key, metadata = key_of(known.metadata), known.metadata
            told = held.object(kind, metadata.namespace, metadata.name)
            if told is None or not (told is known or reads_the_same(kind, told, known)):
                problem = "it is not known" if told is None else "another version of it is known"
                found[resource].append(Discrepancy(key, problem))
                self._pump.object_changed(kind, None, known)
        async for told in self._sliced(held.objects(kind)):
            key, metadata = key_of(told.metadata), told.metadata
            if key not in store and held.object(kind, metadata.namespace, metadata.name):
                found[resource].append(Discrepancy(key, _GONE))
                self._pump.object_changed(kind, told, None)

    async def recount(self) -> int:
        """Let the core add up anew what pods take; return on how many nodes it was wrong."""
        work = self._pump.meter.start("comparison")
        wrong = 0
        for first in range(0, self._pump.core.holdings.row_count, _ROWS):
            wrong += self._pump.recount(first, _ROWS)
            await work.breathe()
        work.finish()
        return wrong

    def dump(self) -> None:
        """Write to the log what is known, as kube-scheduler does on SIGUSR2; not all of it."""
        held = self._pump.core.holdings
        logger.info("Dump of cache and scheduling queue", extra={"fields": held.totals()})
        for line in islice(held.node_lines(), _DUMPED):
            logger.info("Dump of cached NodeInfo", extra={"fields": line})
        for line in islice(held.queue_lines(), _DUMPED):
            logger.info("Dump of scheduling queue", extra={"fields": line})

    async def _sliced(self, items: Iterable[Any]) -> AsyncIterator[Any]:
        """Yield what there is now, and let others run in between."""
        work = self._pump.meter.start("comparison")
        for index, item in enumerate(list(items)):
            if index % _CHECK_EVERY == 0 and work.full():
                await work.breathe()
            yield item
        work.finish()


def _is_outdated(informer: Informer[Any], found: Any) -> bool:
    return informer.store.get(key_of(found.metadata)) is not found
