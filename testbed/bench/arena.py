"""One workload, all schedulers, in turn: each from the same restored cluster, as often as asked."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from testbed.bench.account import LogReader
from testbed.bench.churning import churning
from testbed.bench.contestants import Contestant, NullBinder, Ours, Recorded, Upstream
from testbed.bench.meter import SCHEDULER
from testbed.bench.quality import SAMPLE, inspect, placements
from testbed.bench.report import NULL, OURS, RECORDED, UPSTREAM, Outcome
from testbed.bench.runs import ContestantError, Run, follow
from testbed.bench.scenarios import Counts, Scenario
from testbed.bench.steady import arrive
from testbed.bench.world import World, collection_path
from testbed.client import Object
from testbed.component import tail
from testbed.errors import ComponentError, TestbedError
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD

_CONTROLLERS = "--controllers=*,-garbage-collector-controller,-job-controller"

# Told what is being done, and how much of how much of it.
Progress = Callable[[str, int, int], None]

# What a run may have changed besides pods, by kind.
_LISTED = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
}
_MAKERS: dict[str, Callable[[World], Contestant]] = {
    OURS: Ours,
    UPSTREAM: Upstream,
    NULL: NullBinder,
    RECORDED: Recorded,
}


@dataclass(frozen=True, slots=True)
class _Listed:
    """The cluster just after a backlog was placed."""

    nodes: list[Object]
    pods: list[Object]
    objects: dict[str, list[Object]]


class Arena:
    """The place where schedulers meet one workload."""

    def __init__(self, scenario: Scenario, counts: Counts, progress: Progress) -> None:
        self._scenario = scenario
        self._counts = counts
        self._progress = progress
        components = (CONTROLLER_MANAGER,) if scenario.needs_controllers else ()
        self.world = World(
            components=components,
            # The Job that owns the pods is not there: its controller and the garbage collector
            # would delete them.
            extra_flags={CONTROLLER_MANAGER: [_CONTROLLERS]} if components else {},
        )
        # A placement that is being looked at, while the cluster is restored for the next run.
        self._inspectors = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inspect")
        self._looking: Future[None] | None = None

    def compete(self, outcomes: Sequence[Outcome], *, repeats: int, rate: float) -> None:
        """Let everybody run so many times, in turn, and put down what came of it.

        It is put down as it comes: an error leaves what was measured before.
        """
        with self.world, self._inspectors:
            self.fill()
            contestants = [self._contestant(outcome) for outcome in outcomes]
            # So many placements are looked at that fewer pods of each have to be judged.
            sample = max(1, SAMPLE // repeats)
            for repeat in range(repeats):
                for contestant, outcome in zip(contestants, outcomes, strict=True):
                    name = f"{self._scenario.name}: {outcome.contestant}"
                    label = f"{name}, run {repeat + 1} of {repeats}"
                    self._once(contestant, outcome, label, rate=rate, sample=sample)
            self._look_to_the_end()

    def _contestant(self, outcome: Outcome) -> Contestant:
        if outcome.batch is not None:
            return Ours(self.world, batch=outcome.batch)
        return _MAKERS[outcome.contestant](self.world)

    def fill(self) -> None:
        """Create the cluster, once; it is down afterwards."""
        scenario, counts = self._scenario, self._counts
        kinds = (
            scenario.make_nodes(counts.nodes),
            scenario.make_objects(counts.nodes, counts.pods + counts.arriving),
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

    def churning(self) -> AbstractContextManager[None]:
        """Let objects come and go meanwhile, where the workload has that."""
        return churning(self._scenario.churn, self.world, nodes=self._counts.nodes)

    def _once(
        self, contestant: Contestant, outcome: Outcome, label: str, *, rate: float, sample: int
    ) -> None:
        self.world.restore()
        # Nobody is timed while something else works.
        self._look_to_the_end()
        pods = self.pod_names
        reader = LogReader(self.world.audit_log)
        started = time.time()
        listed = None
        try:
            with running(contestant), self.churning():
                run = follow(
                    reader,
                    pods,
                    lambda: self.pids(contestant),
                    started=started,
                    progress=lambda bound: self._progress(label, bound, len(pods)),
                )
                outcome.runs.append(run)
                if isinstance(contestant, Ours):
                    outcome.kept.append(contestant.kept_share())
                # As it is now, before anybody else comes; it is looked at when nobody is timed.
                listed = self._list()
                if self._counts.arriving and outcome.contestant != NULL:
                    self._steady(contestant, outcome, reader, label, rate)
        except ContestantError as error:
            # That somebody can't do it is a result; other runs count all the same.
            outcome.failures.append(str(error))
        if listed is not None:
            if isinstance(contestant, Recorded):
                measured = frozenset(pods)
                decided = tuple(name for name in contestant.decided() if name in measured)
                run = replace(run, order=decided)
            self._looking = self._inspectors.submit(self._look, outcome, run, listed, sample)

    def pids(self, contestant: Contestant) -> dict[str, int]:
        """Return the processes that are measured; TestbedError if one has ended."""
        return processes(self.world, contestant)

    def _list(self) -> _Listed:
        client = self.world.bed.client
        return _Listed(
            nodes=client.list("/api/v1/nodes"),
            pods=client.list("/api/v1/namespaces/default/pods"),
            objects={kind: client.list(path) for kind, path in _LISTED.items()},
        )

    def _look(self, outcome: Outcome, run: Run, listed: _Listed, sample: int) -> None:
        """Look at where the pods are."""
        order = placements(run.order, listed.pods, may_be_gone=self._scenario.evicts)
        outcome.qualities.append(
            inspect(
                self._scenario,
                listed.nodes,
                listed.pods,
                order,
                objects=listed.objects,
                sample=sample,
            )
        )

    def _look_to_the_end(self) -> None:
        """Wait until the last placement was looked at; raises what went wrong there."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.result()

    def _steady(
        self,
        contestant: Contestant,
        outcome: Outcome,
        reader: LogReader,
        label: str,
        rate: float,
    ) -> None:
        """Let pods arrive one by one where the backlog has been placed."""
        arriving = self._scenario.make_arriving(self._counts)
        found = arrive(
            arriving,
            rate,
            lambda pod: self.world.bed.client.create(collection_path(pod), pod),
            reader,
            check=lambda: self.pids(contestant),
            progress=lambda n: self._progress(f"{label}: steady arrival", n, len(arriving)),
        )
        outcome.latencies.append(found)


