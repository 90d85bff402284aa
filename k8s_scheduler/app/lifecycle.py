"""From the first log line to the exit code.

Start: serve health, watch nodes and whatever else decisions depend on, then pods (also as a
standby, unless told to wait), become the leader, catch up with everything the last one wrote,
decide. Stop: decide nothing more, see the writes under way to their end while the lease is still
held (bindings and conditions, and in the same time the evictions and volumes that pods wait for
and the last good configuration), give the lease back, write the last events: they tell what has
happened, and the next leader need not wait for them. A lease under which a write may still be under
way is not given back, but runs out; so does that of a process of which a part dies meanwhile. A
lost lease ends the process at once: it can't know what it has missed, and nothing it has started
can outlast the lease.
"""

import asyncio
import functools
import logging
import signal

from k8s_scheduler import __version__
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.app.configuration.apply import Swap
from k8s_scheduler.app.configuration.reload import Reload
from k8s_scheduler.app.driver.marks import NOTE
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.environment import Environment
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.process.runner import Connected, run_process
from k8s_scheduler.app.serving import serving
from k8s_scheduler.app.wiring import Graph, wire
from k8s_scheduler.kube.lease.elector import Elector
from k8s_scheduler.kube.lease.lease import annotation_of
from k8s_scheduler.kube.watch.informer import watch_all
from k8s_scheduler.lib.aiotasks import Supervisor

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 30.0
_EVENTS_SECONDS = 5.0


def run(options: RunOptions) -> int:
    """Run the daemon until it is told to stop; return the exit code."""
    connection = options.configuration.settings.client_connection
    return run_process(functools.partial(_run, options), connection.kubeconfig)


async def _run(options: RunOptions, connected: Connected) -> int:
    graph = wire(options, connected.transport, connected.metrics)
    async with serving(options, graph, connected.metrics, transport=connected.transport):
        profiles = [profile.scheduler_name for profile in options.configuration.profiles]
        fields = {"version": __version__, "server": connected.server, "profiles": profiles}
        logger.info("Starting k8s-scheduler", extra={"fields": fields})
        daemon = Daemon(graph, options)
        reload = daemon.follow_configuration()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, reload.look_now)
        loop.add_signal_handler(signal.SIGUSR2, graph.check.ask)
        return await daemon.run(connected.stop)


