"""What the measured processes use while a backlog is placed.

The window opens before the first Binding: with the last look at which nobody was bound. What was
decided but not yet written by then is in it, so all pods count. Looks are 20 ms apart (50 ms where
readiness is waited for): so little of the start is in the window too. It ends when something was
last written: whoever is waited for in vain is not charged for the wait.
"""

from collections.abc import Callable, Collection

from testbed.bench.account import LogReader
from testbed.daemon import Usage, usage_of
from testbed.errors import TestbedError

SCHEDULER = "scheduler"

# The measured processes by name; an error if one has ended.
Pids = Callable[[], dict[str, int]]


class Meter:
    """Reads what processes use, from before the first of some pods is bound."""

    def __init__(
        self,
        reader: LogReader,
        pods: Collection[str],
        pids: Pids,
        *,
        usage: Callable[[int], Usage] = usage_of,
    ) -> None:
        self._reader = reader
        self._pods = frozenset(pods)
        self._pids = pids
        self._usage = usage
        self._has_begun = False
        self._start: dict[str, Usage] | None = None
        self._end: dict[str, Usage] = {}
        # Pods that were bound before anybody looked: what they cost is not in the window.
        self.missed = 0

    def has_begun(self) -> bool:
        """Look once, until a pod is bound; return whether one is."""
        if self._has_begun:
            return True
        # Before the log is read: if nobody is bound there, nobody was when this was taken.
        now = self._sample()
        bound = count(self._reader.catch_up().bound, self._pods)
        if bound == 0:
            self._start = now
            return False
        if self._start is None:
            self._start, self.missed = now, bound
        self._has_begun = True
        return True

    def move(self) -> None:
        """Take note that something was written: the window lasts until now at least."""
        self._end = self._sample()

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU that each has used in the window."""
        start = self._start or {}
        return {
            name: end.cpu_seconds - start[name].cpu_seconds
            for name, end in self._end.items()
            if name in start
        }

    @property
    def start_cpu_seconds(self) -> float:
        """What the scheduler had used when the window opened."""
        return (self._start or {})[SCHEDULER].cpu_seconds

    @property
    def peak_rss_bytes(self) -> int:
        """The scheduler's largest memory until the end of the window."""
        return self._end[SCHEDULER].peak_rss_bytes

    def _sample(self) -> dict[str, Usage]:
        try:
            return {name: self._usage(pid) for name, pid in self._pids().items()}
        except (FileNotFoundError, ProcessLookupError) as error:
            self._pids()  # knows best who has ended
            raise TestbedError(f"a process has ended: {error}") from error


def count(known: Collection[str], wanted: Collection[str]) -> int:
    """Return how many of those known are wanted."""
    return sum(pod in wanted for pod in known)
