"""A core with a hand on its clock: what goes in, and what came out of it."""

from typing import TypeVar

from k8s_scheduler.api.config.types import PluginUse, ResolvedProfile
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    PodChanged,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Bind, Instruction, RecordEvent
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup

Kind = TypeVar("Kind")


def profile(name: str = "default-scheduler") -> ResolvedProfile:
    """Return a small profile: four filters and two scores, without preemption and volumes."""
    filters = ("NodeName", "NodeUnschedulable", "TaintToleration", "NodeResourcesFit")
    return ResolvedProfile(
        scheduler_name=name,
        points={
            "preEnqueue": (PluginUse("SchedulingGates"),),
            "queueSort": (PluginUse("PrioritySort"),),
            "filter": tuple(PluginUse(n) for n in filters),
            "score": (PluginUse("TaintToleration", 3), PluginUse("NodeResourcesFit", 1)),
            "bind": (PluginUse("DefaultBinder"),),
        },
    )


class Harness:
    """Drives one core."""

    def __init__(self, setup: Setup | None = None) -> None:
        self.core = Scheduler(setup or Setup(profiles=(profile(),)))
        self.now = 1000.0
        self.told: list[Message] = []
        self.out: list[Instruction] = []

    def tell(self, message: Message) -> list[Instruction]:
        self.told.append(message)
        out = self.core.handle(message)
        self.out += out
        return out

    def node(self, node: Node) -> None:
        self.tell(NodeChanged(self.now, NodeName(node.metadata.name), node))

    def drop_node(self, name: str) -> None:
        self.tell(NodeChanged(self.now, NodeName(name), None))

    def pod(self, pod: Pod) -> None:
        self.tell(PodChanged(self.now, PodUid(pod.metadata.uid), pod))

    def drop_pod(self, pod: Pod) -> None:
        self.tell(PodChanged(self.now, PodUid(pod.metadata.uid), None))

    def schedule(self, limit: int = 1000) -> list[Instruction]:
        return self.tell(Schedule(self.now, limit))

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.tell(Tick(self.now))

    def result(self, bind: Bind, *, bound: bool = True, message: str = "") -> list[Instruction]:
        return self.tell(BindResult(self.now, bind.uid, bind.attempt, bind.node, bound, message))

    def binds(self) -> list[Bind]:
        """Return the binds of the next batch of decisions."""
        return only(Bind, self.schedule())

    def events(self) -> list[tuple[str, str, str]]:
        return [(e.name, e.reason, e.note) for e in only(RecordEvent, self.out)]


def only(kind: type[Kind], instructions: list[Instruction]) -> list[Kind]:
    return [i for i in instructions if isinstance(i, kind)]
