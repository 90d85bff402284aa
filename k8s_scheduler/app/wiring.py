"""Builds the object graph of the daemon; starts nothing."""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import REMEMBERED
from k8s_scheduler.app.configuration.reload_parts import ReloadParts, own_pod, reload_parts
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.marks import Marks
from k8s_scheduler.app.driver.pump import Decisions, Pump
from k8s_scheduler.app.driver.recording import Recording
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.app.options import EvaluationMode, RunOptions
from k8s_scheduler.app.process.environment import Environment
from k8s_scheduler.app.process.memory import Caches, CacheSize, MemoryWatch
from k8s_scheduler.app.recovery.core_check import CoreCheck
from k8s_scheduler.app.recovery.rebuilding import CoreRebuild
from k8s_scheduler.app.recovery.restored import Restored
from k8s_scheduler.app.recovery.self_check import SelfCheck
from k8s_scheduler.app.recovery.sentinel import Sentinel
from k8s_scheduler.app.rivals.news import RivalNews
from k8s_scheduler.app.rivals.rivals import CALL_SECONDS, Ourselves, RivalWatch
from k8s_scheduler.app.rivals.served_names import notes_of
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import DEFAULT_BYTES, BackoffPolicy, QueuePolicy, Setup
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.caller import Caller, always
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.http.throttle import gated, rate_limit
from k8s_scheduler.kube.lease.claim import ElectorHooks
from k8s_scheduler.kube.lease.elector import Elector
from k8s_scheduler.kube.lease.lease import LeaseConfig
from k8s_scheduler.kube.resources import NODES, PODS, Resource, T, resource_of
from k8s_scheduler.kube.watch.comparing import Comparer
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.watch.set_back import SetBack, Signals
from k8s_scheduler.kube.watch.store import Handler
from k8s_scheduler.kube.write.dispatcher import Dispatcher
from k8s_scheduler.kube.write.pod_reader import PodReader
from k8s_scheduler.kube.write.rejections import Rejections
from k8s_scheduler.kube.write.write_lane import WriteLane
from k8s_scheduler.lib.clock import SteadyClock
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics

_WRITE_SECONDS = 4.0
# A page of the comparison after an outage: it is asked for again if the answer was lost.
_PAGE_SECONDS = 5.0
# How long a look for rivals may take, of the time until a Lease that was just taken has to be
# renewed: meanwhile it is not.
_RIVALS_SHARE = 0.3


@dataclass(slots=True)
class Graph:
    """Everything that runs, ready to be started. `watch` makes one informer more."""

    pump: Pump
    watched: WatchSet
    dispatcher: Dispatcher
    writes: WriteLane
    reader: PodReader
    recorder: EventRecorder
    rejections: Rejections
    recording: Recording | None
    elector: Elector | None
    marks: Marks | None
    sentinel: Sentinel | None
    rivals: RivalWatch
    check: SelfCheck
    reload: ReloadParts
    watch: Callable[[Kind], Informer[ClusterObject]]
    restored: Restored
    rebuilding: CoreRebuild
    memory: MemoryWatch

    @property
    def nodes(self) -> Informer[Node]:
        return self.watched.nodes

    @property
    def pods(self) -> Informer[Pod]:
        return self.watched.pods

    def informers(self) -> Iterator[Informer[Any]]:
        return iter(self.watched)

    def configuration_page(self) -> Mapping[str, Any]:
        return self.reload.status.page()


def setup_of(options: RunOptions) -> Setup:
    settings = options.configuration.settings
    return Setup(
        profiles=options.configuration.profiles,
        queue=QueuePolicy(
            BackoffPolicy(
                initial_seconds=float(settings.pod_initial_backoff_seconds),
                maximum_seconds=float(settings.pod_max_backoff_seconds),
            ),
            parked_limit_seconds=options.pod_max_in_unschedulable_pods_seconds,
            max_attempts=options.pod_max_attempts,
            renewals_per_second=options.configuration.extras.reasons.max_per_second,
        ),
        keeps_evaluations=options.evaluation is EvaluationMode.INCREMENTAL,
        verified_share=options.verified_share,
        pod_limits=options.configuration.extras.pod_limits,
        node_limits=options.configuration.extras.node_limits,
        max_victims_per_minute=options.configuration.extras.preemption.max_victims_per_minute,
    )


