"""A cluster of many namespaces, and one core that is told of it as the daemon tells it.

Every message is timed in CPU, and the longest is remembered. Nothing here knows of harm: the same
world is looked at with it and without.
"""

import time
from collections.abc import Iterator

import msgspec

from k8s_scheduler.api.config.extras import BatchSettings
from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    Reconfigure,
    RequestResult,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Bind, ClearNomination, Evict, Instruction
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.as_made import Raw, as_made
from tests.bench.core_workloads import make_shape
from tests.bench.workloads import HOST, ZONE

TEAMS = 10
PODS_PER_NODE = 2
SHAPES = 50
# Nodes that have one of something, each taken by a pod that may be made to leave.
SCARCE = "example.com/scarce"
SCARCE_NODES = 40
# As the pump asks for decisions, and as many as it makes before others have their turn.
STEP = 4
BATCH = BatchSettings()
_MOST = 10**9
_ENOUGH = 200_000


class NeverAtRestError(Exception):
    """The core has always something to do."""


class World:
    """One core, the objects it was told of, and what the longest message took."""

    def __init__(self, nodes: int) -> None:
        configuration = default_configuration(known_plugins())
        renewals = configuration.extras.reasons.max_per_second
        policy = QueuePolicy(BackoffPolicy(), renewals_per_second=renewals)
        self.core = Scheduler(Setup(profiles=configuration.profiles, queue=policy))
        self.now = 1000.0
        self.nodes = nodes
        self.longest_seconds = 0.0
        self.longest_message = ""
        # The namespaces whose bindings are refused, and who is placed where.
        self.refused: set[str] = set()
        self.placed: dict[str, Raw] = {}
        # What pending pods were made from, to show them as bound; and who was asked to leave.
        self._pending: dict[str, Raw] = {}
        self.evicted: dict[str, Raw] = {}
        self._fill()

    # Telling

    def tell(self, message: Message) -> list[Instruction]:
        """Give the core one message, and take down what it cost."""
        started = time.process_time()
        out = self.core.handle(message)
        spent = time.process_time() - started
        if spent > self.longest_seconds:
            self.longest_seconds, self.longest_message = spent, type(message).__name__
        return out

    def start_over(self) -> None:
        """Forget which message was the longest."""
        self.longest_seconds, self.longest_message = 0.0, ""

    def node(self, raw: Raw) -> None:
        """Show a node."""
        node = msgspec.convert(raw, Node)
        self.tell(NodeChanged(self.now, NodeName(node.metadata.name), node))

    def drop_node(self, name: str) -> None:
        """Show that a node is gone."""
        self.tell(NodeChanged(self.now, NodeName(name), None))

    def pod(self, raw: Raw) -> None:
        """Show a pod; its uid is its name."""
        pod = msgspec.convert(raw, Pod)
        name = raw["metadata"]["uid"]
        (self.placed if pod.spec.node_name else self._pending)[name] = raw
        self.tell(PodChanged(self.now, PodUid(name), pod))

    def drop_pod(self, name: str) -> None:
        """Show that a pod is gone."""
        self.placed.pop(name, None)
        self._pending.pop(name, None)
        self.tell(PodChanged(self.now, PodUid(name), None))

    def object(self, kind: Kind, raw: Raw) -> None:
        """Show an object of another kind."""
        found = msgspec.convert(raw, kind.type)
        namespace, name = raw["metadata"].get("namespace", ""), raw["metadata"]["name"]
        self.tell(ObjectChanged(self.now, kind, namespace, name, found))

    def drop_object(self, kind: Kind, raw: Raw) -> None:
        """Show that it is gone."""
        namespace = raw["metadata"].get("namespace", "")
        self.tell(ObjectChanged(self.now, kind, namespace, raw["metadata"]["name"], None))

    # Deciding

    def schedule(self, limit: int = STEP) -> list[Instruction]:
        """Let some pods be decided on; what comes of it is answered."""
        return self._answered(Schedule(self.now, limit))

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        self.now += seconds
        self._answered(Tick(self.now))

    def settle(self, most: int = _ENOUGH) -> None:
        """Let the core do all it has to do."""
        for _ in range(most):
            if not self.core.has_work:
                return
            self.schedule()
        raise NeverAtRestError(f"{most} messages, and still there is something to do")

    def rest(self, seconds: int, *, step: float = 1.0) -> None:
        """Let time pass, and the core do what comes of it."""
        for _ in range(int(seconds / step)):
            self.tick(step)
            self.settle()

    def _answered(self, message: Message) -> list[Instruction]:
        """Tell the core; answer what it asks for, and what it asks for then."""
        out = self.tell(message)
        for instruction in out:
            self._answer(instruction)
        return out

    def _answer(self, instruction: Instruction) -> None:
        if isinstance(instruction, Bind):
            self._bind(instruction)
        elif isinstance(instruction, Evict):
            self._evict(instruction)
        elif isinstance(instruction, ClearNomination):
            uid, attempt, request = instruction.uid, instruction.attempt, instruction.request
            self._answered(RequestResult(self.now, uid, attempt, request, done=True))

    def _bind(self, bind: Bind) -> None:
        is_refused = bind.namespace in self.refused
        text = "Internal error occurred: failed calling webhook" if is_refused else ""
        bound = not is_refused
        self._answered(BindResult(self.now, bind.uid, bind.attempt, bind.node, bound, text))
        if bound:
            raw = self._pending.pop(bind.uid)
            self.pod({**raw, "spec": raw["spec"] | {"nodeName": bind.node}})

    def _evict(self, eviction: Evict) -> None:
        uid, attempt, request = eviction.uid, eviction.attempt, eviction.request
        victim = eviction.victim.uid
        self.evicted[victim] = self.placed[victim]
        self._answered(RequestResult(self.now, uid, attempt, request, done=True))
        self.drop_pod(victim)

    # Limits

    def raise_limits(self) -> None:
        """Let pods and nodes ask for anything."""
        pods = PodLimits(**dict.fromkeys(PodLimits.__struct_fields__, _MOST))
        nodes = NodeLimits(**dict.fromkeys(NodeLimits.__struct_fields__, _MOST))
        setup = self.core.setup
        message = Reconfigure(self.now, setup.profiles, settings_of(setup.queue), pods, nodes)
        self.tell(message)

    # What is there

    def _fill(self) -> None:
        for team in [*(f"team-{number}" for number in range(TEAMS)), "others", "greedy"]:
            name = "kubernetes.io/metadata.name"
            self.object(Kind.NAMESPACE, {"metadata": {"name": team, "labels": {name: team}}})
        for number in range(self.nodes):
            self.node(self.node_raw(number))
        for pod in self._in_place():
            self.pod(pod)
        self.settle()
        self.start_over()

    def node_raw(self, number: int, *, room: int = 250) -> Raw:
        """Return a node as it is in peace."""
        name = f"node-{number}"
        own = {HOST: name, ZONE: f"zone-{number % 3}", "kubernetes.io/os": "linux"}
        offers = {"cpu": "32", "memory": "64Gi", "pods": str(room)}
        if number < SCARCE_NODES:
            offers[SCARCE] = "1"
        return {
            "metadata": {"name": name, "uid": name, "labels": own},
            "status": {"allocatable": offers},
        }

    def _in_place(self) -> Iterator[Raw]:
        for number in range(PODS_PER_NODE * self.nodes):
            name = f"placed-{number}"
            pod = as_made(make_shape(number % SHAPES), name, number, run=number % SHAPES)
            pod["metadata"].update(name=name, uid=name, namespace=f"team-{number % TEAMS}")
            # One after the other, and the shapes all over.
            pod["spec"]["nodeName"] = f"node-{(number * 7 + number // self.nodes) % self.nodes}"
            yield pod
        for number in range(SCARCE_NODES):
            yield scarce(f"scarce-{number}", number, node=f"node-{number}")


def scarce(name: str, number: int, *, node: str = "", priority: int = 0) -> Raw:
    """Return a pod that takes what few nodes have one of."""
    container = {"name": "c", "resources": {"requests": {"cpu": "10m", SCARCE: "1"}}}
    pod = {
        "metadata": {"name": name, "uid": name, "namespace": "others", "labels": {"app": "gpu"}},
        "spec": {"schedulerName": "default-scheduler", "containers": [container]},
        "status": {},
    }
    made = as_made(pod, name, number, run=0)
    made["spec"]["priority"] = priority
    if node:
        made["spec"]["nodeName"] = node
    return made
