"""Builds the object graph of the daemon; starts nothing."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_scheduler.api.kinds import ClusterObject, Kind
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.carrier import Carrier
from k8s_scheduler.app.core_check import CoreCheck
from k8s_scheduler.app.options import Evaluation, RunOptions
from k8s_scheduler.app.pump import Pump
from k8s_scheduler.app.recording import Recording
from k8s_scheduler.app.reload_parts import ReloadParts, reload_parts
from k8s_scheduler.app.self_check import SelfCheck
from k8s_scheduler.app.surroundings import Surroundings
from k8s_scheduler.core.queue.backoff import BackoffPolicy
from k8s_scheduler.core.queue.scheduling_queue import QueuePolicy
from k8s_scheduler.core.scheduler import Scheduler, Setup
from k8s_scheduler.kube.comparing import Comparer
from k8s_scheduler.kube.dispatcher import Dispatcher, DispatcherConfig
from k8s_scheduler.kube.http import Transport
from k8s_scheduler.kube.informer import Informer
from k8s_scheduler.kube.leader import Elector
from k8s_scheduler.kube.lease import LeaseConfig
from k8s_scheduler.kube.pod_reader import PodReader
from k8s_scheduler.kube.recorder import EventRecorder
from k8s_scheduler.kube.rejections import Rejections
from k8s_scheduler.kube.resources import NODES, OTHERS, PODS, Resource, T
from k8s_scheduler.kube.throttle import rate_limit
from k8s_scheduler.kube.write_lane import WriteLane
from k8s_scheduler.lib.clock import SteadyClock
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics

_WRITE_SECONDS = 4.0


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
    check: SelfCheck
    reload: ReloadParts
    watch: Callable[[Kind], Informer[ClusterObject]]

    def informers(self) -> Iterator[Informer[Any]]:
        """Yield every informer."""
        yield self.nodes
        yield from self.others
        yield self.pods

    def watched(self) -> Mapping[Kind, Informer[ClusterObject]]:
        """Return the informers of the kinds besides pods and nodes, by kind."""
        return {Kind(informer.resource.kind): informer for informer in self.others}

    def configuration_page(self) -> Mapping[str, Any]:
        """Return what `/configz` shows."""
        return self.reload.status.page()


def setup_of(options: RunOptions) -> Setup:
    """Return what the core is made from."""
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
        ),
        keeps_evaluations=options.evaluation is Evaluation.INCREMENTAL,
        verified_share=options.verified_share,
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
    core = Scheduler(setup, metrics=metrics.scheduler, perf=around.perf)
    elector = _elector(options, transport, metrics, around)
    may_write = _always if elector is None else elector.may_write
    batch = options.configuration.extras.batch
    pump = Pump(core, clock=clock, meter=meter, batch=batch, may_decide=may_write)
    dispatcher = Dispatcher(
        transport,
        metrics=metrics.kube,
        on_bind_outcome=pump.bind_ended,
        may_write=may_write,
        admit=admit,
        config=DispatcherConfig(call_timeout_seconds=_write_seconds(options)),
        wall_clock_ns=around.wall_clock_ns,
        **around.timing(),
    )
    recorder = EventRecorder(
        transport,
        hostname=around.hostname,
        metrics=metrics.kube,
        may_write=may_write,
        may_tell=_always if elector is None else elector.may_tell,
        admit=admit,
        wall_clock_ns=around.wall_clock_ns,
        **around.timing(),
    )
    writes = WriteLane(
        transport,
        on_outcome=pump.write_ended,
        may_write=may_write,
        admit=admit,
        workers=options.configuration.settings.parallelism,
        call_timeout_seconds=_write_seconds(options),
        **around.timing(),
    )
    recording = _recording(options, core, clock=clock, meter=meter, metrics=metrics)
    reader = PodReader(transport, on_read=pump.pod_read, admit=admit, clock=around.clock)
    carrier = Carrier(dispatcher, recorder, writes, reader, wall_clock_ns=around.wall_clock_ns)
    pump.connect(carrier, recording)
    watching = _Watching(transport, metrics, meter, around)
    nodes = watching.informer(NODES)
    nodes.add_handler(pump.node_changed)
    pods = watching.informer(PODS)
    pods.add_handler(pump.pod_changed)
    rejections = Rejections(
        transport,
        metrics=metrics.kube,
        is_ours=lambda name: name in core.scheduler_names,
        may_look=may_write,
        **around.timing(),
    )
    pods.add_handler(rejections.pod_changed)

    def watch(kind: Kind) -> Informer[ClusterObject]:
        informer = watching.informer(OTHERS[kind])
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

    def comparers() -> Mapping[Informer[Any], Comparer[Any]]:
        return {each: Comparer(transport, each, meter=meter) for each in graph.informers()}

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
        check=check,
        reload=reload,
        watch=watch,
    )
    if recording is not None:
        recording.follow(lambda: _progress(graph.informers()))
    return graph


def _progress(informers: Iterable[Informer[Any]]) -> Iterator[tuple[str, str]]:
    """Yield the version that each resource is known up to."""
    for informer in informers:
        if informer.resource_version:
            yield informer.resource.plural, informer.resource_version


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Watching:
    """What all informers have in common."""

    transport: Transport
    metrics: Metrics
    meter: SliceMeter
    around: Surroundings

    def informer(self, resource: Resource[T]) -> Informer[T]:
        return Informer(
            self.transport,
            resource,
            metrics=self.metrics.kube,
            meter=self.meter,
            pace=self.around.pace,
            rng=self.around.rng,
        )


def _elector(
    options: RunOptions, transport: Transport, metrics: Metrics, around: Surroundings
) -> Elector | None:
    election = options.configuration.settings.leader_election
    if not election.leader_elect:
        return None
    config = LeaseConfig(
        name=election.resource_name,
        namespace=election.resource_namespace,
        identity=f"{around.hostname}_{around.instance}",
        lease_duration_seconds=election.lease_duration_seconds,
        renew_deadline_seconds=election.renew_deadline_seconds,
        retry_period_seconds=election.retry_period_seconds,
    )
    return Elector(
        transport,
        config,
        metrics=metrics.kube,
        clock=around.boot_clock,
        wall_clock_ns=around.wall_clock_ns,
        sleep=around.sleep,
        uniform=around.rng.random,
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
    core: Scheduler,
    *,
    clock: Callable[[], float],
    meter: SliceMeter,
    metrics: Metrics,
) -> Recording | None:
    if options.record_file is None:
        return None
    return Recording(
        options.record_file,
        setup=lambda: core.setup,
        max_bytes=options.record_max_bytes,
        checkpoint=core.checkpoint,
        clock=clock,
        meter=meter,
        metrics=metrics.recording,
    )
