"""`k8s-scheduler shadow` as a process: watches, judges, reports, and can't write.

There is no dispatcher, no write lane, no recorder and no elector in this graph, so nothing could
carry out an instruction: it needs the rights to list and watch, and to review tokens.
"""

import asyncio
import functools
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from k8s_scheduler import __version__
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import REMEMBERED
from k8s_scheduler.app.driver.changes import reads_the_same
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.process.gc_pauses import keep_what_is_here
from k8s_scheduler.app.process.memory import Caches, CacheSize, MemoryWatch
from k8s_scheduler.app.process.runner import Connected, run_process
from k8s_scheduler.app.process.watchdog import watch_loop
from k8s_scheduler.app.serving import serving
from k8s_scheduler.app.shadow.options import ShadowOptions
from k8s_scheduler.core.messages.outgoing import Log
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import DEFAULT_BYTES, Setup
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.resources import NODES, PODS, resource_of
from k8s_scheduler.kube.watch.informer import Informer, watch_all
from k8s_scheduler.lib.aiotasks import Supervisor
from k8s_scheduler.lib.clock import SteadyClock
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.lib.standard_output import abandon_standard_output
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.obs.shadow_metrics import ShadowMetrics
from k8s_scheduler.simulate.shadowing.findings import AGREES, Result
from k8s_scheduler.simulate.shadowing.following import Follower, FollowingOptions
from k8s_scheduler.simulate.shadowing.report import Case, Report, ShadowReport, table

logger = logging.getLogger(__name__)

_STEP_SECONDS = 0.05
_AGREED = frozenset(result.value for result in AGREES)


@dataclass(frozen=True, slots=True)
class ShadowGraph:
    """Everything that runs. Nothing in it writes."""

    follower: Follower
    report: Report
    watched: WatchSet
    clock: SteadyClock
    meter: SliceMeter
    memory: MemoryWatch
    # As a daemon that runs alone.
    elector: None = None

    @property
    def pods(self) -> Informer[Pod]:
        return self.watched.pods

    def informers(self) -> Iterator[Informer[Any]]:
        return iter(self.watched)

    def configuration_page(self) -> Mapping[str, Any]:
        """Return nothing: its configuration is read once, and is the file's."""
        return {}


def run(options: ShadowOptions) -> int:
    connection = options.run.configuration.settings.client_connection
    return run_process(functools.partial(_run, options), connection.kubeconfig, ambient=True)


async def _run(options: ShadowOptions, connected: Connected) -> int:
    graph = wire_shadow(options, connected.transport, connected.metrics)
    async with serving(options.run, graph, connected.metrics, transport=connected.transport):
        names = [profile.scheduler_name for profile in options.following]
        fields = {"version": __version__, "server": connected.server, "follows": names}
        logger.info("Starting k8s-scheduler shadow", extra={"fields": fields})
        return await Shadow(graph, options).run(connected.stop)


def wire_shadow(options: ShadowOptions, transport: Transport, metrics: Metrics) -> ShadowGraph:
    """Join the parts. The core's own metrics are not shown: it schedules nothing."""
    clock = SteadyClock()
    meter = SliceMeter(metrics.report_slice)
    extras = options.run.configuration.extras
    core = Scheduler(
        Setup(
            profiles=options.following,
            pod_limits=extras.pod_limits,
            node_limits=extras.node_limits,
        )
    )
    names = [profile.scheduler_name for profile in options.following]
    shown = ShadowMetrics(metrics.registry, profiles=names, results=[r.value for r in Result])
    report = Report(names, shown)
    follower = Follower(
        core,
        names,
        report=report,
        options=FollowingOptions(
            latency_seconds=options.latency_seconds,
            percentages_of_nodes_to_score=options.percentages_of_nodes_to_score(),
            sample=options.sample,
        ),
        log=_log,
    )
    nodes = Informer(transport, NODES, metrics=metrics.kube, meter=meter)
    nodes.add_handler(lambda old, new: follower.node_changed(old, new, now=clock()))
    pods = Informer(transport, PODS, metrics=metrics.kube, meter=meter)
    pods.add_handler(lambda old, new: follower.pod_changed(old, new, now=clock()))
    others: dict[Kind, Informer[ClusterObject]] = {}
    for kind in core.kinds:
        informer = Informer(transport, resource_of(kind), metrics=metrics.kube, meter=meter)
        informer.add_handler(functools.partial(_object_changed, follower, clock, kind))
        others[kind] = informer
    memory = MemoryWatch(
        options.run.memory_limit_bytes,
        Caches(
            DEFAULT_BYTES,
            lambda max_bytes: follower.limit_caches(max_bytes, now=clock()),
            lambda: {"requests": CacheSize(REMEMBERED.nbytes, REMEMBERED.dropped)},
        ),
        metrics=metrics.scheduler,
    )
    return ShadowGraph(follower, report, WatchSet(nodes, pods, others), clock, meter, memory)


