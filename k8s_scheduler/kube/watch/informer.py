"""A resource as the rest of the program sees it: a store, changes as (old, new), and `synced`.

    informer = Informer(transport, PODS, metrics=metrics.kube, meter=meter)
    informer.add_handler(on_pod)            # before run()
    task = tasks.create_task(informer.run())
    await informer.synced.wait()            # the first list is applied, every handler has seen it

Handlers are called in order, on the event loop, and must not await nor take long: they put
messages into queues. `catch_up` is the take-over barrier: a new leader decides nothing before its
state has reached what the server has of this very resource. The Lease's version says nothing about
that: Leases may live in another storage (`--etcd-servers-overrides`), whose versions are others.

A resource that the server does not have, where that may be, is synced and empty until the server
has it. `drop` says that the informer does not run any more: if it is not synced by then, it never
will be. So `all_synced` asks for the set of informers again whenever one is complete or dropped; a
dropped one does not count as complete.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic

from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.resources import Resource, T
from k8s_scheduler.kube.waiting import first_of
from k8s_scheduler.kube.watch.decoding import ObjectDecoder
from k8s_scheduler.kube.watch.list_tickets import Progress
from k8s_scheduler.kube.watch.reflector import Reflector
from k8s_scheduler.kube.watch.reflector_limits import DEFAULT_PACE, Pace
from k8s_scheduler.kube.watch.reflector_log import UndecodableLog
from k8s_scheduler.kube.watch.reflector_parts import ReflectorParts
from k8s_scheduler.kube.watch.set_back import Signals
from k8s_scheduler.kube.watch.store import Handler, Store
from k8s_scheduler.lib.aiotasks import Supervisor
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import KubeMetrics


class Informer(Generic[T]):
    """Keeps one resource in memory; make it inside the running event loop."""

    def __init__(
        self,
        transport: Transport,
        resource: Resource[T],
        *,
        metrics: KubeMetrics,
        meter: SliceMeter,
        pace: Pace = DEFAULT_PACE,
        signals: Signals | None = None,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.dropped = asyncio.Event()
        self._store: Store[T] = Store(resource.label)
        self._progress = Progress(on_answer=self.synced.set)
        parts = ReflectorParts(
            transport=transport,
            resource=resource,
            decoder=ObjectDecoder(resource),
            store=self._store,
            progress=self._progress,
            undecodable=UndecodableLog(resource.label, metrics),
            meter=meter,
            pace=pace,
            signals=signals or Signals(),
        )
        self._reflector = Reflector(parts, metrics)
        self._running = False

    @property
    def store(self) -> Mapping[str, T]:
        """Every object by `namespace/name` (the name alone where there are no namespaces)."""
        return self._store.objects

    @property
    def is_absent(self) -> bool:
        return self._reflector.is_absent

    @property
    def resource_version(self) -> str:
        """The newest version up to which everything is applied; empty before the first list."""
        return self._progress.resource_version

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler(old, new)` for every change: None, new - old, new - old, None.

        Only before `run`: a handler that came later would have missed what went before.
        """
        if self._running:
            raise RuntimeError(f"the informer for {self.resource.label} runs already")
        self._store.add_handler(handler)

    async def run(self) -> None:
        if self._running:
            raise RuntimeError(f"the informer for {self.resource.label} runs already")
        self._running = True
        await self._reflector.run()

    def drop(self) -> None:
        """Mark the informer as not run any more, which ends every wait for it."""
        self.dropped.set()

    async def relist(self) -> None:
        """Return once a list that began after this call is applied; what was wrong is right then.

        Handlers are told of every difference as of any other change. A dropped informer lists no
        more, so there is nothing to wait for.
        """
        await first_of(self._reflector.fresh_list(), self.dropped.wait())

    def doubt(self) -> None:
        """List anew as soon as possible: the storage of the API server was set back."""
        self._reflector.doubt()

    async def trusted(self) -> None:
        """Return once everything was listed since the last `doubt`, or the informer is dropped."""
        await first_of(self._progress.wait_until_trusted(), self.dropped.wait())

    async def catch_up(self) -> None:
        """Return once the store holds everything that had happened when this was called."""
        await self.synced.wait()
        await self._reflector.catch_up()


async def all_synced(watched: Callable[[], Iterable[Informer[Any]]]) -> None:
    """Return once every informer that `watched` then returns is complete.

    `watched` must not return a dropped informer: take it out of the set first, then drop it.
    """
    while missing := [informer for informer in watched() if not informer.synced.is_set()]:
        await first_of(missing[0].synced.wait(), missing[0].dropped.wait())


async def watch_all(tasks: Supervisor, watched: Callable[[], Iterable[Informer[Any]]]) -> None:
    """Start every informer that does not run yet and return once all are complete."""
    for informer in watched():
        name = informer.resource.label
        if name not in tasks:
            tasks.start(name, informer.run())
    await all_synced(watched)
