"""One run: a scheduler starts on a restored world and places what waits there.

The clock starts with the first Binding and stops when every Binding and every event is written, by
the API server's account. CPU is what the processes used in between; see `meter`.
"""

import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from testbed.bench.account import Account, LogReader
from testbed.bench.meter import Meter, Pids, count
from testbed.errors import TestbedError

_LOOK_SECONDS = 0.1
_FIRST_LOOK_SECONDS = 0.02
# Nothing was written for so long: it will not go on.
_STILL_SECONDS = 60.0


class ContestantError(TestbedError):
    """What a scheduler could not do: a result of the benchmark, not its end."""


class StoodStillError(ContestantError):
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
    # Pods in the order in which the API server got their Bindings.
    order: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return all of it but the order, which is as long as there are pods."""
        found = asdict(self)
        del found["order"]
        return found


def follow(
    reader: LogReader,
    pods: Collection[str],
    pids: Pids,
    *,
    started: float,
    progress: Callable[[int], None] = lambda _: None,
    meter: Meter | None = None,
) -> Run:
    """Watch a scheduler that was started place all these pods; StoodStillError if it does not.

    Whoever does something between the start and this call brings a `meter` that has looked since.
    """
    wanted = frozenset(pods)
    meter = meter or Meter(reader, wanted, pids)
    # What the benchmark does itself is no progress, and where things come and go it never ends.
    _wait(
        reader,
        lambda _: meter.has_begun(),
        _FIRST_LOOK_SECONDS,
        progress,
        moves=lambda a: a.work,
    )
    _wait(
        reader,
        lambda a: count(a.bound, wanted) == count(a.told, wanted) == len(wanted),
        _LOOK_SECONDS,
        progress,
        # Whatever else is written: where pods come and go all the time, something always is.
        moves=lambda a: count(a.bound, wanted) + count(a.told, wanted),
        on_move=meter.move,
        check=pids,
        # Events are written without a promise: who loses some is not waited for.
        will_do=lambda a: count(a.bound, wanted) == len(wanted),
    )
    return _run(reader.account, wanted, meter, started)


def _run(account: Account, wanted: frozenset[str], meter: Meter, started: float) -> Run:
    """Return what has come of it; all the pods are bound."""
    bound = {pod: when for pod, when in account.bound.items() if pod in wanted}
    told = [when for pod, when in account.told.items() if pod in wanted]
    first, last = min(bound.values()), max((*bound.values(), *told))
    paid = max(1, len(bound) - meter.missed)
    return Run(
        pods=len(wanted),
        bound=len(bound),
        told=len(told),
        first_binding_seconds=round(first - started, 2),
        seconds=round(last - first, 2),
        pods_per_second=round(len(bound) / max(last - first, 1e-3), 1),
        middle_pods_per_second=round(middle_rate(bound.values()), 1),
        cpu_ms_per_pod={n: round(s / paid * 1000, 3) for n, s in meter.cpu_seconds().items()},
        start_cpu_seconds=round(meter.start_cpu_seconds, 2),
        peak_rss_mib=round(meter.peak_rss_bytes / 2**20, 1),
        refused_bindings=account.refused,
        requests=dict(sorted(account.requests.items())),
        order=tuple(sorted(bound, key=lambda pod: account.asked.get(pod, bound[pod]))),
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
    on_move: Callable[[], object] = lambda: None,
    check: Callable[[], object] = lambda: None,
    will_do: Callable[[Account], bool] = lambda _: False,
) -> None:
    """Wait until it is done; if for too long nothing `moves` it has to do, or StoodStillError.

    `on_move` is called when something has, `check` at every look: it may put an end to it.
    """
    last, moved = -1, time.monotonic()
    while True:
        account = reader.catch_up()
        progress(len(account.bound))
        now_at = moves(account)
        has_moved = now_at != last
        if has_moved:
            last, moved = now_at, time.monotonic()
            on_move()
        if is_done(account):
            return
        check()
        if not has_moved and time.monotonic() - moved > _STILL_SECONDS:
            if will_do(account):
                return
            raise StoodStillError(
                f"nothing happened for {_STILL_SECONDS:g} s: {len(account.bound)} pods bound, "
                f"{len(account.told)} events, {account.refused} Bindings refused or not answered "
                "in time (a machine too busy to be measured)"
            )
        time.sleep(look_seconds)