def wire(
    options: RunOptions,
    transport: Transport,
    metrics: Metrics,
    *,
    surroundings: Environment | None = None,
) -> Graph:
    """Join the parts. OSError if the recording can't be opened.

    The rate limit is for pods' writes alone: a lease that waits behind them would be lost.
    """
    around = surroundings or Environment()
    setup = setup_of(options)
    around.warm_up(setup)
    connection = options.configuration.settings.client_connection
    admit = rate_limit(qps=connection.qps, burst=connection.burst)
    clock = SteadyClock(wall=lambda: around.wall_clock_ns() / 1e9, monotonic=around.clock)
    meter = SliceMeter(metrics.report_slice, around.cpu_clock)
    lease = _lease_config(options, around)
    marks = None if lease is None else Marks(lease.identity, around.clock)
    make_core = functools.partial(
        Scheduler,
        metrics=metrics.scheduler,
        perf=around.perf,
        witness=None if marks is None else marks.begin,
    )
    core = make_core(setup)

    def set_back(news: SetBack) -> None:
        graph.restored.notice(news)

    signals = Signals(set_back, lambda resource: graph.restored.returned(resource))  # noqa: PLW0108  it is made below
    hooks = ElectorHooks(
        set_back=set_back,
        # Of the core that is driven then, by the profiles that are in force then.
        notes=lambda: notes_of(pump.core.scheduler_names, lease.identity if lease else ""),
        may_lead=lambda: graph.rivals.may_lead(),  # noqa: PLW0108  it is made below
    )
    elector = _elector(lease, transport, hooks, metrics=metrics, around=around)
    may_write = always if elector is None else elector.may_write
    if elector is not None:
        admit = gated(admit, elector.writes_may_begin)
    caller = Caller(
        transport=transport,
        may_write=may_write,
        admit=admit,
        timeout_seconds=_write_seconds(options),
        timing=around.timing(),
    )
    dispatcher = Dispatcher(
        replace(caller, may_write=lambda: may_write() and not pump.is_set_back),
        metrics=metrics.kube,
        on_bind_outcome=lambda outcome: pump.bind_ended(outcome),  # noqa: PLW0108  it is made below
        on_held_back=lambda namespaces: pump.hold_back(namespaces),  # noqa: PLW0108  it is made below
        on_room=lambda: pump.room_made(),  # noqa: PLW0108  it is made below
    )
    recorder = EventRecorder(
        caller,
        hostname=around.hostname,
        metrics=metrics.kube,
        may_tell=always if elector is None else elector.may_tell,
    )
    writes = WriteLane(
        caller,
        on_outcome=lambda outcome: pump.write_ended(outcome),  # noqa: PLW0108  it is made below
        workers=options.configuration.settings.parallelism,
    )
    recording = None
    if options.record_file is not None:
        recording = Recording(
            options.record_file,
            core,
            max_bytes=options.record_max_bytes,
            clock=clock,
            meter=meter,
            metrics=metrics.recording,
        )
    reader = PodReader(caller, on_read=lambda outcome: pump.pod_read(outcome))  # noqa: PLW0108  it is made below
    pump = Pump(
        core,
        Carrier(dispatcher, recorder, writes, reader, wall_clock_ns=around.wall_clock_ns),
        clock=clock,
        meter=meter,
        decisions=Decisions(
            batch=options.configuration.extras.batch, may_decide=may_write, marks=marks
        ),
        recording=recording,
    )

    def informer_of(resource: Resource[T], *handlers: Handler[T]) -> Informer[T]:
        informer = Informer(
            transport,
            resource,
            metrics=metrics.kube,
            meter=meter,
            pace=replace(around.pace, rng=around.rng),
            signals=signals,
        )
        for handler in handlers:
            informer.add_handler(handler)
        return informer

    def watch(kind: Kind) -> Informer[ClusterObject]:
        return informer_of(resource_of(kind), functools.partial(pump.object_changed, kind))

    rejections = Rejections(
        caller, metrics=metrics.kube, is_ours=lambda name: name in pump.core.scheduler_names
    )
    watched = WatchSet(
        informer_of(NODES, pump.node_changed),
        informer_of(PODS, pump.pod_changed, rejections.pod_changed),
        {kind: watch(kind) for kind in core.kinds},
    )
    if recording is not None:
        recording.follow(watched.versions)
    reload = reload_parts(
        options,
        transport,
        metrics,
        recorder=recorder,
        meter=meter,
        may_write=may_write,
        write_seconds=_write_seconds(options),
    )

    def comparer(informer: Informer[Any], **timing: float) -> Comparer[Any]:
        return Comparer(transport, informer, meter=meter, sleep=around.sleep, **timing)

    check = SelfCheck(
        CoreCheck(pump, watched),
        lambda: {each: comparer(each) for each in watched},
        metrics=metrics.scheduler,
        interval_seconds=options.cache_comparison_seconds,
        sleep=around.sleep,
        uniform=around.rng.random,
    )
    graph: Graph = Graph(
        pump=pump,
        watched=watched,
        dispatcher=dispatcher,
        writes=writes,
        reader=reader,
        recorder=recorder,
        rejections=rejections,
        recording=recording,
        elector=elector,
        marks=marks,
        sentinel=None
        if lease is None or marks is None
        else Sentinel(marks, lease, clock=around.clock, sleep=around.sleep),
        rivals=_rival_watch(
            options,
            transport,
            lease=lease,
            names=lambda: pump.core.scheduler_names,
            reload=reload,
            recorder=recorder,
            metrics=metrics,
            around=around,
        ),
        check=check,
        reload=reload,
        watch=watch,
        restored=Restored(
            pump,
            watched,
            functools.partial(comparer, timeout_seconds=_PAGE_SECONDS),
            metrics=metrics.kube,
            clock=around.boot_clock,
            sleep=around.sleep,
        ),
        rebuilding=CoreRebuild(
            pump,
            make_core,
            watched,
            dispatcher=dispatcher,
            writes=writes,
            metrics=metrics.scheduler,
        ),
        memory=MemoryWatch(
            options.memory_limit_bytes,
            Caches(
                DEFAULT_BYTES, pump.limit_caches, functools.partial(_sizes, recorder, dispatcher)
            ),
            metrics=metrics.scheduler,
            sleep=around.sleep,
        ),
    )
    return graph


