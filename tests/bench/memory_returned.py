"""How much memory a process has before something odd comes, with it, and after it is gone.

    PYTHONMALLOC=malloc python -m tests.bench.memory_returned [terms ...] [--rounds 3]

Measured is the resident memory of a process with a core and what informers would hold, after the
allocator was asked to return what is free, as the daemon does (`app/process/memory.py`). Each line
is one round: it comes and goes that often, which shows whether what is left grows or stays.
Without PYTHONMALLOC the same is measured with Python's own allocator.
"""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator

import msgspec

from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.process.memory import ProcessMemory
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import LimitCaches, NodeChanged, PodChanged, Schedule
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.bench.workloads import HOST, REQUIRED, ZONE, Raw

_NOW = 1000.0
_BUDGET_BYTES = 128 << 20
_NO_LIMITS = 10**6
_decode_pod = msgspec.json.Decoder(Pod).decode
_decode_node = msgspec.json.Decoder(Node).decode


class World:
    """A core, and the objects as informers have them."""

    def __init__(self, nodes: int) -> None:
        limits = PodLimits(resources=_NO_LIMITS, spec_bytes=2 * _NO_LIMITS, labels=_NO_LIMITS)
        profiles = default_configuration(known_plugins()).profiles
        node_limits = NodeLimits(resources=_NO_LIMITS)
        self.core = Scheduler(Setup(profiles=profiles, pod_limits=limits, node_limits=node_limits))
        self.nodes = nodes
        self.pods: dict[str, Pod] = {}
        self.known: dict[str, Node] = {}
        for number in range(nodes):
            self.put_node(number)
        for number in range(3 * nodes):
            self.put(f"base{number}", on=number, labels={"app": f"a{number % 50}"})
        self.decide("first", 30)

    def put_node(self, number: int, offered: Raw | None = None) -> None:
        """Add a node, or change what it offers."""
        name = f"n{number}"
        labels = {f"example.com/label-{each}": f"value-{each}" for each in range(8)}
        images = [{"names": [f"example.com/team/image-{each}:v1"]} for each in range(50)]
        native = {"cpu": "64", "memory": "256Gi", "pods": "1k", "ephemeral-storage": "100Gi"}
        raw: Raw = {
            "metadata": {"name": name, "labels": {HOST: name, ZONE: f"z{number % 3}", **labels}},
            "status": {"allocatable": native | (offered or {}), "images": images},
        }
        node = self.known[name] = _decode_node(msgspec.json.encode(raw))
        self.core.handle(NodeChanged(_NOW, NodeName(name), node))

    def put(
        self,
        name: str,
        *,
        on: int | None = None,
        labels: Raw | None = None,
        requests: Raw | None = None,
        **spec: object,
    ) -> None:
        """Add a pod."""
        asked = requests or {"cpu": "1m", "memory": "1Mi"}
        container = {"name": "c", "image": "example.com/app:v1", "resources": {"requests": asked}}
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels or {}}
        raw: Raw = {"metadata": metadata, "spec": {"containers": [container], **spec}}
        metadata["annotations"] = {"note": "x" * 2000} if name.startswith("large") else {}
        if on is not None:
            raw["spec"]["nodeName"] = f"n{on % self.nodes}"
        pod = self.pods[name] = _decode_pod(msgspec.json.encode(raw))
        self.core.handle(PodChanged(_NOW, PodUid(name), pod))

    def drop(self, name: str) -> None:
        """Take a pod away."""
        del self.pods[name]
        self.core.handle(PodChanged(_NOW, PodUid(name), None))

    def drop_all(self, prefix: str) -> None:
        """Take the pods of a cause away."""
        for name in [name for name in self.pods if name.startswith(prefix)]:
            self.drop(name)

    def decide(self, prefix: str, count: int, requests: Raw | None = None) -> None:
        """Let pods of others be decided on, and go."""
        for number in range(count):
            name = f"{prefix}-{number}"
            self.put(name, labels={"app": "w"}, requests=requests)
            self.core.handle(Schedule(_NOW, 1))
            self.drop(name)


