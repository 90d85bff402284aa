"""The ceiling: all that the daemon does with the API server, and no decision.

    python -m testbed.bench.null_binder --config FILE --status FILE

It watches what the daemon watches with the same configuration, with the daemon's transport,
informers and decoders, and its Bindings and events go out through the daemon's dispatcher and
recorder. Only where the core would choose, it takes the next node of a ring, whatever the pod asks
for. So what a scheduler reaches of its rate is what deciding costs.

It is ready, as the daemon is, when its caches are synced. How far it is stands in the status file.
"""

import argparse
import asyncio
import gc
import json
import logging
import signal
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.types import SchedulerConfiguration
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.app.configuration.interpretation import load
from k8s_scheduler.app.options import ConfigurationFlags, RunOptions
from k8s_scheduler.app.wiring import setup_of
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.kube.resources import NODES, PODS, resource_of
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.write.dispatcher import Dispatcher
from k8s_scheduler.lib.aiotasks import Supervisor
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs import logging as logs
from k8s_scheduler.obs.metrics import Metrics
from testbed.bench.ring import Ring

logger = logging.getLogger("k8s_scheduler.null_binder")

_STATUS_SECONDS = 0.5
_CALL_SECONDS = 4.0
_DRAIN_SECONDS = 30.0
_EVENTS_SECONDS = 5.0


def watched_kinds(configuration: SchedulerConfiguration) -> tuple[Kind, ...]:
    """Return what the daemon watches under this configuration, besides pods and nodes."""
    return Scheduler(setup_of(RunOptions(configuration=configuration))).kinds


class NullBinder:
    """The parts, joined as the daemon joins them."""

    def __init__(
        self,
        transport: Transport,
        ring: Ring,
        *,
        kinds: Iterable[Kind],
        metrics: Metrics,
        status: Path,
    ) -> None:
        self._ring = ring
        self._status = status
        self._metrics = metrics
        meter = SliceMeter(metrics.report_slice)
        caller = Caller(transport=transport, timeout_seconds=_CALL_SECONDS)
        self._dispatcher = Dispatcher(caller, metrics=metrics.kube, on_bind_outcome=ring.bind_ended)
        self._recorder = EventRecorder(caller, hostname=socket.gethostname(), metrics=metrics.kube)
        ring.connect(self._dispatcher, self._recorder)
        nodes = Informer(transport, NODES, metrics=metrics.kube, meter=meter)
        nodes.add_handler(ring.node_changed)
        self._pods = Informer(transport, PODS, metrics=metrics.kube, meter=meter)
        self._pods.add_handler(ring.pod_changed)
        self._before_pods: list[Informer[Any]] = [nodes]
        for kind in kinds:
            informer = Informer(transport, resource_of(kind), metrics=metrics.kube, meter=meter)
            self._before_pods.append(informer)
        self._tasks = Supervisor()
        self._is_ready = False

    async def run(self, stop: asyncio.Event) -> int:
        """Bind until told to stop, see to the end of what is under way; return the exit code."""
        self._tasks.start("dispatcher", self._dispatcher.run())
        self._tasks.start("recorder", self._recorder.run())
        self._tasks.start("status", self._report())
        self._tasks.start("binding", self._begin(), may_end=True)
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait((stopping, self._tasks.died), return_when=asyncio.FIRST_COMPLETED)
        try:
            if self._tasks.died.done():
                logger.critical("Internal failure", exc_info=self._tasks.died.result())
                return 1
            return await self._drain()
        finally:
            stopping.cancel()
            await self._tasks.stop()
            self._write_status()

    async def _begin(self) -> None:
        """Watch everything, pods last as the daemon does, and bind once all of it is complete."""
        for group in (self._before_pods, [self._pods]):
            for informer in group:
                self._tasks.start(informer.resource.plural, informer.run())
            for informer in group:
                await informer.synced.wait()
        gc.freeze()
        self._is_ready = True
        self._write_status()
        self._ring.allow()

    async def _drain(self) -> int:
        self._ring.forbid()
        self._dispatcher.stop_accepting()
        unresolved = await self._dispatcher.drain(_DRAIN_SECONDS)
        unwritten = await self._recorder.drain(_EVENTS_SECONDS)
        if unresolved or unwritten:
            fields = {"bindings": unresolved, "events": unwritten}
            logger.error("Stopped before everything was written", extra={"fields": fields})
        return 1 if unresolved else 0

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_STATUS_SECONDS)
            self._write_status()

    def _write_status(self) -> None:
        """Replace the status file at once, so that nobody reads half of it."""
        state = {
            "ready": self._is_ready,
            "bound": self._ring.bound,
            "failed": self._ring.failed,
            "events_dropped": _dropped_events(self._metrics),
        }
        scratch = self._status.with_suffix(".new")
        scratch.write_text(json.dumps(state), encoding="utf-8")
        scratch.replace(self._status)


def _dropped_events(metrics: Metrics) -> int:
    samples = (s for family in metrics.kube.events_dropped.collect() for s in family.samples)
    return round(sum(sample.value for sample in samples if sample.name.endswith("_total")))


def read_status(path: Path) -> Mapping[str, int]:
    """Return what a null binder says of itself; empty while it has said nothing."""
    try:
        state: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return state


async def _run(configuration: SchedulerConfiguration, ring: Ring, status: Path) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    kubeconfig = configuration.settings.client_connection.kubeconfig
    credentials = await load_credentials(kubeconfig or None)
    metrics = Metrics()
    async with ApiTransport(credentials, metrics=metrics.kube) as transport:
        binder = NullBinder(
            transport, ring, kinds=watched_kinds(configuration), metrics=metrics, status=status
        )
        return await binder.run(stop)


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="testbed.bench.null_binder", description="Binds pods to nodes in turn."
    )
    parser.add_argument("--config", type=Path, required=True, help="the daemon's configuration")
    parser.add_argument("--status", type=Path, required=True, help="where to say how far it is")
    parser.add_argument(
        "--leave",
        action="append",
        default=[],
        metavar="PREFIX",
        help="leave pods and nodes alone whose name begins so; may be given again",
    )
    chosen = parser.parse_args(arguments)
    logs.configure("text", 0)
    try:
        configuration = load(ConfigurationFlags(config_file=chosen.config))
        names = [profile.scheduler_name for profile in configuration.profiles]
        ring = Ring(names, leave=chosen.leave)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(configuration, ring, chosen.status))
    except (ConfigurationError, CredentialsError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
