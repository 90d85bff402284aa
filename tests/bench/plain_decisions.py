"""How much CPU a decision takes from scratch, with every plugin of the default configuration.

    python -m tests.bench.plain_decisions [--nodes 5000] [--pods 10000] [--workload NAME] [--keep]

With `--keep`, evaluations are kept as the daemon keeps them.

A decision is what the daemon does for a pod: pop it, judge all nodes, score, pick and assume; for
`churn` the message that a pod is gone is part of it. `raw` is the 10th percentile, the median and
the mean in microseconds of process time; `norm` is the median on a machine that runs the
calibration loop in 4.85 ms.
"""

import argparse
import cProfile
import gc
import pstats
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import NodeChanged, ObjectChanged, PodChanged, Schedule
from k8s_scheduler.core.messages.outgoing import Bind, Instruction
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.bench.workloads import WORKLOADS, Workload, make_node, make_object, make_pod

CALIBRATED_MILLISECONDS = 4.85
ROOMY = 110
_CHUNK = 50


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its cost, and whether the pod got a node."""

    microseconds: float
    placed: bool


class Bench:
    """A scheduler with a cluster, and pods in the queue one at a time."""

    def __init__(self, workload: Workload, *, nodes: int, pods: int, keeps: bool = False) -> None:
        self._workload = workload
        profiles = default_configuration(known_plugins()).profiles
        self._core = Scheduler(Setup(profiles=profiles, keeps_evaluations=keeps))
        self._now = 1000.0
        self._gone = 0
        self._come = 0
        self._in_place = pods
        self._fill(nodes, pods)

    def _fill(self, nodes: int, pods: int) -> None:
        on_node = [0] * nodes
        placed = []
        for number in range(pods):
            node = self._workload.node_of(number, nodes)
            on_node[node] += 1
            raw = self._workload.in_place(number)
            placed.append(make_pod(raw, f"placed-{number}", node=f"node-{node}"))
        for number, count in enumerate(on_node):
            node = make_node(number, pods=count if self._workload.full else ROOMY)
            self._core.handle(NodeChanged(self._now, NodeName(node.metadata.name), node))
        for kind, raw in self._workload.objects:
            found = make_object(kind, raw)
            told = ObjectChanged(self._now, kind, "default", found.metadata.name, found)
            self._core.handle(told)
        for pod in placed:
            self._core.handle(PodChanged(self._now, PodUid(pod.metadata.uid), pod))

    def decide(self) -> Decision:
        """Let one more pod come, and decide on it."""
        name = f"come-{self._come}"
        pod = make_pod(self._workload.come(self._come), name)
        self._come += 1
        self._now += 0.001
        self._core.handle(PodChanged(self._now, PodUid(name), pod))
        start = time.process_time_ns()
        if self._workload.deletes and self._gone < self._in_place:
            self._core.handle(PodChanged(self._now, PodUid(f"placed-{self._gone}"), None))
            self._gone += 1
        out: list[Instruction] = self._core.handle(Schedule(self._now, 1))
        microseconds = (time.process_time_ns() - start) / 1000
        return Decision(microseconds, any(isinstance(each, Bind) for each in out))


def calibration_milliseconds() -> float:
    """Return how long this core takes for a fixed piece of work just now: the best of five."""

    def once() -> float:
        start = time.process_time()
        total = 0
        for number in range(100_000):
            total += number * 3 & 7
        return (time.process_time() - start) * 1000

    return min(once() for _ in range(5))


def measured(bench: Bench, decisions: int) -> Iterator[tuple[Decision, float]]:
    """Yield decisions, each with how fast the core was around it (1.0 is as calibrated)."""
    before = calibration_milliseconds()
    for start in range(0, decisions, _CHUNK):
        chunk = [bench.decide() for _ in range(min(_CHUNK, decisions - start))]
        after = calibration_milliseconds()
        speed = CALIBRATED_MILLISECONDS / ((before + after) / 2)
        before = after
        yield from ((decision, speed) for decision in chunk)


def line(
    name: str, *, nodes: int, pods: int, decisions: int, profile: int, keeps: bool = False
) -> str:
    """Measure one workload; returns its line of the table."""
    bench = Bench(WORKLOADS[name], nodes=nodes, pods=pods, keeps=keeps)
    # As the daemon does once it knows the cluster.
    gc.collect()
    gc.freeze()
    for _ in range(5):
        bench.decide()
    found = list(measured(bench, decisions))
    raw = sorted(decision.microseconds for decision, _ in found)
    norm = statistics.median(decision.microseconds * speed for decision, speed in found)
    placed = sum(decision.placed for decision, _ in found)
    if profile:
        _show_profile(bench, profile)
    gc.unfreeze()
    return (
        f"{name:12} {raw[len(raw) // 10]:8.0f} {statistics.median(raw):8.0f} "
        f"{statistics.fmean(raw):8.0f} {norm:8.0f} {placed:6}/{len(found)}"
    )


def _show_profile(bench: Bench, top: int) -> None:
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    for _ in range(100):
        bench.decide()
    profiler.disable()
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(top)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plain_decisions")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000, help="in place before")
    parser.add_argument("--decisions", type=int, default=200, help="for each workload")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    parser.add_argument("--profile", type=int, default=0, help="show the top functions, so many")
    parser.add_argument("--keep", action="store_true", help="keep evaluations")
    arguments = parser.parse_args()
    out = sys.stdout
    out.write(
        f"{arguments.nodes} nodes, {arguments.pods} pods in place; microseconds per decision\n"
        f"{'workload':12} {'p10':>8} {'median':>8} {'mean':>8} {'norm':>8} {'placed':>6}\n"
    )
    for name in arguments.workload or WORKLOADS:
        found = line(
            name,
            nodes=arguments.nodes,
            pods=arguments.pods,
            decisions=arguments.decisions,
            profile=arguments.profile,
            keeps=arguments.keep,
        )
        out.write(found + "\n")
        out.flush()


if __name__ == "__main__":
    main()
