"""One workload, all schedulers, in turn: each from the same restored cluster, as often as asked."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.bench.account import LogReader
from testbed.bench.contestants import Contestant, NullBinder, Ours, Upstream
from testbed.bench.quality import Quality, inspect
from testbed.bench.report import NULL, OURS, UPSTREAM, Latency, Outcome
from testbed.bench.runs import SCHEDULER, Run, StoodStillError, follow, latencies, percentile
from testbed.bench.scenarios import Counts, Scenario
from testbed.bench.world import World, collection_path
from testbed.client import Client, Object
from testbed.errors import ApiError, TestbedError
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD
from testbed.waiting import eventually

# Told what is being done, and how much of how much of it.
Progress = Callable[[str, int, int], None]

_STEADY_WAIT_SECONDS = 60.0
# What a run may have changed besides pods, by kind.
_LISTED = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
}


@dataclass(frozen=True, slots=True)
class Steady:
    """How pods arrive where their way to the Binding is timed."""

    rate: float
    seconds: float

    @property
    def pods(self) -> int:
        """How many come."""
        return int(self.rate * self.seconds)


class Arena:
    """The place where schedulers meet one workload."""

    def __init__(self, scenario: Scenario, counts: Counts, progress: Progress) -> None:
        self._scenario = scenario
        self._counts = counts
        self._progress = progress
        components = (CONTROLLER_MANAGER,) if scenario.needs_controllers else ()
        self.world = World(components=components)

    def compete(
        self, names: Sequence[str], *, repeats: int, steady: Steady | None
    ) -> list[Outcome]:
        """Let everybody run so many times, in turn; then pods arrive one by one, if asked for."""
        with self.world:
            self.fill()
            made: dict[str, Callable[[], Contestant]] = {
                OURS: lambda: Ours(self.world),
                UPSTREAM: lambda: Upstream(self.world),
                NULL: lambda: NullBinder(self.world),
            }
            contestants = {name: made[name]() for name in names}
            outcomes = {name: Outcome(self._scenario.name, name, self._counts) for name in names}
            for repeat in range(repeats):
                for name, contestant in contestants.items():
                    label = f"{self._scenario.name}: {name}, run {repeat + 1} of {repeats}"
                    is_last = repeat == repeats - 1
                    # Where pods are, and how long single ones take, is looked at once.
                    timed = steady if is_last and name != NULL else None
                    try:
                        self._once(contestant, outcomes[name], label, timed, is_last=is_last)
                    except StoodStillError as error:
                        if name == OURS:
                            raise
                        # That somebody else can't do it is a result.
                        outcomes[name].failures.append(str(error))
            return list(outcomes.values())

    def fill(self) -> None:
        """Create the cluster, once; it is down afterwards."""
        scenario, counts = self._scenario, self._counts
        kinds = (
            scenario.make_nodes(counts.nodes),
            scenario.make_objects(counts.nodes, counts.pods),
            scenario.make_init_pods(counts.init_pods, counts.nodes),
            scenario.background(counts.background),
            scenario.make_pods(counts.pods),
        )
        total = sum(map(len, kinds))
        done = 0
        for objects in kinds:
            for first in range(0, len(objects), 500):
                part = objects[first : first + 500]
                self.world.fill(part)
                done += len(part)
                self._progress(f"{scenario.name}: creating the cluster", done, total)
        self.world.snapshot()

    @property
    def pod_names(self) -> list[str]:
        """The pods that are to be placed."""
        return [pod["metadata"]["name"] for pod in self._scenario.make_pods(self._counts.pods)]

    # Throughput

    def _once(
        self,
        contestant: Contestant,
        outcome: Outcome,
        label: str,
        steady: Steady | None,
        *,
        is_last: bool,
    ) -> None:
        self.world.restore()
        pods = self.pod_names
        reader = LogReader(self.world.audit_log)
        started = time.time()
        contestant.start()
        try:
            with self._churning():
                run = follow(
                    reader,
                    pods,
                    lambda: self.pids(contestant),
                    started=started,
                    progress=lambda bound: self._progress(label, bound, len(pods)),
                )
            outcome.runs.append(run)
            if is_last:
                outcome.quality = self._quality(run)
            if steady is not None:
                outcome.latencies.append(self._steady(reader, steady, label))
        finally:
            contestant.stop()

    def pids(self, contestant: Contestant) -> dict[str, int]:
        """Return the processes that are measured; TestbedError if one has ended."""
        return processes(self.world, contestant)

    def _quality(self, run: Run) -> Quality:
        client = self.world.bed.client
        pods = client.list("/api/v1/namespaces/default/pods")
        nodes = client.list("/api/v1/nodes")
        placed = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
        order = [(name, placed[name]) for name in run.order if placed.get(name)]
        objects = {kind: client.list(path) for kind, path in _LISTED.items()}
        return inspect(self._scenario, nodes, pods, order, objects=objects)

    @contextmanager
    def _churning(self) -> Iterator[None]:
        """Let objects come and go, where the workload has that."""
        churn = self._scenario.churn
        if churn is None:
            yield
            return
        over = threading.Event()

        def work() -> None:
            tick = 0
            while not over.wait(churn.interval_seconds):
                step = churn.at(tick, nodes=self._counts.nodes)
                for item in step.create:
                    self.world.fill([item])
                for item in step.delete:
                    _delete(self.world.bed.client, item)
                tick += 1

        thread = threading.Thread(target=work, name="churn", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    # Latency

    def _steady(self, reader: LogReader, steady: Steady, label: str) -> Latency:
        """Let pods arrive one by one where the backlog has been placed."""
        arriving = [
            self._scenario.measured(f"steady-{number}", number) for number in range(steady.pods)
        ]
        names = [pod["metadata"]["name"] for pod in arriving]
        begin = time.monotonic()
        for number, pod in enumerate(arriving):
            time.sleep(max(0.0, begin + number / steady.rate - time.monotonic()))
            self.world.bed.client.create(collection_path(pod), pod)
            self._progress(f"{label}: steady arrival", number + 1, steady.pods)
        try:
            eventually(
                lambda: all(name in reader.catch_up().bound for name in names),
                _STEADY_WAIT_SECONDS,
                "every pod that arrived is bound",
            )
        except AssertionError as error:
            raise TestbedError(f"{label}: steady arrival: {error}") from error
        found = latencies(reader.account, names)
        return Latency(
            rate=steady.rate,
            pods=len(found),
            p50_ms=round(percentile(found, 0.5) * 1000, 1),
            p99_ms=round(percentile(found, 0.99) * 1000, 1),
        )


@contextmanager
def filled(scenario: Scenario, counts: Counts, progress: Progress) -> Iterator[Arena]:
    """Have a cluster for a workload, ready to be restored."""
    arena = Arena(scenario, counts, progress)
    with arena.world:
        arena.fill()
        yield arena


def processes(world: World, contestant: Contestant) -> dict[str, int]:
    """Return the processes that are measured, by name; TestbedError if one has ended."""
    found = {
        SCHEDULER: contestant.pid,
        "api": world.bed.pid(API_SERVER),
        "etcd": world.bed.pid(ETCD),
    }
    if missing := [name for name, pid in found.items() if pid is None]:
        raise TestbedError(f"{', '.join(missing)} has ended; {contestant.log} may say why")
    return {name: pid for name, pid in found.items() if pid is not None}


def _delete(client: Client, item: Object) -> None:
    try:
        client.delete(f"{collection_path(item)}/{item['metadata']['name']}")
    except ApiError as error:
        if error.status != 404:
            raise