def _sizes(recorder: EventRecorder, dispatcher: Dispatcher) -> Mapping[str, CacheSize]:
    series, conditions = recorder.series, dispatcher.waiting_conditions
    return {
        "requests": CacheSize(REMEMBERED.nbytes, REMEMBERED.dropped),
        "events": CacheSize(series.nbytes, series.dropped),
        "conditions": CacheSize(conditions.nbytes, conditions.dropped),
    }


def _lease_config(options: RunOptions, around: Environment) -> LeaseConfig | None:
    election = options.configuration.settings.leader_election
    if not election.leader_elect:
        return None
    return LeaseConfig(
        name=election.resource_name,
        namespace=election.resource_namespace,
        identity=f"{around.hostname}_{around.instance}",
        lease_duration_seconds=election.lease_duration_seconds,
        renew_deadline_seconds=election.renew_deadline_seconds,
        retry_period_seconds=election.retry_period_seconds,
    )


def _elector(
    config: LeaseConfig | None,
    transport: Transport,
    hooks: ElectorHooks,
    *,
    metrics: Metrics,
    around: Environment,
) -> Elector | None:
    if config is None:
        return None
    return Elector(
        transport,
        config,
        metrics=metrics.kube,
        timing=replace(around.timing(), clock=around.boot_clock),
        hooks=hooks,
    )


def _write_seconds(options: RunOptions) -> float:
    """Return how long a write may take: it must end before another process can lead."""
    election = options.configuration.settings.leader_election
    if not election.leader_elect:
        return _WRITE_SECONDS
    spare = election.lease_duration_seconds - election.renew_deadline_seconds
    return min(_WRITE_SECONDS, 0.8 * spare)


def _rival_watch(
    options: RunOptions,
    transport: Transport,
    *,
    lease: LeaseConfig | None,
    names: Callable[[], Collection[str]],
    reload: ReloadParts,
    recorder: EventRecorder,
    metrics: Metrics,
    around: Environment,
) -> RivalWatch:
    ourselves = Ourselves(
        lease="" if lease is None else f"{lease.namespace}/{lease.name}",
        names=names,
        settings=lambda: reload.status.in_force.extras.rivals,
    )
    news = RivalNews(
        recorder, pod=own_pod(options, transport), metrics=metrics.kube, clock=around.clock
    )
    seconds = CALL_SECONDS if lease is None else _RIVALS_SHARE * lease.renew_deadline_seconds
    return RivalWatch(
        transport,
        ourselves,
        news,
        clock=around.boot_clock,
        sleep=around.sleep,
        call_seconds=min(CALL_SECONDS, seconds),
    )
