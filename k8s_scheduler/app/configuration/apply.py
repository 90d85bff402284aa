"""Puts another configuration in force: everything it needs first, then all of it at once.

    compile aside ─▶ watch what is newly read ─▶ all of it synced ─▶ swap ─▶ tell of new pods
         │                     │ not in time: not now                 │
         └── refused ◀─────────┘                                      └─▶ stop what is not read

Until the swap nothing has changed for decisions; the swap itself is one message to the core, which
stands between two decisions. A kind that pods on their way still need is watched until they have
come to their end: `tidy` is called now and then.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from k8s_scheduler.api.config.types import SchedulerConfiguration
from k8s_scheduler.api.kinds import Kind, joined
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.driver.changes import for_each
from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.wiring import Graph, setup_of
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

    def reads(self, configuration: SchedulerConfiguration) -> tuple[Kind, ...]:
        """Return the kinds that a configuration's plugins read; ProfileError if it can't be run.

        Compiling takes longer than the loop may be held; it changes nothing and may have a thread.
        """
        setup = replace(self._graph.pump.core.setup, profiles=configuration.profiles)
        compiled = setup.compiled().values()
        return joined(kind for profile in compiled for kind in profile.kinds)

    async def to(self, configuration: SchedulerConfiguration, needed: Sequence[Kind]) -> None:
        """Put a configuration in force whose plugins read the kinds that are needed.

        Raises SwapError, NotNowError if it may work later.
        """
        setup = setup_of(replace(self._options, configuration=configuration))
        self._refuse_other_reads(needed)
        graph = self._graph
        self._need_whole_core()
        await self._watch([kind for kind in needed if kind not in graph.watched.others])
        self._need_whole_core()
        before = graph.pump.core.setup
        new = graph.pump.reconfigure(setup, configuration.extras.batch)
        graph.writes.resize(configuration.settings.parallelism)
        if new:
            await introduce(graph.pump, new, graph.pods.store)
        if (setup.pod_limits, setup.node_limits) != (before.pod_limits, before.node_limits):
            await self._renew()
        await self.tidy()

    def _need_whole_core(self) -> None:
        if not self._graph.pump.is_whole:
            raise NotNowError("the scheduler's core has failed and is being made anew")

    async def _renew(self) -> None:
        """Tell nodes and placed pods again: by other limits, more or less of them counts."""
        pump = self._graph.pump

        def tell(pod: Pod) -> None:
            if pod.spec.node_name and pod.spec.affinity is not None:
                pump.pod_changed(None, pod)

        nodes = self._graph.nodes.store
        await for_each(pump.meter, "reload", nodes, partial(pump.node_changed, None))
        await for_each(pump.meter, "reload", self._graph.pods.store, tell)

    def _refuse_other_reads(self, needed: Sequence[Kind]) -> None:
        """Raise if a custom resource, as it is watched, does not show all that is to be read."""
        watched = {kind: kind for kind in self._graph.watched.others}
        for wanted in needed:
            kind = watched.get(wanted, wanted)
            if resource_of(wanted) != resource_of(kind):
                raise SwapError(f"{kind} is to be read elsewhere: this needs a restart")
            if not set(wanted.paths) <= set(kind.paths):
                raise SwapError(f"other paths of {kind} are to be read: this needs a restart")

    def has_taken_effect(self) -> None:
        """Tell the parts that go by the configuration in force and not by the core."""
        self._graph.rivals.look_soon()

    async def tidy(self) -> None:
        """Stop watching the kinds that no plugin reads any more."""
        needed, others = self._graph.pump.core.kinds, self._graph.watched.others
        for kind in [kind for kind in others if kind not in needed]:
            informer = others.pop(kind)
            await self._stop(kind, informer)
            fields = {"resource": informer.resource.full_name}
            logger.info("Watched no longer", extra={"fields": fields})

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
        graph.watched.others |= added

    async def _stop(self, kind: Kind, informer: Informer[Any]) -> None:
        """Stop an informer that is none of the graph's, or no longer."""
        # First of all: a task that waits for it looks at the others that there are now.
        informer.drop()
        name = informer.resource.label
        if name in self._tasks:
            await self._tasks.stop(name)
        pump = self._graph.pump
        gone = partial(pump.object_changed, kind, new=None)
        await for_each(pump.meter, "reload", informer.store, gone)


async def introduce(pump: Pump, names: frozenset[str], pods: Mapping[str, Pod]) -> None:
    """Tell of the pods of schedulers that are ours since now; the core has kept none of them.

    What happens to them meanwhile comes by the watch: each is told as it is now.
    """

    def tell(pod: Pod) -> None:
        if pod.spec.scheduler_name in names and not pod.spec.node_name:
            pump.pod_changed(None, pod)

    await for_each(pump.meter, "reload", pods, tell)
    pump.to_introduce -= names
