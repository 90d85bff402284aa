"""DefaultPreemption by example: less important pods leave where no node takes a pod."""

import pytest

from k8s_scheduler.core.messages.outgoing import Evict, PatchCondition
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness, pinned, zoned
from tests.unit.core.harness import only


@pytest.fixture
def h():
    """Two nodes of 4 cpus: `a` runs a pod of priority 5, `b` one of priority 1."""
    h = FullHarness()
    for node, priority in (("a", 5), ("b", 1)):
        h.node(zoned(node).obj())
        h.pod(make_pod(f"on-{node}").request(cpu="4").priority(priority).on(node).obj())
    return h


def attempt(h, pod):
    """Let a pod be tried; return its victims, its promised node and what it is told."""
    h.out.clear()
    h.pod(pod.obj())
    h.settle()
    [told] = only(PatchCondition, h.out)
    return [e.victim.name for e in only(Evict, h.out)], told.nominated_node_name, told.message


def important(priority, cpu="4"):
    return make_pod("p").request(cpu=cpu).priority(priority)


def test_the_least_important_pod_leaves_and_its_node_is_promised(h):
    victims, node, message = attempt(h, important(10))
    assert (victims, node) == (["on-b"], "b")
    assert message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_the_pod_is_bound_when_its_victims_are_gone(h):
    attempt(h, important(10))
    h.drop_pod(make_pod("on-b").obj())
    assert [(bind.name, bind.node) for bind in h.binds()] == [("p", "b")]


def test_pods_as_important_as_it_stay(h):
    victims, node, message = attempt(h, important(1))
    assert (victims, node) == ([], None)
    assert message == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
        "2 No preemption victims found for incoming pod."
    )


def test_where_even_an_empty_node_is_too_small_no_pod_leaves(h):
    victims, _, message = attempt(h, important(10, cpu="8"))
    assert victims == []
    assert message.endswith(
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_a_policy_of_never_waits_instead(h):
    pod = important(10)
    pod.raw["spec"]["preemptionPolicy"] = "Never"
    victims, _, message = attempt(h, pod)
    assert victims == []
    assert message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_a_disruption_budget_is_respected_where_another_node_does(h):
    h.pod(make_pod("on-b").request(cpu="4").priority(1).label(app="db").on("b").version(2).obj())
    h.budget("db", 0, app="db")
    assert attempt(h, important(10))[:2] == (["on-a"], "a")


def test_a_disruption_budget_is_violated_where_no_other_node_does(h):
    h.pod(make_pod("on-b").request(cpu="4").priority(1).label(app="db").on("b").version(2).obj())
    h.budget("db", 0, app="db")
    assert attempt(h, pinned(important(10), "b"))[:2] == (["on-b"], "b")


def test_no_more_pods_leave_than_have_to(h):
    h.node(make_node("c").label(host="c").offers(cpu="4", memory="8Gi", pods="110").obj())
    for name, priority in (("less", 1), ("more", 2)):
        h.pod(make_pod(name).request(cpu="2").priority(priority).on("c").obj())
    assert attempt(h, pinned(important(10, cpu="2"), "c"))[:2] == (["less"], "c")