@contextmanager
def filled(scenario: Scenario, counts: Counts, progress: Progress) -> Iterator[Arena]:
    """Have a cluster for a workload, ready to be restored."""
    arena = Arena(scenario, counts, progress)
    with arena.world:
        arena.fill()
        yield arena


@contextmanager
def running(contestant: Contestant) -> Iterator[None]:
    """Have a contestant run; ContestantError if it ends badly though it was done."""
    contestant.start()
    has_given_up = False
    try:
        yield
    except ContestantError:
        has_given_up = True
        raise
    finally:
        try:
            contestant.stop()
        except ComponentError as error:
            if contestant.pid is not None:
                raise
            # Who is stopped in the middle of its work may say so.
            if not has_given_up:
                raise ContestantError(str(error)) from error


def processes(world: World, contestant: Contestant) -> dict[str, int]:
    """Return the processes that are measured, by name; TestbedError if one has ended."""
    if (pid := contestant.pid) is None:
        raise ContestantError(f"{contestant.name} has ended; {tail(contestant.log)}")
    found = {SCHEDULER: pid}
    for name, component in (("api", API_SERVER), ("etcd", ETCD)):
        if (pid := world.bed.pid(component)) is None:
            raise TestbedError(f"{component} has ended; {tail(world.bed.log(component))}")
        found[name] = pid
    return found
