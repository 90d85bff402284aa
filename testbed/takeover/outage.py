"""The API server goes away while pods wait, and comes back: how long until all are bound."""

import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.sandbox import Sandbox
from testbed.takeover.replicas import (
    Supervisor,
    Times,
    start_replica,
    successes,
    wait_for_leader,
)
from testbed.waiting import eventually
from testbed.workload import make_pod

SCHEDULER = "k8s-scheduler"
# How long is waited for what must come about.
_PATIENCE_SECONDS = 120.0

Away = Callable[..., AbstractContextManager[None]]


def outage(
    sandbox: Sandbox, times: Times | None, *, away: Away, pods: int, seconds: float
) -> float:
    """Return the seconds from the server's return until every pod is bound.

    With `times` there are two replicas with leader election, otherwise one without. Whoever ends
    meanwhile is started again after a second, as a kubelet would.
    """
    bed = sandbox.bed
    daemons = _start(bed, times)
    try:
        # All pods are there before any is bound.
        for daemon in daemons:
            daemon.signal(signal.SIGSTOP)
        sandbox.create_pods(
            make_pod(f"p{i}", cpu="10m", scheduler_name=SCHEDULER) for i in range(pods)
        )
        for daemon in daemons:
            daemon.signal(signal.SIGCONT)
        eventually(lambda: _bound_so_far(daemons) > 0, _PATIENCE_SECONDS, "binding is under way")
        supervisor = Supervisor(daemons)
        with away(bed, kill=True):
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                supervisor.look()
                time.sleep(0.1)
        back = time.monotonic()
        supervisor.until(lambda: _all_bound(sandbox, pods), _PATIENCE_SECONDS, "every pod is bound")
        return time.monotonic() - back
    finally:
        for daemon in daemons:
            if daemon.pid is not None:
                daemon.kill()


def _start(bed: Bed, times: Times | None) -> tuple[Daemon, ...]:
    if times is None:
        return (Daemon(bed, name="alone", flags=("--leader-elect=false",)).start(),)
    leader = start_replica(bed, times)
    wait_for_leader(leader)
    return (leader, start_replica(bed, times))


def _bound_so_far(daemons: tuple[Daemon, ...]) -> float:
    return sum(successes(daemon) for daemon in daemons)


def _all_bound(sandbox: Sandbox, count: int) -> bool:
    found = sandbox.pods().values()
    return sum(bool(pod["spec"].get("nodeName")) for pod in found) >= count
