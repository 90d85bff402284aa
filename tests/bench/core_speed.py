"""How much CPU a decision takes in the core, from evaluations that are kept and from scratch.

    python -m tests.bench.core_speed [--nodes 5000 15000] [--pods 10000] [--out FILE]

A decision is: look at all nodes, choose, and assume the pod there; for `churn` also that another
pod is gone, for `full` the message and the preemption that finds no victim, for `localpv` all that
is done until the pod's claim is bound. `arrive` is what a pod costs before: finding out its shape
and what it asks for. Reading the pod and the queue are not part of either.

Pods are as a real cluster has them, with tokens, owners and default tolerations. Beside them come
pods without all that, and `ratio` is how much more the real ones take, from arrival to decision.

Clusters of all sizes take turns in chunks, each between two runs of a calibration loop, so that a
noisy machine is noisy for all of them: microseconds are scaled to a machine that runs the loop in
4.85 ms, by the slower of the two runs, and the median over the chunks counts. A sample of the
decisions is made again from scratch and has to come out the same. One workload comes after the
other: a scheduler has one cluster to look after, and the processor's caches to itself.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import REMEMBERED
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.decision.cycle import Cycle, NoNode, Placement
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.messages.incoming import NodeChanged, ObjectChanged, PodChanged
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.bench.core_workloads import CORE_WORKLOADS
from tests.bench.late_binding import LateBinding
from tests.bench.parked_speed import parked_lines
from tests.bench.plain_decisions import CALIBRATED_MILLISECONDS, calibration_milliseconds
from tests.bench.workloads import make_node, make_object, make_pod
from tests.inside import inside

CHUNK = 250
# Every so many decisions one is made again from scratch, and timed.
SAMPLED = 125


class Course:
    """One workload on a cluster of one size."""

    def __init__(self, name: str, nodes: int, pods: int, *, bare: bool = False) -> None:
        self.name = name
        self.bare = bare
        self.workload = CORE_WORKLOADS[name]
        self.nodes = nodes
        self.pods = self.workload.limit(nodes, pods)
        self.microseconds: list[float] = []
        self.arrival_microseconds: list[float] = []
        self.plain_microseconds: list[float] = []
        self.placed = 0
        self.come = 0
        self._core = Scheduler(Setup(profiles=default_configuration(known_plugins()).profiles))
        self._now = 1000.0
        parts = inside(self._core)
        self._profile = next(iter(parts.profiles.values()))
        # Taken once: looking them up is no part of a decision.
        self._cache, self._cycle, self._shapes = parts.cache, parts.cycle, parts.shapes
        self._post_filter, self._out = parts.post_filter, parts.out
        # The same state without anything kept: for what is decided again from scratch.
        verdicts = VerdictTable()
        runtime = Runtime(self._cache, verdicts)
        self._plain = Cycle(self._cache, runtime, verdicts)
        self._gone = 0
        self._late = LateBinding(self._core, nodes=nodes, claims=self.pods)
        self._fill()

    def _fill(self) -> None:
        for number in range(self.nodes):
            node = make_node(number, pods=self.workload.room)
            self._core.handle(NodeChanged(self._now, NodeName(node.metadata.name), node))
        for kind, raw in self.workload.objects:
            found = make_object(kind, raw)
            name = found.metadata.name
            self._core.handle(ObjectChanged(self._now, kind, "default", name, found))
        if self.workload.claims:
            self._late.fill(self._now)
        for number in range(self.workload.in_place * self.nodes):
            name = f"placed-{number}"
            made = self.workload.pod(number, name, bare=self.bare)
            pod = make_pod(made, name, node=f"node-{number % self.nodes}")
            self._core.handle(PodChanged(self._now, PodUid(name), pod))

    @property
    def is_over(self) -> bool:
        """Whether all its pods have come."""
        return self.come >= self.pods

    def chunk(self) -> float:
        """Decide on some pods; return the mean time in microseconds."""
        pods = self.make(CHUNK)
        # What another course has found out is no help to this one.
        REMEMBERED.clear()
        start = time.process_time_ns()
        made = self.arrive(pods)
        spent = time.process_time_ns() - start
        self.arrival_microseconds.append(spent / 1000 / len(made))
        return self.decide(made)

    def make(self, count: int) -> list[Pod]:
        """Return the next pods, at most so many, as they are read."""
        numbers = range(self.come, min(self.come + count, self.pods))
        self.come += len(numbers)
        return [self._pod(number) for number in numbers]

    def arrive(self, pods: list[Pod]) -> list[QueuedPod]:
        """Let pods wait for their decision."""
        arrived = [QueuedPod(pod, timestamp=self._now) for pod in pods]
        for queued in arrived:
            queued.attempts = 1
            # Read when it came, not when it is its turn.
            queued.view.requests  # noqa: B018
        return arrived

    def decide(self, made: list[QueuedPod]) -> float:
        """Decide on pods; return the mean time in microseconds."""
        spent = 0
        for number, queued in enumerate(made):
            if self.workload.deletes:
                spent += self._let_go()
            row = self._again(queued) if number % SAMPLED == SAMPLED - 1 else None
            start = time.process_time_ns()
            found = self._cycle.decide(self._profile, queued)
            if isinstance(found, NoNode):
                found.diagnosis.message()
                self._post_filter.begin_message()
                self._post_filter.make(self._profile, queued, found, now=0.0)
                self._out.drain()
            elif not self.workload.claims:
                self._cache.assume(queued.pod, found.row, queued.view.requests)
                self._cache.announce(queued.uid)
            spent += time.process_time_ns() - start
            if self.workload.claims and isinstance(found, Placement):
                spent += self._late.set_out(queued, found, now=self._now)
            placed = isinstance(found, Placement)
            self.placed += placed
            if number % SAMPLED == SAMPLED - 1 and row != (found.row if placed else None):
                sys.exit(f"{self.name}: decided {found} where {row} is right")
        return spent / 1000 / len(made)

    def _pod(self, number: int) -> Pod:
        name = f"come-{number}"
        number = number % self.nodes if self.workload.per_node else number
        return make_pod(self.workload.pod(number, name, bare=self.bare), name)

    def _let_go(self) -> int:
        """Let a pod be gone that was there before, on some node; return how long that takes."""
        there = self.workload.in_place * self.nodes
        # A prime: each of them once, all over the place.
        uid = PodUid(f"placed-{self._gone * 7919 % there}")
        self._gone += 1
        start = time.process_time_ns()
        self._cache.remove_pod(uid)
        return time.process_time_ns() - start

    def _again(self, queued: QueuedPod) -> int | None:
        start = time.process_time_ns()
        found = self._plain.decide(self._profile, queued)
        self.plain_microseconds.append((time.process_time_ns() - start) / 1000)
        return found.row if isinstance(found, Placement) else None

    def result(self) -> dict[str, Any]:
        """Return the line for the file."""
        tally = self._shapes.tally
        return {
            "workload": self.name,
            "nodes": self.nodes,
            "us_per_decision": round(statistics.median(self.microseconds), 1),
            "us_to_arrive": round(statistics.median(self.arrival_microseconds), 1),
            "plain_us_per_decision": round(statistics.median(self.plain_microseconds), 1),
            "hit_share": round(tally.answered / max(1, self.come), 3),
            "placed": self.placed,
            "shapes": len(self._shapes),
            "bytes_per_shape": self._shapes.nbytes // max(1, len(self._shapes)),
        }


def run(courses: list[Course]) -> None:
    """Let all courses take turns until all are over."""
    gc.collect()
    gc.freeze()
    before = calibration_milliseconds()
    while not all(course.is_over for course in courses):
        for course in courses:
            if course.is_over:
                continue
            sampled = len(course.plain_microseconds)
            mean = course.chunk()
            after = calibration_milliseconds()
            speed = CALIBRATED_MILLISECONDS / max(before, after)
            before = after
            course.microseconds.append(mean * speed)
            course.arrival_microseconds[-1] *= speed
            scaled = course.plain_microseconds
            scaled[sampled:] = [value * speed for value in scaled[sampled:]]
    gc.unfreeze()


def compared(real: Course, bare: Course) -> dict[str, Any]:
    """Return the line of real pods, with what bare ones take."""
    found, beside = real.result(), bare.result()
    keys = ("us_per_decision", "us_to_arrive")
    ratio = sum(found[key] for key in keys) / sum(beside[key] for key in keys)
    return found | {"bare_us_per_decision": beside[keys[0]], "ratio_to_bare": round(ratio, 3)}


def lines(results: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table."""
    yield (
        f"{'workload':12} {'nodes':>6} {'us':>8} {'arrive':>7} {'bare us':>8} {'ratio':>6} "
        f"{'plain us':>9} {'hits':>6} {'placed':>7}"
    )
    for result in results:
        yield (
            f"{result['workload']:12} {result['nodes']:6} {result['us_per_decision']:8.1f} "
            f"{result['us_to_arrive']:7.1f} {result['bare_us_per_decision']:8.1f} "
            f"{result['ratio_to_bare']:6.2f} "
            f"{result['plain_us_per_decision']:9.1f} {result['hit_share']:6.1%} "
            f"{result['placed']:7}"
        )


def main() -> None:
    """Measure, print the table, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.core_speed")
    parser.add_argument("--nodes", type=int, nargs="+", default=[5000, 15_000])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--workload", action="append", choices=list(CORE_WORKLOADS))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    for name in arguments.workload or CORE_WORKLOADS:
        pairs = [
            (Course(name, nodes, arguments.pods), Course(name, nodes, arguments.pods, bare=True))
            for nodes in arguments.nodes
        ]
        run([course for pair in pairs for course in pair])
        results += [compared(*pair) for pair in pairs]
    results.sort(key=lambda result: result["nodes"])
    sys.stdout.write("\n".join(lines(results)) + "\n")
    if not arguments.workload:
        for nodes in arguments.nodes:
            sys.stdout.write("\n".join(parked_lines(nodes)) + "\n")
            # Here, because these use this module.
            from tests.bench.promised_speed import promised_lines  # noqa: PLC0415

            sys.stdout.write("\n".join(promised_lines(nodes)) + "\n")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
