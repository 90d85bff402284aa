"""One run: a scheduler starts on a restored world and places what waits there.

The clock starts with the first Binding and stops when every Binding and every event is written, by
the API server's account. CPU is what the processes used in between.
"""

import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from testbed.bench.account import Account, LogReader
from testbed.daemon import Usage, usage_of
from testbed.errors import TestbedError

_LOOK_SECONDS = 0.1
_FIRST_LOOK_SECONDS = 0.02
# Nothing was written for so long: it will not go on.
_STILL_SECONDS = 60.0

SCHEDULER = "scheduler"


class StoodStillError(TestbedError):
    """A scheduler that places nothing any more, though pods are left."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one scheduler did with one world."""

    pods: int
    bound: int
    told: int
    # From the start of the process to the first Binding.
    first_binding_seconds: float
    # From the first Binding to the last Binding or event.
    seconds: float
    pods_per_second: float
    # Bindings per second between a tenth and nine tenths of them.
    middle_pods_per_second: float
    # By process: milliseconds per pod from the first Binding on.
    cpu_ms_per_pod: dict[str, float]
    # Of the scheduler, start included.
    start_cpu_seconds: float
    peak_rss_mib: float
    refused_bindings: int
    requests: dict[str, int] = field(default_factory=dict)
    # Pods in the order in which they were bound.
    order: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return all of it but the order, which is as long as there are pods."""
        found = asdict(self)
        del found["order"]
        return found


class Stopwatch:
    """What some processes have used since it was set."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._start = self._usage()

    def _usage(self) -> dict[str, Usage]:
        return {name: usage_of(pid) for name, pid in self._pids.items()}

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU that each has used."""
        now = self._usage()
        return {name: now[name].cpu_seconds - self._start[name].cpu_seconds for name in now}


def follow(
    reader: LogReader,
    pods: Collection[str],
    pids: Callable[[], dict[str, int]],
    *,
    started: float,
    progress: Callable[[int], None] = lambda _: None,
) -> Run:
    """Watch a scheduler that was started place all these pods; StoodStillError if it does not."""
    wanted = frozenset(pods)
    _wait(
        reader,
        lambda a: any(p in a.bound for p in wanted),
        _FIRST_LOOK_SECONDS,
        progress,
        moves=lambda a: sum(a.requests.values()),
    )
    known = pids()
    watch = Stopwatch(known)
    before = _count(reader.account.bound, wanted)
    start_cpu = usage_of(known[SCHEDULER]).cpu_seconds
    _wait(
        reader,
        lambda a: _count(a.told, wanted) == len(wanted),
        _LOOK_SECONDS,
        progress,
        # Whatever else is written: where pods come and go all the time, something always is.
        moves=lambda a: _count(a.bound, wanted) + _count(a.told, wanted),
        # Events are written without a promise: who loses some is not waited for.
        will_do=lambda a: _count(a.bound, wanted) == len(wanted),
    )
    cpu = watch.cpu_seconds()
    peak = usage_of(known[SCHEDULER]).peak_rss_bytes
    account = reader.catch_up()
    bound = {pod: when for pod, when in account.bound.items() if pod in wanted}
    told = [when for pod, when in account.told.items() if pod in wanted]
    first, last = min(bound.values()), max((*bound.values(), *told))
    placed = max(1, len(bound) - before)
    return Run(
        pods=len(wanted),
        bound=len(bound),
        told=len(told),
        first_binding_seconds=round(first - started, 2),
        seconds=round(last - first, 2),
        pods_per_second=round(len(bound) / max(last - first, 1e-3), 1),
        middle_pods_per_second=round(middle_rate(bound.values()), 1),
        cpu_ms_per_pod={name: round(s / placed * 1000, 3) for name, s in cpu.items()},
        start_cpu_seconds=round(start_cpu, 2),
        peak_rss_mib=round(peak / 2**20, 1),
        refused_bindings=account.refused,
        requests=dict(sorted(account.requests.items())),
        order=tuple(sorted(bound, key=bound.__getitem__)),
    )


def middle_rate(times: Iterable[float]) -> float:
    """Return how many there are per second between a tenth and nine tenths of them."""
    ordered = sorted(times)
    low, high = len(ordered) // 10, len(ordered) * 9 // 10
    if high <= low:
        return 0.0
    return (high - low) / max(ordered[high] - ordered[low], 1e-3)


def latencies(account: Account, pods: Collection[str]) -> list[float]:
    """Return how long each pod waited from its creation to its Binding, ascending; in seconds."""
    wanted = frozenset(pods)
    return sorted(
        bound - account.created[pod]
        for pod, bound in account.bound.items()
        if pod in wanted and pod in account.created
    )


def percentile(ascending: Sequence[float], share: float) -> float:
    """Return the value that a share of them does not exceed."""
    if not ascending:
        return float("nan")
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def median_of(runs: Sequence[Run], value: Callable[[Run], float]) -> float:
    """Return the median of something over some runs."""
    return statistics.median(value(run) for run in runs)


def _wait(
    reader: LogReader,
    is_done: Callable[[Account], bool],
    look_seconds: float,
    progress: Callable[[int], None],
    *,
    moves: Callable[[Account], int],
    will_do: Callable[[Account], bool] = lambda _: False,
) -> None:
    """Wait until it is done; if for too long nothing `moves` it has to do, or StoodStillError."""
    last, moved = -1, time.monotonic()
    while True:
        account = reader.catch_up()
        progress(len(account.bound))
        if is_done(account):
            return
        now_at = moves(account)
        if now_at != last:
            last, moved = now_at, time.monotonic()
        elif time.monotonic() - moved > _STILL_SECONDS:
            if will_do(account):
                return
            raise StoodStillError(
                f"nothing happened for {_STILL_SECONDS:g} s: {len(account.bound)} pods bound, "
                f"{len(account.told)} events, {account.refused} Bindings refused or not answered "
                "in time (a machine too busy to be measured)"
            )
        time.sleep(look_seconds)


def _count(known: dict[str, float], wanted: frozenset[str]) -> int:
    return sum(pod in wanted for pod in known)
