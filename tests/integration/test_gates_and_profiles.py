"""Whose pods are scheduled, and when: gates, profiles, other schedulers' pods."""

from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import (
    SCHEDULER,
    bound,
    condition,
    events,
    no_complaints,
    node_of,
    running,
    stand_up,
    wait_bound,
)

# Two profiles that decide the opposite: one fills nodes, the other one spares them.
TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: spreading
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: LeastAllocated
  - schedulerName: packing
    plugins:
      score:
        disabled:
          - name: "*"
        enabled:
          - name: NodeResourcesFit
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
"""
ONE_NAME = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: my-custom-scheduler
"""


def test_a_gated_pod_says_so_and_runs_when_its_last_gate_goes(kwok_sandbox):
    sandbox = kwok_sandbox
    pod = make_pod("gated", scheduler_name=SCHEDULER)
    gates = [{"name": "example.com/first"}, {"name": "example.com/second"}]
    pod["spec"]["schedulingGates"] = gates
    path = f"{sandbox.path}/pods/gated"
    with running(sandbox.bed) as daemon:
        stand_up(sandbox, make_node("n1"))
        sandbox.create_pods([pod])
        eventually(lambda: gated(daemon) == 1, 20, "it is counted as gated")
        sandbox.client.patch(path, {"spec": {"schedulingGates": gates[1:]}})
        # A pod that came later goes all its way while this one waits.
        sandbox.create_pods([make_pod("other", scheduler_name=SCHEDULER)])
        eventually(lambda: node_of(sandbox, "other") == "n1", 20, "the other one is bound")
        assert node_of(sandbox, "gated") is None
        assert condition(sandbox, "gated")["reason"] == "SchedulingGated"
        assert events(sandbox, "FailedScheduling") == []
        assert gated(daemon) == 1
        sandbox.client.patch(path, {"spec": {"schedulingGates": None}})
        eventually(lambda: sandbox.pods()["gated"]["status"]["phase"] == "Running", 30, "it runs")
        assert gated(daemon) == 0
        no_complaints(daemon)


def gated(daemon):
    return daemon.metrics()['scheduler_pending_pods{queue="gated"}']


def test_two_profiles_serve_two_scheduler_names(sandbox):
    stand_up(sandbox, make_node("n1", cpu="8"), make_node("n2", cpu="8"))
    with running(sandbox.bed, configuration=TWO_PROFILES) as daemon:
        sandbox.create_pods([make_pod("seed", cpu="2", memory="2Gi", scheduler_name="spreading")])
        first = wait_bound(sandbox, 1)["seed"]
        (second,) = {"n1", "n2"} - {first}
        sandbox.create_pods([make_pod("packed", scheduler_name="packing")])
        eventually(lambda: node_of(sandbox, "packed") == first, 20, "beside the first")
        sandbox.create_pods([make_pod("spread", scheduler_name="spreading")])
        eventually(lambda: node_of(sandbox, "spread") == second, 20, "away from it")
        sandbox.create_pods([make_pod("foreign", scheduler_name=SCHEDULER)])
        sandbox.create_pods([make_pod("large", cpu="64", scheduler_name="packing")])
        eventually(lambda: events(sandbox, "FailedScheduling"), 20, "one does not fit")
        assert set(bound(sandbox)) == {"seed", "packed", "spread"}
        placed = 'scheduler_schedule_attempts_total{{profile="{}",result="scheduled"}}'
        metrics = daemon.metrics()
        assert metrics[placed.format("spreading")] == 2
        assert metrics[placed.format("packing")] == 1
        # Each speaks under its own name.
        said = sandbox.client.list(f"/apis/events.k8s.io/v1/namespaces/{sandbox.namespace}/events")
        assert {e["regarding"]["name"]: e["reportingController"] for e in said} == {
            "seed": "spreading",
            "packed": "packing",
            "spread": "spreading",
            "large": "packing",
        }
        no_complaints(daemon)


def test_a_pod_that_names_this_scheduler_is_bound_and_one_that_names_none_is_left_alone(sandbox):
    stand_up(sandbox, make_node("n1"))
    nginx = {"containers": [{"name": "nginx", "image": "nginx"}]}
    with running(sandbox.bed, configuration=ONE_NAME) as daemon:
        sandbox.create_pods(
            [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "nginx-default"},
                    "spec": nginx,
                },
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "nginx-custom"},
                    "spec": nginx | {"schedulerName": "my-custom-scheduler"},
                },
            ]
        )
        eventually(lambda: node_of(sandbox, "nginx-custom") == "n1", 20, "ours is bound")
        # One more, created after both: whoever had been taken by mistake would be bound by now.
        sandbox.create_pods([make_pod("last", scheduler_name="my-custom-scheduler")])
        eventually(lambda: node_of(sandbox, "last") == "n1", 20, "the last one is bound")
        left = sandbox.pods()["nginx-default"]
        assert left["spec"]["schedulerName"] == "default-scheduler"
        assert "nodeName" not in left["spec"]
        assert condition(sandbox, "nginx-default") is None
        said = sandbox.client.list(f"/apis/events.k8s.io/v1/namespaces/{sandbox.namespace}/events")
        assert "nginx-default" not in {event["regarding"]["name"] for event in said}
        no_complaints(daemon)
