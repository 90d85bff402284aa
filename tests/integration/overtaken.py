"""The whole daemon in this process, with somebody who acts between a decision and its Binding.

A race is a matter of moments; here it is no matter of luck. The daemon's graph is the real one, on
the real API server: only the transport holds a Binding back until the other side has had its turn.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import LeaderElection
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.wiring import wire
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from testbed.sandbox import Sandbox

# Called with the pod's name and the node it is about to be bound to.
Overtake = Callable[[str, str], None]


class Overtaken:
    """A transport that lets somebody else go first, once for each Binding."""

    def __init__(self, inner: ApiTransport, overtake: Overtake) -> None:
        self._inner = inner
        self._overtake = overtake
        self.stream = inner.stream

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method == "POST" and path.endswith("/binding"):
            body = msgspec.json.decode(options["body"])
            name, node = body["metadata"]["name"], body["target"]["name"]
            await asyncio.to_thread(self._overtake, name, node)
        return await self._inner.request(method, path, **options)


@dataclass(frozen=True)
class Racer:
    """A running daemon and its metrics."""

    metrics: Metrics

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def racing(sandbox: Sandbox, scheduler_name: str, overtake: Overtake) -> AsyncIterator[Racer]:
    """Run a daemon under one scheduler name for as long as the body."""
    configuration = default_configuration(known_plugins())
    (profile,) = configuration.profiles
    settings = msgspec.structs.replace(
        configuration.settings, leader_election=LeaderElection(leader_elect=False)
    )
    named = replace(profile, scheduler_name=scheduler_name)
    options = RunOptions(
        configuration=replace(configuration, settings=settings, profiles=(named,)), secure_port=0
    )
    metrics = Metrics()
    credentials = await load_credentials(str(sandbox.bed.kubeconfig))
    async with ApiTransport(credentials, metrics=metrics.kube) as transport:
        graph = wire(options, Overtaken(transport, overtake), metrics)
        stop = asyncio.Event()
        running = asyncio.create_task(Daemon(graph, options).run(stop))
        try:
            yield Racer(metrics)
        finally:
            stop.set()
            assert await running == 0


async def soon(wanted: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Wait until something holds, while the daemon goes on in this loop."""
    deadline = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < deadline:
        if found := await asyncio.to_thread(wanted):
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s: {what}")