class Daemon:
    """The running graph."""

    def __init__(
        self, graph: Graph, options: RunOptions, *, surroundings: Environment | None = None
    ) -> None:
        self._graph = graph
        self._around = surroundings or Environment()
        self._hang_seconds = options.hang_seconds
        self._delay_caches = options.configuration.settings.delay_cache_until_active
        self._tasks = Supervisor()
        self._lease_lost = asyncio.Event()
        self._options = options

    def follow_configuration(self) -> Reload:
        """Take over changes of the configuration from now on."""
        parts = self._graph.reload
        reload = Reload(parts, self._options, Swap(self._graph, self._options, self._tasks))
        if parts.informer is not None:
            self._tasks.start("configuration", parts.informer.run())
        self._tasks.start("last good configuration", parts.keeper.run())
        self._tasks.start("reload", reload.run())
        return reload

    async def run(self, stop: asyncio.Event) -> int:
        self._start_background()
        self._tasks.start("leading", self._lead(), may_end=True)
        await self._tasks.until(stop, self._lease_lost)
        try:
            if self._tasks.died.done():
                return self._broken()
            if self._lease_lost.is_set():
                logger.error("Leaderelection lost")
                return ExitCode.FAILURE
            return await self._drain_unless_broken()
        finally:
            self._graph.pump.forbid()
            await self._tasks.stop()
            if self._graph.recording is not None:
                self._graph.recording.close()

    def _broken(self) -> int:
        logger.critical("Internal failure", exc_info=self._tasks.died.result())
        return ExitCode.FAILURE

    def _start_background(self) -> None:
        graph = self._graph
        if self._hang_seconds > 0:
            self._tasks.start("watchdog", self._around.watchdog(self._hang_seconds))
        if graph.sentinel is not None:
            kubeconfig = self._options.configuration.settings.client_connection.kubeconfig
            work = self._around.sentinel(graph.sentinel.run, kubeconfig)
            self._tasks.start("sentinel", work)
        self._tasks.start("self-check", graph.check.run())
        self._tasks.start("restored storage", graph.restored.run())
        self._tasks.start("rebuilding", graph.rebuilding.run())
        self._tasks.start("memory", graph.memory.run())
        self._tasks.start("rivals", graph.rivals.run())
        self._tasks.start("dispatcher", graph.dispatcher.run())
        self._tasks.start("writes", graph.writes.run())
        self._tasks.start("recorder", graph.recorder.run())
        self._tasks.start("reader", graph.reader.run())
        self._tasks.start("rejections", graph.rejections.run())
        self._tasks.start("pump", graph.pump.run())
        self._tasks.start("timers", graph.pump.tick())
        if graph.recording is not None:
            self._tasks.start("recording", graph.recording.run())

    async def _lead(self) -> None:
        elector = self._graph.elector
        if elector is None:
            await self._fill_caches()
            await self._graph.rivals.until_none()
            self._decide()
            return
        if not self._delay_caches:
            self._tasks.start("caches", self._warm_up(), may_end=True)
        newborn = await self._acquire(elector)
        marked = self._marked(elector)
        async with asyncio.TaskGroup() as group:
            holding = group.create_task(elector.hold())
            deciding = group.create_task(self._take_over(elector, marked, newborn=newborn))
            await holding
            self._graph.pump.forbid()
            deciding.cancel()
        self._lease_lost.set()

    async def _acquire(self, elector: Elector) -> bool:
        """Come to lead; return whether that began by making a Lease where there was none.

        A Lease that is given back because of a rival is no new one when it is taken again, but the
        process that led before it was made may still run.
        """
        await elector.acquire()
        newborn = elector.is_newborn
        while not await self._graph.rivals.may_decide():
            await elector.release()
            await elector.acquire()
        return newborn or elector.is_newborn

    async def _warm_up(self) -> None:
        """Fill a standby's caches; looking for garbage in them is not left to the take-over."""
        await self._fill_caches()
        self._around.keep_memory()

    async def _take_over(
        self, elector: Elector, marked: dict[PodUid, int], *, newborn: bool
    ) -> None:
        """See all that the last leader did before deciding anything.

        Where there was no Lease, but pods that were bound in our name, there may be a leader whose
        Lease was deleted, and that has not noticed: it is given the time to. A cluster in which
        nothing was bound yet is not held up for that.

        Only what schedulers write is caught up with: pods, and nodes as the places they went to.
        Of the other kinds only volumes and claims are written by schedulers, and each write names
        the version it was decided on. To be behind on those is every watch's ordinary lag, which a
        leader has at any moment, and lists of everything would hold up each take-over.
        """
        await self._fill_caches()
        if newborn and self._were_pods_bound():
            logger.warning("There was no Lease although pods were bound, waiting for its duration")
            await elector.let_others_stop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._graph.nodes.catch_up())
            group.create_task(self._graph.pods.catch_up())
        self._graph.pump.quarantine(marked)
        self._decide()

    def _marked(self, elector: Elector) -> dict[PodUid, int]:
        marks, lease = self._graph.marks, elector.lease
        if marks is None or lease is None:
            return {}
        elector.on_write(lambda written: marks.seen(annotation_of(written, NOTE)))
        return marks.take_over(annotation_of(lease, NOTE))

    def _were_pods_bound(self) -> bool:
        names = self._graph.pump.core.scheduler_names
        pods = self._graph.pods.store.values()
        return any(pod.spec.node_name and pod.spec.scheduler_name in names for pod in pods)

    async def _fill_caches(self) -> None:
        """Watch everything and wait until all of it is complete. Doing it again does nothing.

        Pods come last, into a world that is complete: what is known of a pod (which namespace
        selectors meet it, which claims it has) is then worked out once. Meanwhile a change of the
        configuration may change what is watched.
        """
        graph = self._graph
        await watch_all(self._tasks, graph.watched.before_pods)
        await watch_all(self._tasks, graph.informers)

    def _decide(self) -> None:
        self._around.keep_memory()
        self._graph.pump.allow()
        counts = {i.resource.label: len(i.store) for i in self._graph.informers()}
        logger.info("Caches are synced, scheduling", extra={"fields": counts})

    async def _give_back(self, *, certain: bool) -> None:
        """Let the next leader start at once, if it is certain that nothing of ours can follow."""
        elector = self._graph.elector
        may_hold = elector is not None and elector.may_hold
        await self._tasks.stop("leading")
        if elector is not None and may_hold and certain:
            await elector.release()

    async def _drain_unless_broken(self) -> int:
        """Drain while every part lives; without one of them it is not known what is to come."""
        draining = asyncio.create_task(self._drain())
        try:
            await asyncio.wait((draining, self._tasks.died), return_when=asyncio.FIRST_COMPLETED)
            return self._broken() if self._tasks.died.done() else draining.result()
        finally:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)

    async def _drain(self) -> int:
        graph = self._graph
        graph.pump.forbid()
        graph.dispatcher.stop_accepting()
        unended = await self._write_out()
        await self._give_back(certain=not unended)
        dropped = await graph.recorder.drain(_EVENTS_SECONDS)
        if dropped:
            logger.warning("Events were not written", extra={"fields": {"events": dropped}})
        logger.info("Stopped")
        return ExitCode.DRAIN_TIMED_OUT if unended else ExitCode.OK

    async def _write_out(self) -> int:
        """See writes to their end; return how many have none that is known."""
        graph = self._graph
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + DRAIN_SECONDS
        unresolved, _, unwritten = await asyncio.gather(
            graph.dispatcher.drain(DRAIN_SECONDS),
            graph.writes.drain(DRAIN_SECONDS),
            graph.reload.keeper.drain(DRAIN_SECONDS),
        )
        # Until the last bind has ended, what is seen may have led to more: a claim that was waited
        # for to another volume to be written.
        unwritten += await graph.writes.drain(max(0.0, give_up_at - clock()))
        if unresolved:
            logger.error(
                "Stopping with bindings or conditions whose outcome is unknown",
                extra={"fields": {"writes": unresolved}},
            )
        if unwritten:
            logger.error(
                "Stopping with writes that have not come to their end",
                extra={"fields": {"writes": unwritten}},
            )
        return unresolved + unwritten
