"""Preemption on a real API server: who leaves, how, and who comes instead.

Without a kubelet victims stay on their way out for as long as a test wants to look at them.
"""

import contextlib

import pytest

from testbed.audit import COMPLETE
from testbed.installation import shipped_configuration
from testbed.waiting import eventually
from testbed.workload import make_node
from tests.integration.daemons import (
    SCHEDULER,
    bound,
    condition,
    events,
    no_complaints,
    node_of,
    nominated,
    running,
    says,
    stand_up,
)
from tests.integration.preemption_situations import BUDGETS
from tests.integration.situations import PRIORITY_CLASSES, priority_class, waiting

SLOW_WRITES = "clientConnection: {qps: 5, burst: 1}"
CLASSES = {"low": 10, "middle": 100, "high": 1000, "higher": 2000}


@pytest.fixture(scope="module")
def important(control_plane, kwok_plane):
    """Make the priority classes of these tests; bed -> nothing."""
    things = [
        *(priority_class(name, value) for name, value in CLASSES.items()),
        priority_class("high-and-polite", 1000, preemptionPolicy="Never"),
    ]
    for bed in (control_plane, kwok_plane):
        for thing in things:
            bed.client.create(PRIORITY_CLASSES, thing.body)
    yield
    for bed in (control_plane, kwok_plane):
        for thing in things:
            bed.client.delete(f"{PRIORITY_CLASSES}/{thing.body['metadata']['name']}")


@pytest.fixture(scope="module")
def daemon(control_plane, important):
    with running(control_plane) as daemon:
        yield daemon
        no_complaints(daemon)


def pod(name, cpu, priority, **more):
    found = waiting(requests={"cpu": cpu}, priorityClassName=priority, **more)
    found["metadata"]["name"] = name
    found["spec"]["schedulerName"] = SCHEDULER
    return found


def settle(sandbox, node, *pods):
    """Put pods on a node as if they had long been there."""
    for body in pods:
        (made,) = sandbox.create_pods([body | {"spec": body["spec"] | {"nodeName": node}}])
        assert made["spec"]["nodeName"] == node


def leaving(sandbox):
    return {n for n, found in sandbox.pods().items() if "deletionTimestamp" in found["metadata"]}


def let_go(sandbox, *names):
    """Confirm the end of pods, as the kubelet does."""
    for name in names:
        sandbox.delete(f"{sandbox.path}/pods/{name}")


def test_the_least_important_pods_that_make_room_leave_and_the_preemptor_takes_their_place(
    sandbox, daemon
):
    stand_up(sandbox, make_node("n1", cpu="4"), make_node("n2", cpu="4"))
    settle(sandbox, "n1", pod("middle-1", "3", "middle"))
    settle(
        sandbox,
        "n2",
        pod("low-1", "1500m", "low"),
        pod("low-2", "1500m", "low"),
        pod("middle-2", "500m", "middle"),
    )
    victims = {"low-1", "low-2"}
    before = daemon.metrics().get("scheduler_preemption_victims_count", 0.0)
    (preemptor,) = sandbox.create_pods([pod("preemptor", "3", "high")])
    eventually(lambda: leaving(sandbox) == victims, 20, "the victims leave")
    eventually(lambda: nominated(sandbox, "preemptor") == "n2", 10, "the nomination")
    assert node_of(sandbox, "preemptor") is None

    told = f"Preempted by pod {preemptor['metadata']['uid']} on node n2"
    eventually(lambda: len(events(sandbox, "Preempted")) == 2, 10, "the events")
    assert sorted(events(sandbox, "Preempted")) == [(name, told) for name in sorted(victims)]
    for name in victims:
        reason = condition(sandbox, name, "DisruptionTarget")
        assert (reason["status"], reason["reason"], reason["message"]) == (
            "True",
            "PreemptionByScheduler",
            f"{SCHEDULER}: preempting to accommodate a higher priority pod",
        )
        assert reason["observedGeneration"] == 1
    text = (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: "
        "found a potential placement for pod on node n2, preempting 2 victims"
    )
    eventually(lambda: says(sandbox, "preemptor", "message") == text, 20, "the condition")

    let_go(sandbox, "low-1")
    eventually(lambda: leaving(sandbox) == {"low-2"}, 10, "one is gone")
    assert node_of(sandbox, "preemptor") is None
    let_go(sandbox, "low-2")
    eventually(lambda: node_of(sandbox, "preemptor") == "n2", 20, "the preemptor lands")
    assert set(bound(sandbox)) == {"middle-1", "middle-2", "preemptor"}
    assert leaving(sandbox) == set()
    assert daemon.metrics()["scheduler_preemption_victims_count"] == before + 1


