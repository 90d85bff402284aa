"""One replica of the daemon: the real graph, in a context of its own, that can be killed.

    started ──stop──► draining ──► exited ──► started again by the kubelet
       │ │ lease lost: exits by itself ──────────┘
       │ └─freeze──► frozen ──thaw──► started
       └─kill──► gone: its connection takes nothing more, then its tasks are cancelled

A killed process can do nothing any more. Here its code still runs for the length of a cancellation,
but from a connection that is dead: nothing of it reaches anybody.
"""

import asyncio
import contextvars
import itertools
import logging
import random
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from k8s_scheduler.api.config.extras import IGNORE, Rivals
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import LeaderElection, SchedulerConfiguration
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.environment import Environment
from k8s_scheduler.app.process.warm_up import warm_up
from k8s_scheduler.app.recovery.sentinel import Work
from k8s_scheduler.app.wiring import Graph, setup_of, wire
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.kube.watch.reflector_limits import Pace
from k8s_scheduler.obs.metrics import Metrics
from tests.simulation.client import Client, Weather
from tests.simulation.loop import OWNER, VirtualLoop
from tests.simulation.server import ModelServer

EPOCH_SECONDS = 1_767_225_600.0
_VOLUME_PLUGINS = frozenset(
    {"VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits", "DynamicResources"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What all replicas of a run have in common."""

    lease_seconds: float = 6.0
    renew_seconds: float = 4.0
    retry_seconds: float = 1.0
    page_limit: int = 400
    with_volumes: bool = False
    latency_seconds: float = 0.004


class Shared:
    """What is built once for all seeds: warming up and metrics cost more than a whole run."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        known = known_plugins()
        few = {name: facts for name, facts in known.items() if name not in _VOLUME_PLUGINS}
        self._full = default_configuration(known)
        self._small = default_configuration(few)
        for configuration in (self._full, self._small):
            warm_up(setup_of(RunOptions(configuration=configuration)))

    def options(self, settings: Settings) -> RunOptions:
        """Return the options of a run."""
        base = self._full if settings.with_volumes else self._small
        election = LeaderElection(
            lease_duration_seconds=settings.lease_seconds,
            renew_deadline_seconds=settings.renew_seconds,
            retry_period_seconds=settings.retry_seconds,
        )
        changed = msgspec.structs.replace(base.settings, leader_election=election)
        # One release, so there are no rivals: looks for them would be requests and nothing else.
        extras = msgspec.structs.replace(base.extras, rivals=Rivals(action=IGNORE))
        configuration: SchedulerConfiguration = replace(base, settings=changed, extras=extras)
        return RunOptions(configuration=configuration)


class Replica:
    """A pod of the scheduler's Deployment."""

    def __init__(
        self, letter: str, server: ModelServer, *, shared: Shared, settings: Settings, seed: str
    ) -> None:
        self.letter = letter
        self.weather = Weather(settings.latency_seconds)
        self.client: Client | None = None
        self.frozen = False
        self.wanted = True
        self._server = server
        self._loop: VirtualLoop = server.loop
        self._shared = shared
        self._settings = settings
        self._seed = seed
        self._incarnation = 0
        self._stop: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self.ending: list[asyncio.Task[Any]] = []

    @property
    def name(self) -> str:
        return f"{self.letter}{self._incarnation}"

    @property
    def is_up(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start the process, if it is not up."""
        if self.is_up or not self.wanted:
            return
        self._incarnation += 1
        rng = random.Random(f"{self._seed}/{self.name}")
        self.client = Client(self._server, self.name, weather=self.weather, rng=rng)
        self._stop = asyncio.Event()
        context = contextvars.copy_context()
        context.run(OWNER.set, self.name)
        self._happened("started")
        self._task = self._loop.create_task(
            self._run(self.client, self._stop, random.Random(f"{self._seed}/{self.name}/chance")),
            context=context,
        )

    def stop(self) -> None:
        """Send SIGTERM."""
        if self.is_up and self._stop is not None:
            self._happened("stopping")
            self._stop.set()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self._task is None or self.client is None or not self.is_up:
            return
        self._happened("killed")
        self.client.die()
        self.ending += self._loop.end(self.name)
        self._task = None
        self.thaw()

    def freeze(self) -> None:
        """Send SIGSTOP."""
        if self.is_up and not self.frozen:
            self._happened("frozen")
            self.frozen = True
            self._loop.freeze(self.name)

    def thaw(self) -> None:
        """Send SIGCONT."""
        if self.frozen:
            self._happened("thawed")
            self.frozen = False
            self._loop.thaw(self.name)

    async def _run(self, client: Client, stop: asyncio.Event, rng: random.Random) -> None:
        around = self._surroundings(rng)
        options = self._shared.options(self._settings)
        graph = wire(options, client, self._shared.metrics, surroundings=around)
        self.wired(graph)
        code = await Daemon(graph, options, surroundings=around).run(stop)
        self._server.history.happened(self._loop.now, client.name, f"exit {int(code)}")
        client.die()
        self._loop.at(self._loop.now, self._bury, client.name)
        self._loop.at(self._loop.now + rng.uniform(0.5, 3.0), self.start)

    def wired(self, graph: Graph) -> None:
        """Take note of the parts of a process that is about to run."""

    async def sentinel(self, _work: Work, _kubeconfig: str) -> None:
        """Write no marks: decisions take no time here."""
        await self._loop.create_future()

    def _bury(self, name: str) -> None:
        """End what an ended process has left behind, as its end does."""
        self.ending += self._loop.end(name)

    def _surroundings(self, rng: random.Random) -> Environment:
        loop = self._loop
        rate = 1.0 + rng.uniform(-0.002, 0.002)
        boot, wall = rng.uniform(0.0, 1e6), EPOCH_SECONDS + rng.uniform(-30.0, 30.0)
        used = [0.0]
        costs = itertools.cycle(rng.choices((0.0, 0.0, 0.001, 0.006), k=211))

        def clock() -> float:
            return boot + loop.now * rate

        def cpu_clock() -> float:
            used[0] += next(costs)
            return used[0]

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds / rate)

        return Environment(
            clock=clock,
            boot_clock=clock,
            wall_clock_ns=lambda: int((wall + loop.now) * 1e9),
            cpu_clock=cpu_clock,
            perf=lambda: 0.0,
            sleep=sleep,
            rng=rng,
            hostname=self.letter,
            instance=str(self._incarnation),
            pace=Pace(
                page_limit=self._settings.page_limit,
                watch_min_seconds=40.0,
                watch_max_seconds=90.0,
                stall_seconds=45.0,
            ),
            warm_up=lambda _setup: None,
            keep_memory=lambda: None,
            watchdog=_no_watchdog,
            sentinel=self.sentinel,
        )

    def _happened(self, what: str) -> None:
        self._server.history.happened(self._loop.now, self.name, what)


async def _no_watchdog(_hang_seconds: float) -> None:
    """Watch over nothing: the loop's time stands still while anybody works."""
    await asyncio.get_running_loop().create_future()


class Alarms(logging.Handler):
    """Takes down what a daemon itself calls an internal failure or a wrong decision."""

    def __init__(self, server: ModelServer) -> None:
        super().__init__(logging.ERROR)
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        internal = record.levelno >= logging.CRITICAL
        if not internal and record.name != "k8s_scheduler.core":
            return
        fields = getattr(record, "fields", {})
        if fields.get("extension_point") == "PreBind":
            # The world has changed under a pod that waited, as when its node is gone: an error by
            # kube-scheduler's own words, after which the pod is tried again.
            return
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            cause = record.exc_info[1].__cause__ or record.exc_info[1]
            text = f"{text}: {cause!r}"
        self._server.history.happened(
            self._server.loop.now, OWNER.get(), "alarm", f"{text} {fields}"
        )
