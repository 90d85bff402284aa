"""Pods that arrive one by one, and how long each takes from its creation to its Binding."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from testbed.bench.account import Account, LogReader
from testbed.bench.meter import count
from testbed.bench.runs import StoodStillError, latencies, percentile
from testbed.client import Object

_WAIT_SECONDS = 60.0
_LOOK_SECONDS = 0.05
# How far pods may be from arriving as fast as they were to.
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Latency:
    """From creation to Binding at a steady rate of arrival, in milliseconds."""

    rate: float
    pods: int
    p50_ms: float
    p99_ms: float
    # Pods per second as they came, by the API server's account; 0 if that is not known.
    achieved_rate: float = 0.0

    @property
    def is_off(self) -> bool:
        """Whether pods came clearly faster or slower than they were to."""
        return bool(self.achieved_rate) and abs(self.achieved_rate / self.rate - 1) > _TOLERANCE


def arrive(
    pods: Sequence[Object],
    rate: float,
    create: Callable[[Object], object],
    reader: LogReader,
    *,
    check: Callable[[], object] = lambda: None,
    progress: Callable[[int], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Latency:
    """Create pods at a rate and wait until all are bound; StoodStillError if that takes too long.

    `check` is called meanwhile and may put an end to it.
    """
    begin = clock()
    for number, pod in enumerate(pods):
        sleep(max(0.0, begin + number / rate - clock()))
        create(pod)
        progress(number + 1)
    names = frozenset(pod["metadata"]["name"] for pod in pods)
    deadline = clock() + _WAIT_SECONDS
    while (bound := count(reader.catch_up().bound, names)) < len(names):
        check()
        if clock() > deadline:
            raise StoodStillError(
                f"of {len(names)} pods that arrived at {rate:g} per second {bound} were bound "
                f"{_WAIT_SECONDS:g} s after the last had come"
            )
        sleep(_LOOK_SECONDS)
    found = latencies(reader.account, names)
    return Latency(
        rate=rate,
        pods=len(found),
        p50_ms=round(percentile(found, 0.5) * 1000, 1),
        p99_ms=round(percentile(found, 0.99) * 1000, 1),
        achieved_rate=round(achieved_rate(reader.account, names), 2),
    )


def achieved_rate(account: Account, names: Collection[str]) -> float:
    """Return how many of these pods came per second; 0 if fewer than two did."""
    times = sorted(account.created[name] for name in names if name in account.created)
    if len(times) < 2:
        return 0.0
    return (len(times) - 1) / max(times[-1] - times[0], 1e-3)
