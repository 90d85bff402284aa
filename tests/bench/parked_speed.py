"""What one node update costs while many pods wait that it might help, and does not.

    python -m tests.bench.parked_speed [--nodes 5000] [--parked 5000]

The pods are replicas of one owner, as a real cluster has them, and fit nowhere. Judged are rows
that changed, once for each group of pods that plugins can't tell apart.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged, Schedule
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.as_made import as_made
from tests.bench.plain_decisions import CALIBRATED_MILLISECONDS, calibration_milliseconds
from tests.bench.workloads import HOST, Raw, make_node, make_pod, owned, plain, related
from tests.inside import inside

PARKED = 5000
_BATCH = 500
_UPDATES = 30
# As many pods as a node takes, but the nodes have no cpu to spare for any of these.
_MUCH = "64"


def _large(pod: Raw) -> Raw:
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = _MUCH
    return pod


def _of_deployment(_number: int) -> Raw:
    return _large(owned("web"))


def _of_set(number: int) -> Raw:
    pod = _large(related("db", side="podAntiAffinity", key=HOST))
    pod["metadata"]["labels"] |= {
        "statefulset.kubernetes.io/pod-name": f"db-{number}",
        "apps.kubernetes.io/pod-index": str(number),
    }
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db"}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return pod


def _of_job(number: int) -> Raw:
    pod = _large(plain("work"))
    pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(number)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "work"}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return pod


# Pods of one owner each; of a CronJob each pod has a Job of its own.
OWNERS: dict[str, Callable[[int], Raw]] = {
    "deployment": _of_deployment,
    "statefulset": _of_set,
    "indexed job": _of_job,
    "cron job": lambda _: _large(plain("cron")),
}


class Waiting:
    """A cluster in which pods of one owner wait."""

    def __init__(self, owner: str, *, nodes: int, parked: int) -> None:
        self.core = Scheduler(Setup(profiles=default_configuration(known_plugins()).profiles))
        self._now = 1000.0
        self._updates = 0
        for number in range(nodes):
            node = make_node(number, pods=110)
            self.core.handle(NodeChanged(self._now, NodeName(node.metadata.name), node))
        for number in range(parked):
            name = f"waiting-{number}"
            pod = make_pod(as_made(OWNERS[owner](number), name, number), name)
            self.core.handle(PodChanged(self._now, PodUid(name), pod))
        while self.core.has_work:
            self.core.handle(Schedule(self._now, _BATCH))
        if len(inside(self.core).queue.parked) != parked:
            raise AssertionError("the pods were to be parked, all of them")

    def update(self) -> None:
        """Let a node offer more, but not enough, and those who wait be looked at."""
        self._updates += 1
        self._now += 1.0
        node = make_node(self._updates % 2, pods=110 + self._updates)
        self.core.handle(NodeChanged(self._now, NodeName(node.metadata.name), node))
        while self.core.has_work:
            self.core.handle(Schedule(self._now, _BATCH))


def milliseconds(waiting: Waiting) -> float:
    """Return what an update costs, scaled to the machine that `core_speed` speaks of."""
    waiting.update()
    gc.collect()
    found = []
    for _ in range(_UPDATES):
        before = calibration_milliseconds()
        start = time.process_time_ns()
        waiting.update()
        spent = (time.process_time_ns() - start) / 1_000_000
        found.append(spent * CALIBRATED_MILLISECONDS / before)
    return statistics.median(found)


def parked_lines(nodes: int, parked: int = PARKED) -> Iterator[str]:
    """Yield a line for each owner."""
    for owner in OWNERS:
        waiting = Waiting(owner, nodes=nodes, parked=parked)
        spent = milliseconds(waiting)
        groups = len(inside(waiting.core).queue.parked.groups())
        yield (
            f"{parked} parked of one {owner}, {nodes} nodes: {groups} group(s), "
            f"one node update {spent:.2f} ms"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.parked_speed")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--parked", type=int, default=PARKED)
    arguments = parser.parse_args()
    for line in parked_lines(arguments.nodes, arguments.parked):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
