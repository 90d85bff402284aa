"""Promised room: whom it keeps out, and when it ends."""

import pytest

from k8s_scheduler.core.engine.nominated import Nominees
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness, away, near, pinned, promised, zoned


@pytest.fixture
def h():
    return FullHarness()


def vip(node="n", cpu="3", priority=5, name="vip"):
    return promised(make_pod(name).request(cpu=cpu).priority(priority), node)


def full(h):
    """Let `vip` be promised a node where it does not fit yet."""
    h.node(zoned("n").obj())
    h.pod(make_pod("leaving").request(cpu="2").on("n").obj())
    h.pod(vip().obj())
    h.settle()
    assert h.parked() == ["vip"]


def feasible(h, pod):
    return h.core.judge(pod.obj()).feasible


@pytest.mark.parametrize(("priority", "expected"), [(4, ()), (5, ()), (6, ("n",))])
def test_a_promise_holds_against_all_who_are_not_more_important(h, priority, expected):
    full(h)
    assert feasible(h, make_pod("p").request(cpu="1").priority(priority)) == expected


def test_a_pod_without_priority_has_priority_0(h):
    h.node(zoned("n", cpu="2").obj())
    h.pod(vip(cpu="2", priority=0).obj())
    assert feasible(h, make_pod("p").request(cpu="1")) == ()
    h.pod(vip(cpu="2", priority=-1).obj())
    assert feasible(h, make_pod("p").request(cpu="1")) == ("n",)


def test_a_pod_does_not_stand_in_its_own_way(h):
    h.node(zoned("n").obj())
    h.pod(vip().obj())
    assert feasible(h, vip()) == ("n",)


def test_the_reason_is_the_one_with_promised_pods_counted_in(h):
    h.node(zoned("n").obj())
    port = vip(cpu="4")
    port.raw["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    h.pod(port.obj())
    p = make_pod("p").request(cpu="5")
    p.raw["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    verdict = h.core.judge(p.obj()).rejected["n"]
    assert verdict.plugin == "NodePorts"


def test_promised_company_is_not_company_yet(h):
    h.node(zoned("n").obj())
    h.pod(vip(cpu="1").label(app="x").obj())
    assert feasible(h, near(make_pod("p"), app="x")) == ()


def test_a_promised_enemy_is_an_enemy_already(h):
    h.node(zoned("n").obj())
    h.pod(vip(cpu="1").label(app="x").obj())
    assert feasible(h, away(make_pod("p"), app="x")) == ()
    assert feasible(h, away(make_pod("p").priority(6), app="x")) == ("n",)


def test_a_promised_enemy_counts_on_its_own_node_alone(h):
    """Upstream adds promised pods to the node in question, not to its zone."""
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    h.pod(vip("n1", cpu="1").label(app="x").obj())
    assert feasible(h, away(make_pod("p"), app="x")) == ("n2",)


def test_promises_on_unknown_nodes_are_kept_in_mind(h):
    h.pod(vip("later").obj())
    h.node(zoned("other").obj())
    assert Nominees(inside(h.core).cache).counting_for(make_pod("p").obj()) == {}
    h.node(zoned("later").obj())
    row = inside(h.core).cache.nodes.row_of("later")
    assert list(Nominees(inside(h.core).cache).counting_for(make_pod("p").obj())) == [row]


def test_a_promised_pod_that_cannot_be_read_takes_nothing(h):
    h.node(zoned("n", cpu="1").obj())
    h.pod(vip(cpu="a lot").obj())
    assert feasible(h, make_pod("p").request(cpu="1")) == ("n",)


# The promised node comes first


def test_the_promised_node_is_taken_though_another_is_better(h):
    h.node(zoned("worse", cpu="4").obj())
    h.node(zoned("better", cpu="400").obj())
    h.pod(vip("worse").obj())
    (bind,) = h.binds()
    assert bind.node == "worse"


@pytest.mark.parametrize("node", ["full", "gone", "ghost"])
def test_another_node_is_taken_if_the_promised_one_does_not_do(h, node):
    h.node(zoned("full", cpu="1").obj())
    h.node(zoned("other").obj())
    h.pod(make_pod("left-behind").on("ghost").obj())
    h.pod(vip(node, cpu="2").obj())
    (bind,) = h.binds()
    assert bind.node == "other"


def test_the_promised_node_is_not_taken_from_others_with_a_promise(h):
    h.node(zoned("n").obj())
    h.node(zoned("other").obj())
    h.pod(pinned(vip(cpu="3", priority=7, name="first").gate("g"), "n").obj())
    h.pod(vip(cpu="2", priority=5).obj())
    (bind,) = h.binds()
    assert bind.node == "other"


# How promises end


def free(h):
    return feasible(h, make_pod("p").request(cpu="2")) == ("n",)


def test_a_promise_ends_with_the_pod(h):
    full(h)
    assert not free(h)
    h.drop_pod(vip().obj())
    assert free(h)


def test_a_promise_ends_when_it_is_taken_back_or_moved(h):
    full(h)
    taken_back = vip()
    del taken_back.raw["status"]["nominatedNodeName"]
    h.pod(taken_back.obj())
    assert free(h)
    h.pod(vip().obj())
    assert not free(h)
    h.pod(vip("elsewhere").obj())
    assert free(h)


def test_a_promise_ends_when_somebody_binds_the_pod_elsewhere(h):
    full(h)
    h.pod(vip().on("elsewhere").obj())
    assert free(h)


def test_a_promise_ends_when_the_pod_is_placed(h):
    h.node(zoned("n").obj())
    h.pod(vip().obj())
    h.settle()
    assert len(inside(h.core).cache.nominations) == 0
    assert inside(h.core).cache.node_of("uid-vip") == "n"


def test_an_older_version_of_a_placed_pod_promises_nothing(h):
    h.node(zoned("n").obj())
    h.pod(vip().obj())
    h.settle()
    h.pod(vip().obj())
    assert len(inside(h.core).cache.nominations) == 0


def test_pods_of_other_schedulers_are_promised_nothing(h):
    h.node(zoned("n").obj())
    h.pod(vip().scheduler("somebody-else").obj())
    assert len(inside(h.core).cache.nominations) == 0


@pytest.mark.parametrize(("disk", "same"), [(False, True), (True, False)])
def test_what_a_promise_comes_to_is_remembered_unless_it_has_to_be_read_anew(h, disk, same):
    """Who uses volumes on a node may change while its promises stay as they are."""
    h.node(zoned("n").obj())
    pod = vip(cpu="1")
    if disk:
        pod.raw["spec"]["volumes"] = [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]
    h.pod(pod.obj())
    promises = inside(h.core).cycle._runtime.promised
    nominated = inside(h.core).cycle.nominees.counting_for(make_pod("p").obj())
    assert nominated is inside(h.core).cycle.nominees.counting_for(make_pod("q").obj())
    [(row, pods)] = nominated.items()
    assert (promises.difference(row, pods) is promises.difference(row, pods)) is same
