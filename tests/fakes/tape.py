"""A core whose life is recorded as the daemon records it, in clusters made by chance."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from k8s_scheduler.api.kinds import kind_named
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.driver.recording import Recording
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    RequestResult,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Bind, Evict, Instruction, PatchObject
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.lib.slices import silent_meter
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.simulate.defaulting.objects import defaulted
from k8s_scheduler.simulate.profiles import profile_in_force

Raw = dict[str, Any]
STARTED = 1_800_000_000.0
# Nobody reads them, and a registry for each tape would cost more than its decisions.
METRICS = Metrics()


class Tape:
    """Tells a core, records it, and answers as an obliging API server would."""

    def __init__(self, path: Path, setup: Setup, *, max_bytes: int = 1 << 26) -> None:
        self.core = Scheduler(setup, metrics=METRICS.scheduler)
        self.now = STARTED
        self.version = 0
        self.binds: list[Bind] = []
        self._pods: dict[str, Pod] = {}
        self.recording = Recording(
            path,
            self.core,
            max_bytes=max_bytes,
            clock=lambda: self.now,
            meter=silent_meter(),
            metrics=METRICS.recording,
        )

    def tell(self, message: Message) -> list[Instruction]:
        """Do as `app.driver.pump` does."""
        self.recording.write(message)
        instructions = self.core.handle(message)
        self.recording.answered(instructions)
        return instructions

    def put(self, raw: Raw) -> None:
        """Let an object be as it is written."""
        name, raw = raw["kind"], defaulted(raw)
        self.version += 1
        raw["metadata"] = {**raw["metadata"], "resourceVersion": str(self.version)}
        if name == "Pod":
            self.put_pod(msgspec.convert(raw, Pod))
        elif name == "Node":
            node = msgspec.convert(raw, Node)
            self.tell(NodeChanged(self.now, NodeName(node.metadata.name), node))
        else:
            kind = kind_named(name)
            found = msgspec.convert(raw, kind.type)
            metadata = found.metadata
            self.tell(ObjectChanged(self.now, kind, metadata.namespace, metadata.name, found))

    def put_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid or f"{pod.metadata.namespace}/{pod.metadata.name}"
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))
        self._pods[uid] = pod
        self.tell(PodChanged(self.now, PodUid(uid), pod))

    def settle(self, *, limit: int = 4) -> None:
        """Let everything be decided that can be, and every write be done."""
        for _ in range(200):
            self.now += 0.25
            pending = self.tell(Schedule(self.now, limit))
            while pending:
                pending = [i for each in pending for i in self._done(each)]
            if not self.core.has_work:
                return

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.tell(Tick(self.now))

    def _done(self, instruction: Instruction) -> list[Instruction]:
        """Return what the core says to the outcome of an instruction."""
        if isinstance(instruction, Bind):
            self.binds.append(instruction)
            pod = self._pods[instruction.uid]
            spec = msgspec.structs.replace(pod.spec, node_name=instruction.node)
            self.version += 1
            metadata = msgspec.structs.replace(pod.metadata, resource_version=str(self.version))
            self.put_pod(msgspec.structs.replace(pod, spec=spec, metadata=metadata))
            uid, attempt, node = instruction.uid, instruction.attempt, instruction.node
            return self.tell(BindResult(self.now, uid, attempt, node, bound=True))
        if isinstance(instruction, Evict | PatchObject):
            out = []
            if isinstance(instruction, Evict):
                out += self.tell(PodChanged(self.now, instruction.victim.uid, None))
            uid, attempt, request = instruction.uid, instruction.attempt, instruction.request
            return out + self.tell(RequestResult(self.now, uid, attempt, request, done=True))
        return []


def recorded(path: Path, scenarios: Iterable[Raw]) -> list[Tape]:
    """Record the life of each scenario's cluster to `path-0`, `path-1`, ..."""
    tapes = []
    for number, scenario in enumerate(scenarios):
        profile = profile_in_force(scenario.get("config"))
        tape = Tape(path.with_name(f"{path.name}-{number}"), Setup(profiles=(profile,)))
        pods_last = sorted(scenario["objects"], key=lambda raw: raw["kind"] == "Pod")
        for raw in pods_last:
            if raw["kind"] == "Pod":
                raw["spec"]["schedulerName"] = profile.scheduler_name
            tape.put(raw)
        tape.settle()
        tape.tick(1.0)
        tape.settle()
        tape.recording.close()
        tapes.append(tape)
    return tapes
