"""A daemon's worth of code fed with hostile pods and nodes, and what must hold meanwhile.

    bytes ──► kube.watching ──► store ──► app.pump ──► core ──► app.carrier

Promises: nothing raises; no message takes over a second of CPU; a pod that can't be decided fails
its own attempt and nobody else's, so pods that are right are never told of a SchedulerError; and
the core comes to rest.
"""

import asyncio
import itertools
import json
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from k8s_scheduler.api.config_load import default_configuration
from k8s_scheduler.app.carrier import Carrier
from k8s_scheduler.app.pump import Pump
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import Message, Schedule, Tick
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.scheduler import Scheduler, Setup
from k8s_scheduler.kube.binding import BindOutcome, BindRequest
from k8s_scheduler.kube.conditions import ConditionPatch
from k8s_scheduler.kube.decoding import ObjectDecoder
from k8s_scheduler.kube.pace import DEFAULT_PACE
from k8s_scheduler.kube.parts import Parts
from k8s_scheduler.kube.progress import Progress
from k8s_scheduler.kube.resources import NODES, PODS, Resource
from k8s_scheduler.kube.set_back import Signals
from k8s_scheduler.kube.store import Store
from k8s_scheduler.kube.streams import StreamError
from k8s_scheduler.kube.undecodable import UndecodableLog
from k8s_scheduler.kube.watching import Watcher
from k8s_scheduler.kube.write_requests import WriteOutcome, WriteRequest
from k8s_scheduler.lib.slices import silent_meter
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.fuzz.hostile import NODE_NAMES, NODE_TRAITS, POD_TRAITS, Dice, Raw
from tests.fuzz.mutations import mutated

CPU_LIMIT_SECONDS = 1.0
EPISODE = 200
SETUP = Setup(profiles=default_configuration(known_plugins()).profiles)
METRICS = Metrics()
CANARY = "canary-"
_SMALL = 20_000


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
            if seconds > self.worst_seconds:
                self.worst_seconds, self.worst_message = seconds, type(message).__name__


class World:
    """One cluster that is told of objects."""

    def __init__(self, *, nodes: int) -> None:
        self.now = 1000.0
        self.core = MeasuredCore(SETUP, metrics=METRICS.scheduler)
        self.desk = Desk()
        self.pump = Pump(self.core, clock=lambda: self.now, meter=silent_meter())
        self.pump.connect(Carrier(self.desk, self.desk, self.desk, self.desk), None)
        self.refused = 0
        self._pods = self._watcher(PODS, self.pump.pod_changed)
        self._nodes = self._watcher(NODES, self.pump.node_changed)
        self._canaries = 0
        self._version = 0
        self._standing = nodes

    def _watcher(self, resource: Resource[Any], handler: Callable[..., None]) -> Watcher[Any]:
        store: Store[Any] = Store(resource.plural)
        store.add_handler(handler)
        parts = Parts(
            transport=None,  # nothing is fetched
            resource=resource,
            decoder=ObjectDecoder(resource),
            store=store,
            progress=Progress(on_answer=lambda: None),
            undecodable=UndecodableLog(resource.plural, METRICS.kube),
            meter=silent_meter(),
            pace=DEFAULT_PACE,
            signals=Signals(),
        )
        return Watcher(parts, METRICS.kube, on_open=lambda: None)

    async def start(self) -> None:
        """Put the nodes in place that stay."""
        for i in range(self._standing):
            raw = make_node(f"s{i}").offers(cpu="8", memory="32Gi", pods="30").raw
            zone = {"kubernetes.io/hostname": f"s{i}", "topology.kubernetes.io/zone": f"z{i % 3}"}
            raw["metadata"]["labels"] = zone | {"zone": f"z{i % 3}"}
            await self.send("Node", "ADDED", json.dumps(raw))

    async def send(self, kind: str, event: str, text: str) -> None:
        """Let a watch show an object; what is no event at all ends a stream, and that is all."""
        watcher = self._pods if kind == "Pod" else self._nodes
        line = f'{{"type":"{event}","object":{text}}}'.encode("utf-8", "surrogatepass")
        try:
            await watcher._take(line, silent_meter().start("fuzz"))
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


