"""The API server goes away while pods wait, and comes back: how long until all are bound."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.options import API_SERVER
from testbed.sandbox import Sandbox
from testbed.takeover.load import large_nodes, uncordon
from testbed.takeover.replicas import (
    Supervisor,
    Times,
    start_replica,
    successes,
    wait_for_leader,
)
from testbed.workload import make_pod

SCHEDULER = "k8s-scheduler"
# How long is waited for what must come about.
_PATIENCE_SECONDS = 120.0

Away = Callable[..., AbstractContextManager[None]]


@contextmanager
def server_away(bed: Bed, *, kill: bool) -> Iterator[None]:
    """Take the API server away for as long as the body, and bring it back."""
    (bed.kill if kill else bed.stop)(API_SERVER)
    try:
        yield
    finally:
        bed.start(API_SERVER)


def outage(
    sandbox: Sandbox, times: Times | None, *, away: Away, pods: int, seconds: float
) -> float:
    """Return the seconds from the server's return until every pod is bound.

    With `times` there are two replicas with leader election, otherwise one without. Whoever ends
    meanwhile is started again after a second, as a kubelet would.
    """
    bed = sandbox.bed
    # All pods are there before any can be bound.
    nodes = large_nodes(sandbox, cordoned=True)
    daemons = _start(bed, times)
    supervisor = Supervisor(daemons)
    try:
        sandbox.create_pods(
            make_pod(f"p{i}", cpu="10m", scheduler_name=SCHEDULER) for i in range(pods)
        )
        uncordon(sandbox, nodes)
        supervisor.until(
            lambda: _bound_so_far(daemons) > 0, _PATIENCE_SECONDS, "binding is under way"
        )
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
