"""Two replicas: one decides, the other takes over."""

from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, api_server_away, running, wait_bound

FLAGS = (
    "--leader-elect=true",
    "--leader-elect-resource-namespace=kube-system",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)


def role(daemon):
    return daemon.get("/readyz")[1].strip().splitlines()[-1]


def test_a_standby_takes_over_from_a_dead_leader_and_from_one_that_stops(sandbox):
    bed = sandbox.bed
    sandbox.create_nodes([make_node("n1", cpu="100")])
    with running(bed, flags=FLAGS) as first:
        eventually(lambda: role(first) == "role: leader", 15, "the first one leads")
        with running(bed, flags=FLAGS) as second:
            assert role(second) == "role: standby"
            sandbox.create_pods([make_pod("a", scheduler_name=SCHEDULER)])
            wait_bound(sandbox, 1)
            metrics = second.metrics()
            assert metrics.get('k8s_scheduler_bind_attempts_total{result="success"}', 0) == 0
            first.kill()
            sandbox.create_pods([make_pod("b", scheduler_name=SCHEDULER)])
            wait_bound(sandbox, 2, timeout_seconds=20)
            assert role(second) == "role: leader"
            with running(bed, flags=FLAGS) as third:
                assert role(third) == "role: standby"
                # A leader that is told to stop gives the lease back: no waiting it out.
                assert second.stop() == 0
                eventually(lambda: role(third) == "role: leader", 3.5, "taken at once")
                sandbox.create_pods([make_pod("c", scheduler_name=SCHEDULER)])
                wait_bound(sandbox, 3)


def test_a_leader_that_cannot_renew_stops_by_itself(sandbox):
    bed = sandbox.bed
    with running(bed, flags=FLAGS) as daemon:
        eventually(lambda: role(daemon) == "role: leader", 15, "it leads")
        with api_server_away(bed, kill=True):
            assert daemon.wait(timeout_seconds=20) == 1
        assert "Leaderelection lost" in daemon.log.read_text()
