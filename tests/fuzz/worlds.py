"""A daemon's worth of code that is told of objects, and the CPU each message takes.

bytes ──► kube.watching ──► store ──► app.pump ──► core ──► app.carrier
"""

import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import Message, Schedule, Tick
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.resources import NODES, PODS, Resource, resource_of
from k8s_scheduler.kube.watch.decoding import ObjectDecoder
from k8s_scheduler.kube.watch.list_tickets import Progress
from k8s_scheduler.kube.watch.reflector_limits import DEFAULT_PACE
from k8s_scheduler.kube.watch.reflector_log import UndecodableLog
from k8s_scheduler.kube.watch.reflector_parts import ReflectorParts
from k8s_scheduler.kube.watch.set_back import Signals
from k8s_scheduler.kube.watch.store import Store
from k8s_scheduler.kube.watch.streams import StreamError
from k8s_scheduler.kube.watch.watching import Watcher
from k8s_scheduler.kube.write.binding import BindOutcome, BindRequest
from k8s_scheduler.kube.write.conditions import ConditionPatch
from k8s_scheduler.kube.write.write_requests import WriteOutcome, WriteRequest
from k8s_scheduler.lib.slices import silent_meter
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod

CPU_LIMIT_SECONDS = 1.0
SETUP = Setup(profiles=default_configuration(known_plugins()).profiles)
METRICS = Metrics()
CANARY = "canary-"


@dataclass(slots=True)
class Desk:
    """Stands for dispatcher, write lane and recorder: all that is asked for is done."""

    binds: list[BindRequest] = field(default_factory=list)
    writes: list[WriteRequest] = field(default_factory=list)
    conditions: list[ConditionPatch] = field(default_factory=list)
    bound: int = 0
    errors: int = 0

    def bind_room(self) -> int:
        return 1000

    def may_land(self, _uid: PodUid) -> bool:
        return False

    def submit_bind(self, request: BindRequest) -> None:
        self.binds.append(request)
        self.bound += 1

    def submit(self, request: WriteRequest) -> None:
        self.writes.append(request)

    def submit_condition(self, patch: ConditionPatch) -> None:
        self.conditions.append(patch)
        self.errors += patch.reason == "SchedulerError"

    def record(self, note: object) -> None:
        """Take an event; nobody reads it."""


class MeasuredCore(Scheduler):
    """A core that notes the CPU each message takes, and what it could not take."""

    worst_seconds = 0.0
    worst_message = ""
    raised = ""
    messages = 0
    # For all messages but ticks, which come by the clock.
    seconds = 0.0

    def handle(self, message: Message) -> list[Instruction]:
        self.messages += 1
        started = time.thread_time()
        try:
            return super().handle(message)
        except Exception:
            # The store would swallow it, and half a change would stay behind.
            self.raised = traceback.format_exc(limit=-8)
            raise
        finally:
            seconds = time.thread_time() - started
            if not isinstance(message, Tick):
                self.seconds += seconds
            if seconds > self.worst_seconds:
                self.worst_seconds, self.worst_message = seconds, type(message).__name__


class World:
    """One cluster that is told of objects."""

    def __init__(self, setup: Setup = SETUP) -> None:
        self.now = 1000.0
        self.core = MeasuredCore(setup, metrics=METRICS.scheduler)
        self.desk = Desk()
        carrier = Carrier(self.desk, self.desk, self.desk, self.desk)
        self.pump = Pump(self.core, carrier, clock=lambda: self.now, meter=silent_meter())
        self.refused = 0
        self.stores: dict[str, Store[Any]] = {}
        self._watchers: dict[str, Watcher[Any]] = {}
        self._open(PODS, self.pump.pod_changed)
        self._open(NODES, self.pump.node_changed)
        for kind in self.core.kinds:
            self._open(resource_of(kind), partial(self.pump.object_changed, kind))
        self._canaries = 0

    def _open(self, resource: Resource[Any], handler: Callable[..., None]) -> None:
        name = resource.kind.rpartition("/")[2]
        store = self.stores[name] = Store[Any](resource.plural)
        store.add_handler(handler)
        self._watchers[name] = self._watcher(resource)

    def _watcher(self, resource: Resource[Any]) -> Watcher[Any]:
        parts = ReflectorParts(
            transport=None,  # nothing is fetched
            resource=resource,
            decoder=ObjectDecoder(resource),
            store=self.stores[resource.kind.rpartition("/")[2]],
            progress=Progress(on_answer=lambda: None),
            undecodable=UndecodableLog(resource.plural, METRICS.kube),
            meter=silent_meter(),
            pace=DEFAULT_PACE,
            signals=Signals(),
        )
        return Watcher(parts, METRICS.kube, on_open=lambda: None)

    async def start(self, nodes: int) -> None:
        """Put nodes in place that stay."""
        for i in range(nodes):
            raw = make_node(f"s{i}").offers(cpu="8", memory="32Gi", pods="30").raw
            zone = {"kubernetes.io/hostname": f"s{i}", "topology.kubernetes.io/zone": f"z{i % 3}"}
            raw["metadata"]["labels"] = zone | {"zone": f"z{i % 3}"}
            await self.send("Node", "ADDED", json.dumps(raw))

    async def send(self, kind: str, event: str, text: str) -> None:
        """Let a watch show an object; what is no event at all ends a stream, and that is all."""
        line = f'{{"type":"{event}","object":{text}}}'.encode("utf-8", "surrogatepass")
        try:
            if not await self._watchers[kind]._take(line, silent_meter().start("fuzz")):
                # It says that the storage was set back: a daemon watches anew, from here.
                resource = self._watchers[kind]._parts.resource
                self._watchers[kind] = self._watcher(resource)
                await self._watchers[kind]._take(line, silent_meter().start("fuzz"))
        except StreamError:
            self.refused += 1

    async def canary(self) -> None:
        """Send a pod that nothing is wrong with."""
        self._canaries += 1
        name = f"{CANARY}{self._canaries}"
        raw = make_pod(name).label(app="web").request(cpu="10m", memory="1Mi").raw
        await self.send("Pod", "ADDED", json.dumps(raw))

    def decide(self) -> None:
        """Let everything happen that is due."""
        self.now += 1.0
        self.pump._tell(Tick(self.now))
        for _ in range(1000):
            self._answer()
            if not self.core.has_work:
                return
            self.pump._tell(Schedule(self.now, 4))
        raise AssertionError("the core does not come to rest")

    def _answer(self) -> None:
        desk = self.desk
        binds, desk.binds = desk.binds, []
        for bind in binds:
            self.pump.bind_ended(
                BindOutcome(
                    uid=bind.uid,
                    attempt=bind.attempt,
                    node=bind.node,
                    bound=bind.name.startswith(CANARY) or not bind.name.endswith("7"),
                    message="refused",
                )
            )
        writes, desk.writes = desk.writes, []
        for write in writes:
            self.pump.write_ended(
                WriteOutcome(uid=write.uid, attempt=write.attempt, request=write.request, done=True)
            )

    def problem(self) -> str:
        """Return what promise is broken, if one is."""
        core = self.core
        if core.raised:
            return core.raised
        if core.worst_seconds > CPU_LIMIT_SECONDS:
            return f"a {core.worst_message} took {core.worst_seconds:.2f} s of CPU"
        for patch in self.desk.conditions:
            if patch.reason == "SchedulerError" and patch.name.startswith(CANARY):
                return f"{patch.name}, with which nothing is wrong: {patch.message}"
        self.desk.conditions.clear()
        return ""
