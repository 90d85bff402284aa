"""Builds the object graph of the daemon; starts nothing."""

import functools
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from k8s_scheduler.api.kinds import ClusterObject
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.carrier import Carrier
from k8s_scheduler.app.options import Evaluation, RunOptions
from k8s_scheduler.app.pump import Pump
from k8s_scheduler.app.recording import Recording
from k8s_scheduler.app.warming import warm_up
from k8s_scheduler.core.queue.backoff import BackoffPolicy
from k8s_scheduler.core.queue.scheduling_queue import QueuePolicy
from k8s_scheduler.core.scheduler import Scheduler, Setup
from k8s_scheduler.kube.dispatcher import Dispatcher, DispatcherConfig
from k8s_scheduler.kube.http import Transport
from k8s_scheduler.kube.informer import Informer
from k8s_scheduler.kube.leader import Elector
from k8s_scheduler.kube.lease import LeaseConfig
from k8s_scheduler.kube.recorder import EventRecorder
from k8s_scheduler.kube.resources import NODES, OTHERS, PODS
from k8s_scheduler.kube.throttle import rate_limit
from k8s_scheduler.kube.write_lane import WriteLane
from k8s_scheduler.lib.clock import SteadyClock
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics

_WRITE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Graph:
    """Everything that runs, ready to be started.

    `others` are the informers of the kinds that the enabled plugins read, and of no other kind.
    """

    pump: Pump
    nodes: Informer[Node]
    others: tuple[Informer[ClusterObject], ...]
    pods: Informer[Pod]
    dispatcher: Dispatcher
    writes: WriteLane
    recorder: EventRecorder
    recording: Recording | None
    elector: Elector | None

    def informers(self) -> Iterator[Informer[Any]]:
        """Yield every informer."""
        yield self.nodes
        yield from self.others
        yield self.pods


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


def wire(options: RunOptions, transport: Transport, metrics: Metrics) -> Graph:
    """Join the parts. OSError if the recording can't be opened.

    The rate limit is for pods' writes alone: a lease that waits behind them would be lost.
    """
    setup = setup_of(options)
    warm_up(setup)
    connection = options.configuration.settings.client_connection
    admit = rate_limit(qps=connection.qps, burst=connection.burst)
    clock = SteadyClock()
    meter = SliceMeter(metrics.report_slice)
    core = Scheduler(setup, metrics=metrics.scheduler, perf=time.perf_counter)
    batch = options.configuration.extras.batch
    pump = Pump(core, clock=clock, meter=meter, batch=batch)
    elector = _elector(options, transport, metrics)
    may_write = _always if elector is None else elector.may_write
    dispatcher = Dispatcher(
        transport,
        metrics=metrics.kube,
        on_bind_outcome=pump.bind_ended,
        may_write=may_write,
        admit=admit,
        config=DispatcherConfig(call_timeout_seconds=_write_seconds(options)),
    )
    recorder = EventRecorder(
        transport, hostname=socket.gethostname(), metrics=metrics.kube, admit=admit
    )
    writes = WriteLane(
        transport,
        on_outcome=pump.write_ended,
        may_write=may_write,
        admit=admit,
        workers=options.configuration.settings.parallelism,
        call_timeout_seconds=_write_seconds(options),
    )
    recording = _recording(options, setup, core, clock=clock, meter=meter, metrics=metrics)
    pump.connect(Carrier(dispatcher, recorder, writes), recording)
    nodes = Informer(transport, NODES, metrics=metrics.kube, meter=meter)
    nodes.add_handler(pump.node_changed)
    pods = Informer(transport, PODS, metrics=metrics.kube, meter=meter)
    pods.add_handler(pump.pod_changed)
    others = []
    for kind in core.kinds:
        informer = Informer(transport, OTHERS[kind], metrics=metrics.kube, meter=meter)
        informer.add_handler(functools.partial(pump.object_changed, kind))
        others.append(informer)
    if recording is not None:
        recording.follow(functools.partial(_progress, (nodes, pods, *others)))
    return Graph(
        pump=pump,
        nodes=nodes,
        others=tuple(others),
        pods=pods,
        dispatcher=dispatcher,
        writes=writes,
        recorder=recorder,
        recording=recording,
        elector=elector,
    )


def _progress(informers: Iterable[Informer[Any]]) -> Iterator[tuple[str, str]]:
    """Yield the version that each resource is known up to."""
    for informer in informers:
        if informer.resource_version:
            yield informer.resource.plural, informer.resource_version


def _always() -> bool:
    return True


def _elector(options: RunOptions, transport: Transport, metrics: Metrics) -> Elector | None:
    election = options.configuration.settings.leader_election
    if not election.leader_elect:
        return None
    config = LeaseConfig(
        name=election.resource_name,
        namespace=election.resource_namespace,
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease_duration_seconds=election.lease_duration_seconds,
        renew_deadline_seconds=election.renew_deadline_seconds,
        retry_period_seconds=election.retry_period_seconds,
    )
    return Elector(transport, config, metrics=metrics.kube)


def _write_seconds(options: RunOptions) -> float:
    """Return how long a write may take: it must end before anybody else can lead."""
    election = options.configuration.settings.leader_election
    if not election.leader_elect:
        return _WRITE_SECONDS
    spare = election.lease_duration_seconds - election.renew_deadline_seconds
    return min(_WRITE_SECONDS, 0.8 * spare)


def _recording(
    options: RunOptions,
    setup: Setup,
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
        setup=setup,
        max_bytes=options.record_max_bytes,
        checkpoint=core.checkpoint,
        clock=clock,
        meter=meter,
        metrics=metrics.recording,
    )
