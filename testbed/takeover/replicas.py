"""Replicas of the scheduler that compete for one Lease, and who of them leads."""

import itertools
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.errors import ComponentError
from testbed.waiting import eventually

_BOUND = 'k8s_scheduler_bind_attempts_total{result="success"}'
_LEADS = 'leader_election_master_status{name="k8s-scheduler"}'
_LOOK_SECONDS = 0.02
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Times:
    """What an election is set to; the defaults are kube-scheduler's."""

    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0

    def flags(self) -> tuple[str, ...]:
        """Return the command line that sets them."""
        return (
            "--leader-elect=true",
            "--leader-elect-resource-namespace=kube-system",
            f"--leader-elect-lease-duration={self.lease_seconds:g}s",
            f"--leader-elect-renew-deadline={self.renew_seconds:g}s",
            f"--leader-elect-retry-period={self.retry_seconds:g}s",
        )


@dataclass(frozen=True, slots=True)
class TakeOver:
    """One change of leaders, in seconds.

    The first two count from the signal that ended the old leader. The last is what the new one
    needed once it had the lease: to read what the last one wrote, to decide and to bind.
    """

    first_bind: float
    acquired: float
    from_lease_to_bind: float


def start_replica(bed: Bed, times: Times, *flags: str) -> Daemon:
    """Start a replica and wait until its caches are filled."""
    name = f"replica-{next(_numbers)}"
    return Daemon(bed, name=name, flags=(*times.flags(), *flags)).start()


def leads(daemon: Daemon) -> bool:
    """Return whether a replica says of itself that it leads."""
    return _metric(daemon, _LEADS) == 1.0


def wait_for_leader(daemon: Daemon, timeout_seconds: float = 60.0) -> None:
    """Wait until a replica leads."""
    eventually(lambda: leads(daemon), timeout_seconds, f"{daemon.name} leads")


def successes(daemon: Daemon) -> float:
    """Return how many pods a replica has bound."""
    return _metric(daemon, _BOUND)


def _metric(daemon: Daemon, name: str) -> float:
    """Return a number from a replica's page; 0 while it does not answer."""
    try:
        return daemon.metrics().get(name, 0.0)
    except OSError:
        return 0.0


def take_over(leader: Daemon, standby: Daemon, *, crash: bool, limit_seconds: float) -> TakeOver:
    """End the leader and wait for the standby's first binding; pods must be coming in."""
    before = time.time()
    if crash:
        leader.kill()
    else:
        leader.signal(signal.SIGTERM)
    eventually(
        lambda: successes(standby) > 0,
        limit_seconds,
        "the standby binds",
        interval_seconds=_LOOK_SECONDS,
    )
    first = time.time()
    if not crash and (code := leader.wait()) != 0:
        raise ComponentError(f"{leader.name} ended with {code}; {leader.log_tail()}")
    acquired = logged(standby, "successfully acquired lease")
    return TakeOver(first - before, acquired - before, first - acquired)


def logged(daemon: Daemon, words: str) -> float:
    """Return when a replica last wrote a line with these words, in seconds since the epoch."""
    lines = [line for line in daemon.log.read_text(encoding="utf-8").splitlines() if words in line]
    return datetime.fromisoformat(lines[-1].split(" ", 1)[0]).timestamp()


class Supervisor:
    """Starts a replica again whenever it has ended, as a kubelet would, until told to stop."""

    def __init__(self, daemons: tuple[Daemon, ...], *, pause_seconds: float = 1.0) -> None:
        self._daemons = daemons
        self._pause_seconds = pause_seconds
        self.restarts = 0

    def look(self) -> None:
        """Start whoever is down."""
        for daemon in self._daemons:
            if daemon.pid is None:
                time.sleep(self._pause_seconds)
                daemon.start(wait=False)
                self.restarts += 1

    def until(self, predicate: Callable[[], bool], timeout_seconds: float, message: str) -> None:
        """Look after them until something is true."""

        def looking() -> bool:
            self.look()
            return predicate()

        eventually(looking, timeout_seconds, message, interval_seconds=0.1)
