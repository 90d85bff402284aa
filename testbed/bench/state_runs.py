"""Clusters in a certain state, and schedulers that are started on them, in turn.

A state has variants, each what the one before it was and something more, all kept by one world.
Every scheduler gets every variant in every round, so that what disturbs the machine disturbs all.

Pods to place are there when a scheduler starts. Where a queue is to be full first, they come later:
the scheduler is stopped for as long as they are created, and finds all of them when it goes on.
"""

import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from testbed.bench.account import LogReader
from testbed.bench.arena import Progress, processes, running
from testbed.bench.contestants import Contestant
from testbed.bench.meter import Meter
from testbed.bench.report import OURS
from testbed.bench.runs import ContestantError, Run, StoodStillError, follow, median_of
from testbed.bench.world import World
from testbed.client import Object
from testbed.component import tail
from testbed.processes import ProcessId

_READY_SECONDS = 180.0
# Each look costs the process a TLS handshake.
_LOOK_SECONDS = 0.05
# An API server and an etcd that took 20,000 writes have something left to do, which whoever is
# timed right after would pay for.
_QUIET_SECONDS = 15.0
_SETTLE_SECONDS = 420.0
_CHUNK = 500
# What is written about a pod that fits nowhere.
TRIED = "patch pods/status"


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a state: `adds` comes on top of the variant before, group after group."""

    name: str
    adds: tuple[tuple[Object, ...], ...]
    # Pods that fit nowhere, all of which have been tried before others come.
    unschedulable: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """What is asked about, by variants; `late` are the pods to place, if they come later."""

    name: str
    variants: tuple[Variant, ...]
    # Names of the pods to place.
    pods: tuple[str, ...]
    late: tuple[Object, ...] = ()
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One scheduler on one variant, once."""

    # From the start of the process until it says that it is ready.
    ready_seconds: float
    run: Run


@dataclass(slots=True)
class Standing:
    """What one scheduler did with one variant."""

    state: str
    variant: str
    contestant: str
    turns: list[Turn] = field(default_factory=list)
    # What it did not bring to an end.
    failures: list[str] = field(default_factory=list)

    @property
    def ready_seconds(self) -> float:
        """The median."""
        return statistics.median(turn.ready_seconds for turn in self.turns)

    def median(self, name: str) -> float:
        """Return the median of one figure of the runs."""
        return median_of([turn.run for turn in self.turns], lambda run: float(getattr(run, name)))

    def cpu(self, process: str) -> float:
        """Return the median of a process' CPU per pod, in milliseconds."""
        runs = [turn.run for turn in self.turns]
        return median_of(runs, lambda run: run.cpu_ms_per_pod[process])

    @property
    def is_sound(self) -> bool:
        """Whether every pod was placed, and told of; others than this scheduler may give up."""
        placed = all(turn.run.bound == turn.run.pods == turn.run.told for turn in self.turns)
        return placed and not (self.failures and self.contestant == OURS)

    def as_json(self) -> dict[str, Any]:
        """Return all of it."""
        return {
            "state": self.state,
            "variant": self.variant,
            "scheduler": self.contestant,
            "pods_per_second": self.median("pods_per_second"),
            "peak_rss_mib": self.median("peak_rss_mib"),
            "ready_seconds": self.ready_seconds,
            "first_binding_seconds": self.median("first_binding_seconds"),
            "turns": [
                {"ready_seconds": turn.ready_seconds, **turn.run.as_json()} for turn in self.turns
            ],
        }