# What comes, and how it goes again. `size` scales it.
Cause = Callable[[World, int, float], Iterator[None]]


def _names(count: int, first: int) -> Raw:
    return {f"example.com/odd-{number}": "1" for number in range(first, first + count)}


def names_on_pods(world: World, number: int, size: float) -> Iterator[None]:
    """40,000 resource names that only placed pods ask for."""
    for each in range(int(400 * size)):
        asked = _names(100, 40_000 * number + 100 * each)
        world.put(f"odd{each}", on=each, requests=asked)
    world.decide("meanwhile", 20)
    yield
    world.drop_all("odd")


def names_on_nodes(world: World, number: int, size: float) -> Iterator[None]:
    """40,000 resource names that nodes offer."""
    for each in range(int(400 * size)):
        world.put_node(each % world.nodes, _names(100, 40_000 * number + 100 * each))
    world.decide("meanwhile", 20)
    yield
    for each in range(int(400 * size)):
        world.put_node(each % world.nodes)


def terms(world: World, number: int, size: float) -> Iterator[None]:
    """8,000 small placed pods with a term of their own each."""
    for each in range(int(8000 * size)):
        picked = {"matchLabels": {f"k{number}": f"v{each}"}}
        term = {"topologyKey": HOST, "labelSelector": picked, "namespaceSelector": {}}
        world.put(f"term{each}", on=each, affinity={"podAntiAffinity": {REQUIRED: [term]}})
        if each % 400 == 0:
            world.decide("meanwhile", 2)
    yield
    world.drop_all("term")


def labels(world: World, number: int, size: float) -> Iterator[None]:
    """20,000 placed pods with large annotations and 20 labels that no other has."""
    for each in range(int(20_000 * size)):
        own = {f"l{key}": f"value-{number}-{each}-{key}" for key in range(20)}
        world.put(f"large{each}", on=each, labels=own)
        if each % 1000 == 0:
            world.decide("meanwhile", 2)
    yield
    world.drop_all("large")


def shapes(world: World, number: int, size: float) -> Iterator[None]:
    """2,000 shapes, of which evaluations are kept; then they are to become small."""
    for each in range(int(2000 * size)):
        world.decide("shape", 2, {"cpu": f"{1 + each + 2000 * (number % 3)}m"})
    yield
    for budget in (4 << 20, _BUDGET_BYTES):
        world.core.handle(LimitCaches(_NOW, budget))


def huge(world: World, number: int, size: float) -> Iterator[None]:
    """A pending pod at the size limit of the API."""
    many = {f"label-{number}-{each}": "v" * 40 for each in range(int(12_000 * size))}
    world.put("huge", labels=many, requests=_names(int(6000 * size), 6000 * number))
    world.core.handle(Schedule(_NOW, 1))
    world.decide("meanwhile", 5)
    yield
    world.drop_all("huge")


CAUSES: dict[str, Cause] = {
    cause.__name__: cause for cause in (names_on_pods, names_on_nodes, terms, labels, shapes, huge)
}


def resident() -> int:
    """Return how much memory the process has, without what can be given back."""
    gc.collect()
    memory = ProcessMemory()
    memory.give_back()
    return memory.resident()


def rounds(world: World, cause: Cause, count: int, size: float = 1.0) -> Iterator[tuple[int, int]]:
    """Yield, for each time that a cause comes and goes, the bytes with it and after it."""
    for number in range(count):
        course = cause(world, number, size)
        next(course)
        there = resident()
        next(course, None)
        world.decide("later", 5)
        yield there, resident()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory_returned")
    parser.add_argument("causes", nargs="*", choices=[*CAUSES, []], default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=1000)
    arguments = parser.parse_args()
    for name in arguments.causes or CAUSES:
        # A process of its own for each: what one leaves behind must not be the others' base.
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        world = World(arguments.nodes)
        base = resident()
        for there, after in rounds(world, CAUSES[name], arguments.rounds):
            figures = f"{base / 2**20:7.1f} {there / 2**20:7.1f} {after / 2**20:7.1f} MiB"
            sys.stdout.write(f"{name:16} {figures}  {after / base:.3f}\n")
            sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
