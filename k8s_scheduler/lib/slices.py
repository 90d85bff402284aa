"""Slices: pieces of work on the event loop, none longer than 20 ms of CPU.

Everything shares one loop, so long work delays lease renewals and health checks. It runs inside a
`Slice`, asks `full()` as it goes and `await`s `breathe()` when it is. The CPU time of each slice is
reported under its owner's name, which shows the part that holds the loop.
"""

import asyncio
import time
from collections.abc import Callable

BUDGET_SECONDS = 0.020
# Stop at half: the last item of a slice may be a large one, and the meter is read between items.
_FULL_SECONDS = BUDGET_SECONDS / 2

ReportSlice = Callable[[str, float], None]


class Slice:
    """One owner's stretch of work; reusable after `breathe`."""

    __slots__ = ("_clock", "_owner", "_report", "_start", "_wall_clock", "_wall_start")

    def __init__(
        self,
        owner: str,
        report: ReportSlice,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self._owner = owner
        self._report = report
        self._clock = clock
        self._wall_clock = wall_clock
        self._start = clock()
        self._wall_start = wall_clock()

    def full(self, limit_seconds: float = _FULL_SECONDS) -> bool:
        """Return whether it is time to let others run."""
        # CPU time can't exceed the time that has passed, and that clock takes no system call.
        if self._wall_clock() - self._wall_start < limit_seconds:
            return False
        return self._clock() - self._start >= limit_seconds

    def finish(self) -> None:
        """Report the time used; call it when the work ends without another `breathe`."""
        self._report(self._owner, self._clock() - self._start)

    def restart(self) -> None:
        """Begin a new stretch, after the loop has run something else."""
        self._start = self._clock()
        self._wall_start = self._wall_clock()

    async def breathe(self) -> None:
        """Report, let the loop run whatever waits, and start a new stretch."""
        self.finish()
        await asyncio.sleep(0)
        self.restart()


class SliceMeter:
    """Makes slices that report to one place."""

    def __init__(self, report: ReportSlice, clock: Callable[[], float] | None = None) -> None:
        """Measure CPU time, or the time of `clock` where one is given."""
        self._report = report
        self._clock = clock or time.thread_time
        self._wall_clock = clock or time.perf_counter

    def start(self, owner: str) -> Slice:
        """Begin a slice for `owner`, a fixed name such as `reflector/pods`."""
        return Slice(owner, self._report, self._clock, self._wall_clock)


def silent_meter() -> SliceMeter:
    return SliceMeter(lambda _owner, _seconds: None)