class Budget:
    """So much time and no more: a round is begun if one as long as the longest still fits in."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def rounds(self, wanted: int) -> Iterator[int]:
        """Yield the numbers of the rounds there is time for; the first is always one of them."""
        longest = 0.0
        for number in range(wanted):
            begin = self._clock()
            if number and begin + longest > self._end:
                return
            yield number
            longest = max(longest, self._clock() - begin)


class Stage:
    """A state in a world: every variant is there to be had again."""

    def __init__(self, state: State, world: World, progress: Progress) -> None:
        """Prepare it; the world is open and empty."""
        self._state = state
        self._world = world
        self._progress = progress

    def fill(self) -> None:
        """Create every variant on top of the one before, and keep each."""
        for number, variant in enumerate(self._state.variants):
            if number:
                self._world.restore(_key(number - 1))
            total, done = sum(map(len, variant.adds)), 0
            for group in variant.adds:
                for first in range(0, len(group), _CHUNK):
                    part = group[first : first + _CHUNK]
                    self._world.fill(part)
                    done += len(part)
                    self._progress(f"{self._state.name}: creating {variant.name}", done, total)
            self._world.snapshot(_key(number))

    def standings(self, contestants: Iterable[str]) -> list[Standing]:
        """Return one for everybody and every variant, to be filled in."""
        state = self._state
        return [
            Standing(state.name, variant.name, name)
            for variant in state.variants
            for name in contestants
        ]

    def compete(
        self,
        contestants: Mapping[str, Contestant],
        rounds: Iterable[int],
        standings: Iterable[Standing],
    ) -> None:
        """Let everybody have every variant, round after round, and put down what comes of it.

        It is put down as it comes: an error leaves what was measured before.
        """
        state = self._state
        found = {(standing.variant, standing.contestant): standing for standing in standings}
        for number in rounds:
            for place, variant in enumerate(state.variants):
                for name, contestant in contestants.items():
                    label = f"{state.name}: {variant.name}, {name}, round {number + 1}"
                    standing = found[variant.name, name]
                    try:
                        standing.turns.append(self._turn(place, contestant, label))
                    except ContestantError as error:
                        # That somebody can't do it is a result.
                        standing.failures.append(str(error))

    def _turn(self, place: int, contestant: Contestant, label: str) -> Turn:
        state, world = self._state, self._world
        world.restore(_key(place))
        reader = LogReader(world.audit_log)
        began = started = time.time()

        def pids() -> dict[str, int]:
            return processes(world, contestant)

        with running(contestant):
            # It binds as soon as it can, which may be before it says that it is ready.
            meter = Meter(reader, state.pods, pids)
            wait_ready(contestant, look=meter.has_begun)
            ready = time.time() - began
            if state.late:
                tried = state.variants[place].unschedulable
                settle(reader, tried, lambda done: self._progress(f"{label}: queue", done, tried))
                with paused(contestant):
                    world.fill(state.late)
                    # What it did with the queue is not asked about.
                    meter = Meter(reader, state.pods, pids)
                    meter.has_begun()
                    started = time.time()
            run = follow(
                reader,
                state.pods,
                pids,
                started=started,
                progress=lambda bound: self._progress(label, bound, len(state.pods)),
                meter=meter,
            )
        return Turn(ready_seconds=round(ready, 2), run=run)


def _key(number: int) -> str:
    return f"variant-{number}"


def wait_ready(
    contestant: Contestant,
    *,
    look: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until it says that it is ready, and `look` often; StoodStillError if it never does."""
    deadline = clock() + _READY_SECONDS
    while not contestant.is_ready():
        look()
        if contestant.pid is None:
            raise ContestantError(f"{contestant.name} has ended; {tail(contestant.log)}")
        if clock() > deadline:
            raise StoodStillError(
                f"{contestant.name} is not ready after {_READY_SECONDS:g} s; {tail(contestant.log)}"
            )
        sleep(_LOOK_SECONDS)


def settle(
    reader: LogReader,
    tried: int,
    progress: Callable[[int], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until so many pods were tried in vain and nothing more is written about them."""
    deadline = clock() + _SETTLE_SECONDS
    written, moved = -1, clock()
    while True:
        requests = reader.catch_up().requests
        done, now = requests.get(TRIED, 0), sum(requests.values())
        progress(min(done, tried))
        if now != written:
            written, moved = now, clock()
        elif done >= tried and clock() - moved > _QUIET_SECONDS:
            return
        if clock() > deadline:
            raise StoodStillError(
                f"the queue is not at rest after {_SETTLE_SECONDS:g} s: {done} of {tried} pods "
                "were told that they fit nowhere"
            )
        sleep(_LOOK_SECONDS)


@contextmanager
def paused(contestant: Contestant) -> Iterator[None]:
    """Stop a process as it is, and let it go on afterwards."""
    process = None if contestant.pid is None else ProcessId.of(contestant.pid)
    if process is None:
        raise ContestantError(f"{contestant.name} has ended; {tail(contestant.log)}")
    process.send(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send(signal.SIGCONT)
