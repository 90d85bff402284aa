"""The daemon on a real API server: what it binds, and what it says about the rest."""

import time

from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import (
    SCHEDULER,
    bound,
    condition,
    events,
    node_of,
    running,
    says,
    wait_bound,
)


def test_a_pod_is_bound_to_the_only_node_that_fits(sandbox):
    sandbox.create_nodes(
        [
            make_node("small", cpu="1"),
            make_node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}]),
            make_node("cordoned", unschedulable=True),
            make_node("right", cpu="4"),
        ]
    )
    with running(sandbox.bed) as daemon:
        sandbox.create_pods([make_pod("p", cpu="2", scheduler_name=SCHEDULER)])
        assert wait_bound(sandbox, 1) == {"p": "right"}
        eventually(lambda: events(sandbox, "Scheduled"), 10, "the event")
        assert events(sandbox, "Scheduled") == [
            ("p", f"Successfully assigned {sandbox.namespace}/p to right")
        ]
        assert condition(sandbox, "p")["status"] == "True"
        metrics = daemon.metrics()
        assert metrics['k8s_scheduler_bind_attempts_total{result="success"}'] == 1
        assert (
            metrics['scheduler_schedule_attempts_total{profile="k8s-scheduler",result="scheduled"}']
            == 1
        )


def test_an_unschedulable_pod_says_why_and_is_bound_within_two_seconds_of_a_new_node(sandbox):
    sandbox.create_nodes(
        [
            make_node("n1", cpu="1"),
            make_node("n2", cpu="1", memory="1Gi"),
            make_node("n3", unschedulable=True),
        ]
    )
    text = (
        "0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, "
        "2 Insufficient cpu. preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )
    with running(sandbox.bed) as daemon:
        sandbox.create_pods([make_pod("p", cpu="2", memory="2Gi", scheduler_name=SCHEDULER)])
        eventually(
            lambda: (condition(sandbox, "p") or {}).get("message") == text, 10, "the condition"
        )
        assert condition(sandbox, "p")["reason"] == "Unschedulable"
        eventually(lambda: events(sandbox, "FailedScheduling") == [("p", text)], 10, "the event")
        sandbox.create_nodes([make_node("n4", cpu="4")])
        added = time.monotonic()
        eventually(lambda: node_of(sandbox, "p") == "n4", 10, "bound to the new node")
        assert time.monotonic() - added < 2, daemon.log_tail()


def test_without_nodes(sandbox):
    with running(sandbox.bed):
        sandbox.create_pods([make_pod("p", scheduler_name=SCHEDULER)])
        text = "no nodes available to schedule pods"
        eventually(lambda: events(sandbox, "FailedScheduling") == [("p", text)], 10, "the event")
        eventually(lambda: says(sandbox, "p", "message") == text, 10, "the condition")


def test_pods_of_other_schedulers_count_and_are_left_alone(sandbox):
    sandbox.create_nodes([make_node("n1", cpu="2")])
    foreign, _ = sandbox.create_pods(
        [
            make_pod("foreign", cpu="1500m", scheduler_name="somebody-else"),
            make_pod("waiting", cpu="100m", scheduler_name="somebody-else"),
        ]
    )
    sandbox.bind(foreign, "n1")
    with running(sandbox.bed):
        sandbox.create_pods(
            [
                make_pod("large", cpu="1", scheduler_name=SCHEDULER),
                make_pod("small", cpu="250m", scheduler_name=SCHEDULER),
            ]
        )
        eventually(lambda: node_of(sandbox, "small") == "n1", 10, "the small one is bound")
        text = (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
            "1 No preemption victims found for incoming pod."
        )
        eventually(lambda: events(sandbox, "FailedScheduling") == [("large", text)], 10, "event")
        assert node_of(sandbox, "waiting") is None
        # The foreign pod goes, and its room is used.
        sandbox.delete(f"{sandbox.path}/pods/foreign")
        eventually(lambda: node_of(sandbox, "large") == "n1", 10, "the large one is bound")
        assert "waiting" not in bound(sandbox)
        assert {name for name, _ in events(sandbox, "FailedScheduling")} == {"large"}


def test_a_gated_pod_waits_for_its_gate(sandbox):
    sandbox.create_nodes([make_node("n1")])
    pod = make_pod("p", scheduler_name=SCHEDULER)
    pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    with running(sandbox.bed):
        sandbox.create_pods([pod, make_pod("other", scheduler_name=SCHEDULER)])
        eventually(lambda: node_of(sandbox, "other") == "n1", 10, "the ungated one is bound")
        assert node_of(sandbox, "p") is None
        sandbox.client.patch(f"{sandbox.path}/pods/p", {"spec": {"schedulingGates": None}})
        eventually(lambda: node_of(sandbox, "p") == "n1", 10, "bound once the gate is gone")


def test_a_node_is_never_filled_beyond_its_room(sandbox):
    sandbox.create_nodes([make_node(f"n{i}", cpu="4") for i in range(5)])
    with running(sandbox.bed):
        sandbox.create_pods(
            [make_pod(f"p{i}", cpu="1", scheduler_name=SCHEDULER) for i in range(30)]
        )
        placed = wait_bound(sandbox, 20)
        eventually(
            lambda: len({n for n, _ in events(sandbox, "FailedScheduling")}) == 10, 10, "the rest"
        )
        assert sorted(list(placed.values()).count(f"n{i}") for i in range(5)) == [4] * 5