def test_a_victim_is_marked_before_it_is_deleted_and_deleted_by_its_uid(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    settle(sandbox, "n1", pod("victim", "3", "low"))
    uid = sandbox.pods()["victim"]["metadata"]["uid"]
    sandbox.create_pods([pod("preemptor", "3", "high")])
    eventually(lambda: leaving(sandbox) == {"victim"}, 20, "the victim leaves")

    def writes():
        return [
            entry
            for entry in sandbox.bed.audit_entries()
            if (entry.namespace, entry.name, entry.stage) == (sandbox.namespace, "victim", COMPLETE)
            and entry.user.endswith(SCHEDULER)
        ]

    eventually(lambda: len(writes()) >= 2, 10, "both are audited")
    mark, removal = writes()
    assert (mark.verb, mark.subresource, mark.status) == ("patch", "status", 200)
    (marked,) = mark.raw["requestObject"]["status"]["conditions"]
    assert (marked["type"], marked["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    assert (removal.verb, removal.subresource, removal.status) == ("delete", "", 200)
    assert removal.precondition_uid == uid


def test_a_victim_of_two_is_deleted_once(sandbox, daemon):
    """They come one right after the other, and the second needs the first one's victim too."""
    stand_up(sandbox, make_node("n1", cpu="4"))
    settle(sandbox, "n1", pod("victim-1", "2", "low"), pod("victim-2", "2", "low"))
    sandbox.create_pods([pod("first", "2", "high"), pod("second", "4", "higher")])
    eventually(lambda: nominated(sandbox, "second") == "n1", 20, "the nomination")
    eventually(lambda: leaving(sandbox) == {"victim-1", "victim-2"}, 20, "both victims leave")
    let_go(sandbox, "victim-1", "victim-2")
    eventually(lambda: node_of(sandbox, "second") == "n1", 20, "the second lands")
    removals = [
        entry.name
        for entry in sandbox.bed.audit_entries()
        if (entry.namespace, entry.verb, entry.stage) == (sandbox.namespace, "delete", COMPLETE)
        and entry.user.endswith(SCHEDULER)
    ]
    assert sorted(removals) == ["victim-1", "victim-2"]


def test_a_nomination_gives_way_to_one_that_is_more_important(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    settle(sandbox, "n1", pod("victim-1", "2", "low"), pod("victim-2", "2", "middle"))
    sandbox.create_pods([pod("first", "2", "high")])
    eventually(lambda: nominated(sandbox, "first") == "n1", 20, "the first nomination")
    eventually(lambda: leaving(sandbox) == {"victim-1"}, 20, "its victim leaves")
    sandbox.create_pods([pod("second", "4", "higher")])
    eventually(lambda: nominated(sandbox, "second") == "n1", 20, "the second nomination")
    eventually(lambda: leaving(sandbox) == {"victim-1", "victim-2"}, 20, "both victims leave")
    eventually(lambda: not nominated(sandbox, "first"), 20, "the first nomination is cleared")
    let_go(sandbox, "victim-1", "victim-2")
    eventually(lambda: node_of(sandbox, "second") == "n1", 20, "the second lands")
    assert node_of(sandbox, "first") is None


def test_a_pod_is_tried_again_once_preemption_can_help(sandbox, daemon):
    """A taint that goes makes no room, but it makes a node of which a victim can leave."""
    stand_up(sandbox, make_node("n1", cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}]))
    settle(sandbox, "n1", pod("victim", "3", "low"))
    sandbox.create_pods([pod("preemptor", "3", "high")])
    text = (
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    eventually(lambda: events(sandbox, "FailedScheduling") == [("preemptor", text)], 20, "event")
    sandbox.client.patch("/api/v1/nodes/n1", {"spec": {"taints": None}})
    eventually(lambda: leaving(sandbox) == {"victim"}, 20, "the victim leaves")
    let_go(sandbox, "victim")
    eventually(lambda: node_of(sandbox, "preemptor") == "n1", 20, "the preemptor lands")


def test_a_pod_that_never_preempts_waits_for_room(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    settle(sandbox, "n1", pod("low", "3", "low"))
    text = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    sandbox.create_pods([pod("polite", "3", "high-and-polite")])
    eventually(lambda: events(sandbox, "FailedScheduling") == [("polite", text)], 20, "the event")
    assert leaving(sandbox) == set()
    assert not nominated(sandbox, "polite")
    let_go(sandbox, "low")
    eventually(lambda: node_of(sandbox, "polite") == "n1", 20, "there is room")


@contextlib.contextmanager
def in_the_middle_of_a_preemption(sandbox):
    """Give a daemon that writes so slowly that some victims are left when the first one goes."""
    stand_up(sandbox, make_node("n1", cpu="4"))
    victims = [f"victim-{number}" for number in range(8)]
    settle(sandbox, "n1", *(pod(name, "500m", "low") for name in victims))
    configuration = f"{shipped_configuration()}\n{SLOW_WRITES}"
    with running(sandbox.bed, configuration=configuration) as daemon:
        sandbox.create_pods([pod("preemptor", "4", "high")])
        eventually(lambda: staying(sandbox) != {*victims, "preemptor"}, 20, "one leaves")
        assert len(staying(sandbox)) > 1
        yield daemon


def staying(sandbox):
    return set(sandbox.pods()) - leaving(sandbox)


def test_nobody_else_leaves_once_the_preemptor_is_gone(kwok_sandbox, important):
    """Those that were asked leave; the last one, whose turn comes after them, is not asked."""
    sandbox = kwok_sandbox
    with in_the_middle_of_a_preemption(sandbox) as daemon:
        sandbox.delete(f"{sandbox.path}/pods/preemptor")
        assert len(staying(sandbox)) > 1
        eventually(lambda: len(staying(sandbox)) == 1, 30, "those that were asked leave")
        eventually(lambda: len(events(sandbox, "Preempted")) == 7, 30, "the events")
        [left] = staying(sandbox)
        sandbox.create_pods([pod("other", "3500m", "low")])
        eventually(lambda: node_of(sandbox, "other") == "n1", 20, "another one takes the place")
        assert staying(sandbox) == {left, "other"}
        no_complaints(daemon)


def test_a_daemon_that_is_told_to_stop_finishes_what_it_has_begun(kwok_sandbox, important):
    sandbox = kwok_sandbox
    with in_the_middle_of_a_preemption(sandbox) as daemon:
        assert daemon.stop() == 0
    assert staying(sandbox) == {"preemptor"}
    assert "Stopping with writes" not in daemon.log.read_text()


def test_a_disruption_budget_is_kept_where_there_is_another_way(kwok_sandbox, important):
    """The guarded pod is the less important one: without its budget it would have to go."""
    sandbox = kwok_sandbox
    stand_up(sandbox, make_node("n1", cpu="4"), make_node("n2", cpu="4"))
    settle(sandbox, "n1", pod("guarded", "3", "low", labels={"app": "guarded"}))
    settle(sandbox, "n2", pod("free", "3", "middle"))
    budgets = BUDGETS.format(namespace=sandbox.namespace)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    sandbox.client.create(budgets, budget)
    eventually(
        lambda: sandbox.client.get(f"{budgets}/guard").get("status", {}).get("currentHealthy") == 1,
        30,
        "the budget is counted",
    )
    with running(sandbox.bed) as daemon:
        sandbox.create_pods([pod("first", "3", "high")])
        eventually(lambda: node_of(sandbox, "first") == "n2", 20, "the first lands")
        assert set(sandbox.pods()) == {"guarded", "first"}
        assert [name for name, _ in events(sandbox, "Preempted")] == ["free"]
        # There is no other way now: priority goes before the budget.
        sandbox.create_pods([pod("second", "3", "high")])
        eventually(lambda: node_of(sandbox, "second") == "n1", 20, "the second lands")
        assert set(bound(sandbox)) == {"first", "second"}
        no_complaints(daemon)
