"""Puts another configuration in force: everything it needs first, then all of it at once.

    compile aside ─▶ watch what is newly read ─▶ all of it synced ─▶ swap ─▶ tell of new pods
         │                     │ not in time: not now                 │
         └── refused ◀─────────┘                                      └─▶ stop what nobody reads

Until the swap nothing has changed for decisions; the swap itself is one message to the core, which
stands between two decisions. A kind that pods on their way still need is watched until they have
come to their end: `tidy` is called now and then.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from k8s_scheduler.api.config.types import SchedulerConfiguration
from k8s_scheduler.api.kinds import Kind, joined
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.wiring import Graph, setup_of
from k8s_scheduler.core.setup import ProfileError, settings_of
from k8s_scheduler.kube.resources import resource_of
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.aiotasks import Supervisor

logger = logging.getLogger(__name__)

SYNC_SECONDS: Final = 30.0


class SwapError(Exception):
    """A configuration that can't be put in force; nothing has changed."""


class NotNowError(SwapError):
    """One that nothing is wrong with, but the moment: tried again later, it may be put in force."""


class Swap:
    """Swaps configurations in a running graph."""

    def __init__(
        self,
        graph: Graph,
        options: RunOptions,
        tasks: Supervisor,
        *,
        sync_seconds: float = SYNC_SECONDS,
    ) -> None:
        self._graph = graph
        self._options = options
        self._tasks = tasks
        self._sync_seconds = sync_seconds

    async def to(self, configuration: SchedulerConfiguration) -> None:
        """Put a configuration in force; raises SwapError, NotNowError if it may work later."""
        setup = setup_of(replace(self._options, configuration=configuration))
        try:
            compiled = setup.compiled()
        except ProfileError as error:
            raise SwapError(str(error)) from error
        needed = joined(kind for profile in compiled.values() for kind in profile.kinds)
        self._refuse_other_reads(needed)
        graph = self._graph
        if not graph.pump.is_whole:
            raise NotNowError("the scheduler's core has failed and is being made anew")
        await self._watch([kind for kind in needed if kind not in self._watched()])
        if not graph.pump.is_whole:
            raise NotNowError("the scheduler's core has failed and is being made anew")
        before = graph.pump.core.setup
        new = graph.pump.reconfigure(setup.profiles, settings_of(setup.queue), configuration.extras)
        graph.writes.resize(configuration.settings.parallelism)
        if new:
            await graph.pump.introduce(new, graph.pods.store)
        if (setup.pod_limits, setup.node_limits) != (before.pod_limits, before.node_limits):
            await graph.pump.renew(graph.nodes.store, graph.pods.store)
        await self.tidy()

    def _refuse_other_reads(self, needed: Iterable[Kind]) -> None:
        """Raise if a custom resource, as it is watched, does not show all that is to be read."""
        watched = {kind: kind for kind in self._watched()}
        for wanted in needed:
            kind = watched.get(wanted, wanted)
            if resource_of(wanted) != resource_of(kind):
                raise SwapError(f"{kind} is to be read elsewhere: this needs a restart")
            if not set(wanted.paths) <= set(kind.paths):
                raise SwapError(f"other paths of {kind} are to be read: this needs a restart")

    def has_taken_effect(self) -> None:
        """Tell those who go by the configuration in force and not by the core."""
        self._graph.rivals.look_soon()

    async def tidy(self) -> None:
        """Stop watching the kinds that nobody reads any more."""
        needed = self._graph.pump.kinds
        for kind, informer in self._watched().items():
            if kind not in needed:
                self._graph.others = tuple(i for i in self._graph.others if i is not informer)
                await self._stop(kind, informer)
                fields = {"resource": informer.resource.full_name}
                logger.info("Watched no longer", extra={"fields": fields})

    def _watched(self) -> Mapping[Kind, Informer[Any]]:
        return self._graph.watched()

    async def _watch(self, kinds: list[Kind]) -> None:
        graph = self._graph
        added = {kind: graph.watch(kind) for kind in kinds}
        # A standby may have been told to fill no caches: then these are filled with the others.
        if added and graph.nodes.resource.label in self._tasks:
            for informer in added.values():
                self._tasks.start(informer.resource.label, informer.run())
            try:
                async with asyncio.timeout(self._sync_seconds):
                    for informer in added.values():
                        await informer.synced.wait()
            except TimeoutError as error:
                late = [i.resource.full_name for i in added.values() if not i.synced.is_set()]
                for kind, informer in added.items():
                    await self._stop(kind, informer)
                raise NotNowError(
                    f"what plugins read could not be listed within {self._sync_seconds:g}s: "
                    f"{', '.join(late)}; the log says why, as a rule a right is missing; "
                    "it is tried again"
                ) from error
        graph.others = (*graph.others, *added.values())

    async def _stop(self, kind: Kind, informer: Informer[Any]) -> None:
        """Stop an informer that is none of the graph's, or no longer."""
        # First of all: who waits for it looks at the others that there are now.
        informer.drop()
        name = informer.resource.label
        if name in self._tasks:
            await self._tasks.stop(name)
        await self._graph.pump.forget(kind, informer.store)
