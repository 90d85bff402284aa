"""How much memory the core's state takes: nodes, pods on them, and evaluations that are kept.

    python -m tests.bench.core_memory [--nodes 15000] [--pods 100000] [--shapes 100]

Measured is what the process grows by, which is more than the columns alone.
"""

import argparse
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.bench.core_workloads import ROOMY, make_shape
from tests.bench.workloads import Raw, make_node, make_pod
from tests.inside import inside

_PAGE = 4096
_NOW = 1000.0
# A shape is kept from its second pod on.
_ROUNDS = 3


def resident_bytes() -> int:
    """Return how much memory the process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def make_sized(shape: int) -> Raw:
    """Return a pod of a shape; no two of them are of one size, so they share nothing."""
    pod = make_shape(shape)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{100 + shape}m"
    return pod


def growth(*, nodes: int, pods: int, shapes: int) -> Iterator[tuple[str, int]]:
    """Yield what was added, and by how many bytes the process grew."""
    core = Scheduler(Setup(profiles=default_configuration(known_plugins()).profiles))
    before = resident_bytes()
    for number in range(nodes):
        node = make_node(number, pods=ROOMY)
        core.handle(NodeChanged(_NOW, NodeName(node.metadata.name), node))
    after = resident_bytes()
    yield f"{nodes} nodes", after - before
    for number in range(pods):
        name = f"placed-{number}"
        pod = make_pod(make_sized(number % shapes), name, node=f"node-{number % nodes}")
        core.handle(PodChanged(_NOW, PodUid(name), pod))
    before, after = after, resident_bytes()
    yield f"{pods} pods", after - before
    profile = next(iter(inside(core).profiles.values()))
    for number in range(_ROUNDS * shapes):
        raw = make_sized(number % shapes)
        queued = QueuedPod(make_pod(raw, f"come-{number}"), timestamp=_NOW)
        inside(core).cycle.decide(profile, queued)
    before, after = after, resident_bytes()
    yield f"{len(core._shapes)} shapes", after - before


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.core_memory")
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=100)
    arguments = parser.parse_args()
    total = 0
    for what, grown in growth(nodes=arguments.nodes, pods=arguments.pods, shapes=arguments.shapes):
        total += grown
        sys.stdout.write(f"{what:16} {grown / 1e6:8.1f} MB\n")
    sys.stdout.write(f"{'in all':16} {total / 1e6:8.1f} MB\n")


if __name__ == "__main__":
    main()
