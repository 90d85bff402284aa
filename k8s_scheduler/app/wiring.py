"""Builds the object graph of the daemon; starts nothing."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import REMEMBERED
from k8s_scheduler.app.configuration.reload_parts import ReloadParts, reload_parts
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.marks import Marks
from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.app.driver.recording import Recording
from k8s_scheduler.app.options import Evaluation, RunOptions
from k8s_scheduler.app.process.environment import Surroundings
from k8s_scheduler.app.process.memory import CacheSize, MemoryWatch
from k8s_scheduler.app.recovery.core_check import CoreCheck
from k8s_scheduler.app.recovery.rebuilding import Rebuilding
from k8s_scheduler.app.recovery.restored import Restored
from k8s_scheduler.app.recovery.self_check import SelfCheck
from k8s_scheduler.app.recovery.sentinel import Sentinel
from k8s_scheduler.app.rivals.parts import rival_watch
from k8s_scheduler.app.rivals.rivals import RivalWatch
from k8s_scheduler.app.rivals.served_names import notes_of
from k8s_scheduler.core.messages.checkpoint import Checkpoint
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
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.kube.watch.comparing import Comparer
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.watch.set_back import SetBack, Signals
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


@dataclass(slots=True)
class Graph:
    """Everything that runs, ready to be started.

    `others` are the informers of the kinds that the enabled plugins read, and of no other kind; a
    change of the configuration changes them. `watch` makes one.
    """

    pump: Pump
    nodes: Informer[Node]
    others: tuple[Informer[ClusterObject], ...]
    pods: Informer[Pod]
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
    rebuilding: Rebuilding
    memory: MemoryWatch

    def informers(self) -> Iterator[Informer[Any]]:
        yield self.nodes
        yield from self.others
        yield self.pods

    def watched(self) -> Mapping[Kind, Informer[ClusterObject]]:
        """Return the informers of the kinds besides pods and nodes, by kind."""
        found = ((informer.resource.kind, informer) for informer in self.others)
        return {kind: informer for kind, informer in found if isinstance(kind, Kind)}

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
        keeps_evaluations=options.evaluation is Evaluation.INCREMENTAL,
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
    surroundings: Surroundings | None = None,
) -> Graph:
    """Join the parts. OSError if the recording can't be opened.

    The rate limit is for pods' writes alone: a lease that waits behind them would be lost.
    """
    around = surroundings or Surroundings()
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
        # Whoever acts on it comes last: it acts on all that are made before.
        graph.restored.notice(news)

    def returned(resource: str) -> None:
        graph.restored.returned(resource)

    signals = Signals(set_back, returned)
    elector = _elector(
        lease,
        transport,
        metrics=metrics,
        around=around,
        set_back=set_back,
        graph=lambda: graph,
    )
    may_write = always if elector is None else elector.may_write
    if elector is not None:
        admit = gated(admit, elector.writes_may_begin)
    batch = options.configuration.extras.batch
    pump = Pump(core, clock=clock, meter=meter, batch=batch, may_decide=may_write, marks=marks)
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
        on_bind_outcome=pump.bind_ended,
        on_held_back=pump.hold_back,
        on_room=pump.room_made,
    )
    recorder = EventRecorder(
        caller,
        hostname=around.hostname,
        metrics=metrics.kube,
        may_tell=always if elector is None else elector.may_tell,
    )
    writes = WriteLane(
        caller,
        on_outcome=pump.write_ended,
        workers=options.configuration.settings.parallelism,
    )
    recording = _recording(options, pump, clock=clock, meter=meter, metrics=metrics)
    reader = PodReader(caller, on_read=pump.pod_read)
    carrier = Carrier(dispatcher, recorder, writes, reader, wall_clock_ns=around.wall_clock_ns)
    pump.connect(carrier, recording)
    watching = _Watching(transport, metrics, meter, around, signals)
    nodes = watching.informer(NODES)
    nodes.add_handler(pump.node_changed)
    pods = watching.informer(PODS)
    pods.add_handler(pump.pod_changed)
    rejections = Rejections(
        caller, metrics=metrics.kube, is_ours=lambda name: name in pump.core.scheduler_names
    )
    pods.add_handler(rejections.pod_changed)

    def watch(kind: Kind) -> Informer[ClusterObject]:
        informer = watching.informer(resource_of(kind))
        informer.add_handler(functools.partial(pump.object_changed, kind))
        return informer

    reload = reload_parts(
        options,
        transport,
        metrics,
        recorder=recorder,
        meter=meter,
        may_write=may_write,
        write_seconds=_write_seconds(options),
    )

    def watched() -> Mapping[Kind, Informer[ClusterObject]]:
        # A change of the configuration changes them.
        return graph.watched()

    def comparer(informer: Informer[Any], **timing: float) -> Comparer[Any]:
        return Comparer(transport, informer, meter=meter, sleep=around.sleep, **timing)

    def informers() -> Iterator[Informer[Any]]:
        return graph.informers()

    def comparers() -> Mapping[Informer[Any], Comparer[Any]]:
        return {each: comparer(each) for each in graph.informers()}

    check = SelfCheck(
        CoreCheck(pump, nodes, pods, watched, meter=meter),
        comparers,
        metrics=metrics.scheduler,
        interval_seconds=options.cache_comparison_seconds,
        sleep=around.sleep,
        uniform=around.rng.random,
    )
    graph: Graph = Graph(
        pump=pump,
        nodes=nodes,
        others=tuple(map(watch, core.kinds)),
        pods=pods,
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
        rivals=rival_watch(
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
            informers,
            functools.partial(comparer, timeout_seconds=_PAGE_SECONDS),
            pods=lambda: pods.store,
            metrics=metrics.kube,
            clock=around.boot_clock,
            sleep=around.sleep,
        ),
        rebuilding=Rebuilding(
            pump,
            make_core,
            nodes=nodes,
            pods=pods,
            others=watched,
            dispatcher=dispatcher,
            writes=writes,
            meter=meter,
            metrics=metrics.scheduler,
        ),
        memory=_memory(options, pump, dispatcher, recorder, metrics=metrics, sleep=around.sleep),
    )
    if recording is not None:
        recording.follow(lambda: _progress(graph.informers()))
    return graph


def _memory(
    options: RunOptions,
    pump: Pump,
    dispatcher: Dispatcher,
    recorder: EventRecorder,
    *,
    metrics: Metrics,
    sleep: Sleep,
) -> MemoryWatch:
    def sizes() -> Mapping[str, CacheSize]:
        series, conditions = recorder.series, dispatcher.waiting_conditions
        return {
            "requests": CacheSize(REMEMBERED.nbytes, REMEMBERED.dropped),
            "events": CacheSize(series.nbytes, series.dropped),
            "conditions": CacheSize(conditions.nbytes, conditions.dropped),
        }

    return MemoryWatch(
        options.memory_limit_bytes,
        budget_bytes=DEFAULT_BYTES,
        set_budget=pump.limit_caches,
        sizes=sizes,
        metrics=metrics.scheduler,
        sleep=sleep,
    )


def _progress(informers: Iterable[Informer[Any]]) -> Iterator[tuple[str, str]]:
    for informer in informers:
        if informer.resource_version:
            yield informer.resource.label, informer.resource_version


@dataclass(frozen=True, slots=True)
class _Watching:
    """What all informers have in common."""

    transport: Transport
    metrics: Metrics
    meter: SliceMeter
    around: Surroundings
    signals: Signals

    def informer(self, resource: Resource[T]) -> Informer[T]:
        return Informer(
            self.transport,
            resource,
            metrics=self.metrics.kube,
            meter=self.meter,
            pace=replace(self.around.pace, rng=self.around.rng),
            signals=self.signals,
        )


def _lease_config(options: RunOptions, around: Surroundings) -> LeaseConfig | None:
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
    *,
    metrics: Metrics,
    around: Surroundings,
    set_back: Callable[[SetBack], None],
    graph: Callable[[], Graph],
) -> Elector | None:
    """Return the elector, if there is an election; it asks the graph, which is made later."""
    if config is None:
        return None

    def may_lead() -> bool:
        return graph().rivals.may_lead()

    return Elector(
        transport,
        config,
        metrics=metrics.kube,
        timing=replace(around.timing(), clock=around.boot_clock),
        hooks=ElectorHooks(
            set_back=set_back,
            # Of the core that is driven then, by the profiles that are in force then.
            notes=lambda: notes_of(graph().pump.core.scheduler_names, config.identity),
            may_lead=may_lead,
        ),
    )


def _write_seconds(options: RunOptions) -> float:
    """Return how long a write may take: it must end before anybody else can lead."""
    election = options.configuration.settings.leader_election
    if not election.leader_elect:
        return _WRITE_SECONDS
    spare = election.lease_duration_seconds - election.renew_deadline_seconds
    return min(_WRITE_SECONDS, 0.8 * spare)


def _recording(
    options: RunOptions,
    pump: Pump,
    *,
    clock: Callable[[], float],
    meter: SliceMeter,
    metrics: Metrics,
) -> Recording | None:
    if options.record_file is None:
        return None

    def checkpoint() -> Checkpoint:
        # Of the core that is driven then: it may be another one.
        return pump.core.checkpoint()

    return Recording(
        options.record_file,
        setup=lambda: pump.core.setup,
        max_bytes=options.record_max_bytes,
        checkpoint=checkpoint,
        clock=clock,
        meter=meter,
        metrics=metrics.recording,
    )
