"""Replicas on a real API server: how soon the next one binds, and what the last one leaves behind.

Durations are short here and limits generous; `python -m testbed.takeover` measures those of
production.
"""

import signal
import time
from collections import Counter
from datetime import datetime

import pytest

from testbed.takeover.load import Stream, large_nodes
from testbed.takeover.outage import outage
from testbed.takeover.replicas import (
    Supervisor,
    Times,
    start_replica,
    successes,
    take_over,
    wait_for_leader,
)
from testbed.waiting import eventually
from testbed.workload import make_pod
from tests.integration.daemons import SCHEDULER, api_server_away, bound

TIMES = Times(lease_seconds=6.0, renew_seconds=4.5, retry_seconds=0.5)
# What a machine that is busy with other things may add.
NOISE_SECONDS = 10.0
# As many requests can be under way at once as there are connections.
IN_FLIGHT = 64
PER_SECOND = 20.0


@pytest.fixture
def replicas(sandbox):
    """Start replicas on request; those that still run at the end are killed."""
    started = []

    def start(*flags):
        started.append(start_replica(sandbox.bed, TIMES, *flags))
        return started[-1]

    large_nodes(sandbox, 5)
    yield start
    for daemon in started:
        if daemon.pid is not None:
            daemon.signal(signal.SIGCONT)
            daemon.kill()
        assert "Internal failure" not in daemon.log.read_text(), daemon.log_tail()


def stream(sandbox):
    return Stream(sandbox, scheduler_name=SCHEDULER, per_second=PER_SECOND)


def all_bound(sandbox):
    pods = sandbox.pods()
    return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods.values())


def answers(sandbox):
    """Return the status of every answered Binding of this test, with the pod and the time."""
    return [
        (entry.name, entry.status, datetime.fromisoformat(entry.raw["requestReceivedTimestamp"]))
        for entry in sandbox.bed.audit_entries()
        if entry.namespace == sandbox.namespace and entry.subresource == "binding" and entry.status
    ]


def bound_once(sandbox):
    """Check that no pod was bound twice; return how many were refused."""
    found = answers(sandbox)
    done = Counter(name for name, status, _ in found if status in (200, 201))
    assert set(done.values()) == {1}, done.most_common(3)
    return [status for _, status, _ in found if status not in (200, 201)]


def test_a_leader_is_followed_when_its_lease_is_over_and_at_once_if_it_gives_it_back(
    sandbox, replicas
):
    first = replicas()
    wait_for_leader(first)
    second = replicas()
    with stream(sandbox):
        eventually(lambda: successes(first) > 5, 30, "the leader binds")
        crash = take_over(first, second, crash=True, limit_seconds=60)
        assert crash.first_bind < TIMES.lease_seconds + 2.0 + NOISE_SECONDS
        third = replicas()
        stop = take_over(second, third, crash=False, limit_seconds=60)
        assert stop.first_bind < 2.0 + NOISE_SECONDS
    # A machine that is very busy may make even the last one lose its lease.
    Supervisor((third,)).until(lambda: all_bound(sandbox), 60, "every pod is bound")
    bound_once(sandbox)
    assert "released lease" in second.log.read_text()


def test_a_process_that_was_frozen_for_longer_than_its_lease_starts_no_write(sandbox, replicas):
    leader = replicas()
    wait_for_leader(leader)
    standby = replicas()
    with stream(sandbox):
        eventually(lambda: successes(leader) > 5, 30, "the leader binds")
        # So that it is stopped in the middle of something.
        sandbox.create_pods(
            make_pod(f"burst-{i}", cpu="10m", scheduler_name=SCHEDULER) for i in range(200)
        )
        leader.signal(signal.SIGSTOP)
        eventually(lambda: successes(standby) > 20, 60, "the standby binds")
        went_on_at = time.time()
        leader.signal(signal.SIGCONT)
        assert leader.wait(timeout_seconds=30) == 1
        time.sleep(1)
    Supervisor((standby,)).until(lambda: all_bound(sandbox), 60, "every pod is bound")
    refused = bound_once(sandbox)
    # What was under way when it was stopped: answered, refused, or both asked for the same pod.
    assert len(refused) <= IN_FLIGHT
    # The last two are what the server says of requests whose client has gone.
    assert set(refused) <= {409, 500, 504}
    text = leader.log.read_text()
    assert "Leaderelection lost" in text
    after = [line for line in text.splitlines() if _time(line) > went_on_at]
    late = [line for line in after if "under way when writing had to end" in line]
    assert len(late) <= IN_FLIGHT


def _time(line):
    try:
        return datetime.fromisoformat(line.split(" ", 1)[0]).timestamp()
    except ValueError:
        return 0.0


@pytest.mark.parametrize("elect", [False, True], ids=["alone", "with a standby"])
def test_an_outage_of_the_api_server_is_made_up_for(sandbox, elect):
    """The full one, 30 s and 1,000 pods, is `python -m testbed.takeover --outage`."""
    lasted = outage(sandbox, TIMES if elect else None, away=api_server_away, pods=300, seconds=5.0)
    assert lasted < 15.0 + NOISE_SECONDS
    bound_once_or_lost(sandbox)


def bound_once_or_lost(sandbox):
    """No pod was bound twice; a server that is killed may lose the line of one that was."""
    found = answers(sandbox)
    done = Counter(name for name, status, _ in found if status in (200, 201))
    assert set(done.values()) <= {1}
    assert len(bound(sandbox)) == 300