def _object_changed(
    follower: Follower,
    clock: SteadyClock,
    kind: Kind,
    old: ClusterObject | None,
    new: ClusterObject | None,
) -> None:
    if old is None or new is None or not reads_the_same(kind, old, new):
        follower.object_changed(kind, old, new, now=clock())


class Shadow:
    """The running graph."""

    def __init__(self, graph: ShadowGraph, options: ShadowOptions) -> None:
        self._graph = graph
        self._options = options
        self._tasks = Supervisor()
        self._enough = asyncio.Event()
        self._started_at = time.time()
        self._began = time.monotonic()
        self._is_following = False

    async def run(self, stop: asyncio.Event) -> int:
        self._tasks.start("watchdog", watch_loop(self._options.run.hang_seconds))
        self._tasks.start("memory", self._graph.memory.run())
        self._tasks.start("following", self._follow())
        await self._tasks.until(stop, self._enough, at_most_seconds=self._options.for_seconds)
        died = self._tasks.died.result() if self._tasks.died.done() else None
        await self._tasks.stop()
        if died is not None:
            logger.critical("Internal failure", exc_info=died)
            return ExitCode.FAILURE
        self._graph.follower.finish()
        return self._conclude(is_stopped=stop.is_set())

    async def _follow(self) -> None:
        await watch_all(self._tasks, self._graph.watched.before_pods)
        await watch_all(self._tasks, self._graph.informers)
        keep_what_is_here()
        self._graph.follower.start()
        self._is_following = True
        counts = {i.resource.label: len(i.store) for i in self._graph.informers()}
        logger.info("Caches are synced, following", extra={"fields": counts})
        self._tasks.start("looking", self._look())
        self._tasks.start("reporting", self._report_now_and_then())
        while True:
            part = self._graph.meter.start("shadow")
            while self._graph.follower.step(self._graph.clock()):
                if part.full():
                    await part.breathe()
            part.finish()
            self._tell_news()
            wanted = self._options.pods
            if wanted is not None and self._graph.report.judged >= wanted:
                self._enough.set()
            await asyncio.sleep(_STEP_SECONDS)

    async def _look(self) -> None:
        while True:
            part = self._graph.meter.start("shadow")
            self._graph.follower.look_at_unplaced(self._graph.clock())
            part.finish()
            await asyncio.sleep(1.0)

    # Telling

    def _tell_news(self) -> None:
        for case in self._graph.report.take_news():
            agreed = case.result in _AGREED
            level = logging.DEBUG if agreed else logging.WARNING
            fields = {k: v for k, v in msgspec.structs.asdict(case).items() if v or k == "regret"}
            logger.log(level, _sentence(case, agreed=agreed), extra={"fields": fields})

    async def _report_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._options.report_seconds)
            for name, profile in self._graph.report.profiles().items():
                fields = {
                    "profile": name,
                    "bindings": profile.bindings,
                    "judged": profile.judged,
                    "agreed": profile.agreed,
                    **profile.results,
                    "regret_mean": profile.regret.mean,
                    "regret_max": profile.regret.max,
                    "unplaced_feasible": profile.unplaced.feasible_for_us,
                }
                logger.info("Shadow report", extra={"fields": fields})

    def _conclude(self, *, is_stopped: bool) -> int:
        self._tell_news()
        is_handed_over = hand_over(self._whole(), self._options.out)
        if not self._is_following:
            # A report without a finding looks as if all were well.
            waiting = [i.resource.label for i in self._graph.informers() if not i.synced.is_set()]
            sys.stderr.write(f"nothing was followed: not listed in time: {', '.join(waiting)}\n")
            if not is_stopped:
                return ExitCode.FAILURE
        return ExitCode.OK if is_handed_over else ExitCode.USAGE

    def _whole(self) -> ShadowReport:
        return self._graph.report.whole(
            version=__version__,
            started_at=self._started_at,
            seconds=time.monotonic() - self._began,
            latency_seconds=self._options.latency_seconds,
        )


def _sentence(case: Case, *, agreed: bool) -> str:
    if not case.node:
        return "A pod was not placed although a node fits"
    return "A binding agrees on second look" if agreed else "A binding does not agree"


def _log(line: Log) -> None:
    level = logging.getLevelNamesMapping()[line.severity.upper()]
    logger.log(level, line.event, extra={"fields": line.fields})


def hand_over(report: ShadowReport, out: Path | None) -> bool:
    """Write the report to a file, if there is one, and as a table; return whether all went well."""
    is_kept = out is None or _is_kept(report, out)
    return _is_printed(report) and is_kept


def _is_kept(report: ShadowReport, out: Path) -> bool:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    try:
        out.write_bytes(text + b"\n")
    except OSError as error:
        sys.stderr.write(f"{out}: {error.strerror}\n")
        return False
    return True


def _is_printed(report: ShadowReport) -> bool:
    try:
        for line in table(report):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"standard output: {error.strerror}\n")
        abandon_standard_output()
        return False
    return True
