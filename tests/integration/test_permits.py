"""Permit on a real API server, with a plugin of the tests' own: wait, allow, reject, time-out."""

import sys

import pytest

from testbed.installation import shipped_configuration
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration import doorkeeper
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
from tests.integration.situations import priority_class

WITH_A_DOORKEEPER = """
    plugins:
      permit:
        enabled:
          - name: Doorkeeper
"""


@pytest.fixture(scope="module")
def daemon(control_plane):
    configuration = shipped_configuration().rstrip() + WITH_A_DOORKEEPER
    program = (sys.executable, doorkeeper.__file__)
    with running(control_plane, configuration=configuration, program=program) as daemon:
        yield daemon
        no_complaints(daemon)


def pod(name, cpu="1", **labels):
    return make_pod(name, cpu=cpu, labels=labels, scheduler_name=SCHEDULER)


def told(sandbox, name):
    return {note for pod, note in events(sandbox, "FailedScheduling") if pod == name}


def test_a_pod_that_is_let_through_is_bound(sandbox, daemon):
    stand_up(sandbox, make_node("n1"))
    sandbox.create_pods([pod("p")])
    eventually(lambda: node_of(sandbox, "p") == "n1", 20, "it is bound")


def test_a_pod_waits_with_its_room_kept_until_it_is_allowed(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    sandbox.create_pods([pod("waits", "3", door="600")])
    # Nobody else gets its room: that is how one sees that it waits at the door.
    sandbox.create_pods([pod("passes", "1")])
    eventually(lambda: node_of(sandbox, "passes") == "n1", 20, "another one passes")
    sandbox.create_pods([pod("too-late", "1")])
    text = "0/1 nodes are available: 1 Insufficient cpu."
    eventually(
        lambda: any(note.startswith(text) for note in told(sandbox, "too-late")),
        20,
        "there is no room for a third",
    )
    assert set(bound(sandbox)) == {"passes"}
    # Its status says where it will go, until it is there; those that are bound at once say nothing.
    assert nominated(sandbox, "waits") == "n1"
    assert not nominated(sandbox, "too-late")
    sandbox.create_pods([pod("herald", "0", says="allow")])
    eventually(lambda: node_of(sandbox, "waits") == "n1", 20, "it is allowed")
    assert not nominated(sandbox, "waits")
    assert condition(sandbox, "waits")["status"] == "True"
    assert {name for name, _ in events(sandbox, "FailedScheduling")} == {"too-late"}


def test_a_pod_that_is_turned_away_says_why_and_holds_no_room(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    sandbox.create_pods([pod("unwanted", "3", door="shut")])
    text = "0/1 nodes are available: 1 the door is shut."
    eventually(lambda: told(sandbox, "unwanted") == {text}, 20, "it is told")
    eventually(lambda: says(sandbox, "unwanted", "message") == text, 20, "the condition")
    sandbox.create_pods([pod("other", "4")])
    eventually(lambda: node_of(sandbox, "other") == "n1", 20, "the room is free")
    assert node_of(sandbox, "unwanted") is None


def test_a_pod_that_is_rejected_while_it_waits_gives_its_room_back(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    sandbox.create_pods([pod("waits", "3", door="600")])
    sandbox.create_pods([pod("large", "3")])
    eventually(lambda: told(sandbox, "large"), 20, "its room is kept")
    # Once it is back in the queue it shall not take the room again.
    sandbox.client.patch(f"{sandbox.path}/pods/waits", {"metadata": {"labels": {"door": "shut"}}})
    sandbox.create_pods([pod("herald", "0", says="reject")])
    text = "0/1 nodes are available: 1 somebody said no."
    eventually(lambda: text in told(sandbox, "waits"), 20, "it is told")
    eventually(lambda: node_of(sandbox, "large") == "n1", 30, "the other one has the room")
    assert node_of(sandbox, "waits") is None
    eventually(lambda: not nominated(sandbox, "waits"), 20, "the nomination is taken back")


def test_a_pod_that_waits_gives_way_to_one_that_is_more_important(sandbox, daemon):
    """It is not deleted: it goes back to the queue, and the other one takes its room at once."""
    important = priority_class(sandbox.namespace, 1000)
    sandbox.create_cluster_object(important.collection, important.body)
    stand_up(sandbox, make_node("n1", cpu="4"))
    (waits,) = sandbox.create_pods([pod("waits", "3", door="600")])
    eventually(lambda: nominated(sandbox, "waits") == "n1", 20, "it waits")
    body = pod("chief", "3")
    body["spec"]["priorityClassName"] = sandbox.namespace
    (chief,) = sandbox.create_pods([body])
    eventually(lambda: node_of(sandbox, "chief") == "n1", 20, "the important one is bound")
    uid = chief["metadata"]["uid"]
    note = f"Preempted by pod {uid} on node n1 (in kube-scheduler memory)."
    eventually(lambda: events(sandbox, "Preempted") == [("waits", note)], 20, "the event")
    eventually(
        lambda: "waiting on permit for pod: preempted" in told(sandbox, "waits"), 20, "it is told"
    )
    eventually(lambda: not nominated(sandbox, "waits"), 20, "the nomination is taken back")
    assert sandbox.pods()["waits"]["metadata"]["uid"] == waits["metadata"]["uid"]


def test_a_pod_that_nobody_allows_is_sent_back_in_time(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    sandbox.create_pods([pod("waits", "3", door="1")])
    text = (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1s at plugin Doorkeeper."
    )
    eventually(lambda: text in told(sandbox, "waits"), 20, "it is told")
    assert node_of(sandbox, "waits") is None
    eventually(lambda: says(sandbox, "waits", "reason") == "Unschedulable", 20, "the condition")
    # Until its next attempt waits at the door again.
    eventually(lambda: not nominated(sandbox, "waits"), 20, "the nomination is taken back")


def test_a_pod_that_is_deleted_while_it_waits_gives_its_room_back(sandbox, daemon):
    stand_up(sandbox, make_node("n1", cpu="4"))
    sandbox.create_pods([pod("waits", "3", door="600")])
    sandbox.create_pods([pod("large", "3")])
    eventually(lambda: told(sandbox, "large"), 20, "its room is kept")
    sandbox.delete(f"{sandbox.path}/pods/waits")
    eventually(lambda: node_of(sandbox, "large") == "n1", 20, "the other one has the room")
