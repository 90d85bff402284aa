"""Comparisons with a real API server find nothing where nothing is wrong, and all that is."""

import random
import signal
import time

from testbed.takeover.load import Stream, large_nodes
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, bound, running, wait_bound

SAME = 'k8s_scheduler_cache_comparisons_total{result="same"}'
DIFFERENT = 'k8s_scheduler_cache_comparisons_total{result="different"}'


def differences(daemon):
    name = "k8s_scheduler_cache_differences_total"
    return {k: v for k, v in daemon.metrics().items() if k.startswith(name) and v}


def test_no_false_alarm_under_load(sandbox):
    large_nodes(sandbox, 5)
    flags = ("--leader-elect=false", "--cache-comparison-interval=300ms")
    rng = random.Random(1)
    with running(sandbox.bed, flags=flags) as daemon:
        with Stream(sandbox, scheduler_name=SCHEDULER, per_second=30.0):
            ends = time.monotonic() + 5
            while time.monotonic() < ends:
                # Objects come, change and go while pages are turned.
                for name in list(bound(sandbox))[:2]:
                    sandbox.delete(f"{sandbox.path}/pods/{name}")
                sandbox.create_nodes([make_node(f"extra-{rng.random()}")])
        eventually(lambda: daemon.metrics().get(SAME, 0) >= 3, 180, "it was compared")
        assert differences(daemon) == {}
        assert daemon.metrics().get(DIFFERENT, 0) == 0


def test_sigusr2_compares_and_dumps(sandbox):
    sandbox.create_nodes([make_node("n1", cpu="2")])
    with running(sandbox.bed) as daemon:
        sandbox.create_pods(
            [
                make_pod("fits", cpu="1", scheduler_name=SCHEDULER),
                make_pod("large", cpu="9", scheduler_name=SCHEDULER),
            ]
        )
        wait_bound(sandbox, 1)
        daemon.signal(signal.SIGUSR2)
        eventually(lambda: daemon.metrics().get(SAME, 0) == 1, 180, "it was compared")
        text = daemon.log.read_text()
    assert "Dump of cache and scheduling queue" in text
    (node,) = [line for line in text.splitlines() if "Dump of cached NodeInfo" in line]
    assert 'node="n1"' in node
    assert "requested_cpu=1000" in node
    (waiting,) = [line for line in text.splitlines() if "Dump of scheduling queue" in line]
    assert f'pod="{sandbox.namespace}/large"' in waiting