def right_pod(rng: Dice, number: int) -> Raw:
    """Return a pod that nothing is wrong with yet."""
    raw = make_pod(f"p{number}").label(app=rng.choice("ab"), zone=rng.choice("ab")).raw
    raw["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]
    if rng.random() < 0.4:
        raw["spec"]["nodeName"] = rng.choice((*NODE_NAMES, "s0", "s1", "nobody"))
    return raw


def objects(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, event, JSON text)."""
    rng = Dice(seed)
    for number in range(count):
        rng.wild = rng.random() < 0.25
        is_pod = rng.random() < 0.75
        known = rng.randrange(number + 1) if rng.random() < 0.3 else number
        if is_pod:
            raw, traits = right_pod(rng, known), POD_TRAITS
        else:
            raw, traits = make_node(rng.choice(NODE_NAMES)).raw, NODE_TRAITS
        for trait in rng.sample(traits, rng.choice((0, 1, 1, 2, 3))):
            trait(raw, rng)
        raw["metadata"].setdefault("resourceVersion", str(number + 1))
        text = _json(raw)
        # Accidents to large objects take long to make, and show nothing that small ones don't.
        if rng.wild and len(text) < _SMALL:
            text = _json(mutated(raw, rng, times=rng.choice((1, 1, 2, 5))))
        event = rng.choice(("ADDED", "ADDED", "MODIFIED", "DELETED"))
        yield "Pod" if is_pod else "Node", event, text


def _json(raw: Raw) -> str:
    try:
        return json.dumps(raw)
    except RecursionError:
        return "[" * 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an episode; `problem` is empty if every promise was kept."""

    problem: str
    worst_cpu_seconds: float
    messages: int
    attempts_failed: int
    bound: int


def _outcome(world: World, problem: str) -> Outcome:
    core, desk = world.core, world.desk
    return Outcome(problem, core.worst_seconds, core.messages, desk.errors, desk.bound)


async def episode(sent: list[tuple[str, str, str]], *, nodes: int, every: int = 8) -> Outcome:
    """Send objects to a new world, and see whether it keeps its promises."""
    world = World(nodes=nodes)
    await world.start()
    for number, (kind, event, text) in enumerate(sent):
        await world.send(kind, event, text)
        if number % every == every - 1:
            await world.canary()
            try:
                world.decide()
            except Exception:  # noqa: BLE001  whatever it is, it is what is looked for
                return _outcome(world, world.problem() or traceback.format_exc(limit=-8))
        if problem := world.problem():
            return _outcome(world, problem)
    return _outcome(world, "")


def run(seed: int, count: int, *, keep: Callable[[str, bytes, str], object]) -> dict[str, float]:
    """Try so many; `keep(name, data, problem)` is called for what breaks the promise."""
    figures: dict[str, float] = {
        "tried": 0,
        "messages": 0,
        "bound": 0,
        "attempts_failed": 0,
        "failures": 0,
        "worst_cpu_seconds": 0.0,
    }
    everything = objects(seed, count)
    for number in range(0, count, EPISODE):
        sent = list(itertools.islice(everything, EPISODE))
        nodes = (5, 100, 1000)[number // EPISODE % 3]
        outcome = asyncio.run(episode(sent, nodes=nodes))
        figures["tried"] += len(sent)
        for name in ("messages", "bound", "attempts_failed"):
            figures[name] += getattr(outcome, name)
        worst = max(figures["worst_cpu_seconds"], outcome.worst_cpu_seconds)
        figures["worst_cpu_seconds"] = worst
        if outcome.problem:
            figures["failures"] += 1
            data = "".join(f"{kind} {event} {text}\n" for kind, event, text in sent)
            keep(f"objects-{seed}-{number}-{nodes}.txt", data.encode(), outcome.problem)
    return figures
