"""Who has to leave a node: order of reprieve, budgets, promises, and what dry runs can't do."""

import pytest

from k8s_scheduler.core.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import make_pod
from tests.unit.core.engine.cores import FullHarness, away, near, pinned, promised, spread, zoned


@pytest.fixture
def h():
    return FullHarness()


def preemption(h, pod):
    judgement = h.core.judge(pod.obj())
    assert judgement.feasible == ()
    return judgement.preemption


def found(h, pod):
    return {
        node: (tuple(v.removeprefix("default/") for v in c.victims), c.pdb_violations)
        for node, c in preemption(h, pod).candidates.items()
    }


def lesser(name, *, cpu="1", priority=0, start=1, node="n", **labels):
    pod = make_pod(name).request(cpu=cpu).priority(priority).label(**labels).on(node)
    pod.raw["status"]["startTime"] = f"2026-01-01T00:00:0{start}Z"
    return pod


def vip(cpu="1", priority=10):
    return make_pod("vip").request(cpu=cpu).priority(priority)


def test_the_least_important_leaves(h):
    h.node(zoned("n", cpu="3").obj())
    for name, priority, start in (("a", 1, 1), ("b", 0, 1), ("c", 0, 2)):
        h.pod(lesser(name, priority=priority, start=start).obj())
    assert found(h, vip()) == {"n": (("c",), 0)}
    assert found(h, vip("2")) == {"n": (("b", "c"), 0)}
    assert found(h, vip("3")) == {"n": (("a", "b", "c"), 0)}


def test_who_has_not_started_started_last(h):
    h.node(zoned("n", cpu="2").obj())
    newest = lesser("new")
    del newest.raw["status"]["startTime"]
    h.pod(newest.obj())
    h.pod(lesser("old", start=9).obj())
    assert found(h, vip()) == {"n": (("new",), 0)}


def test_the_important_are_reprieved_first_even_if_more_of_the_others_would_fit(h):
    h.node(zoned("n", cpu="3").obj())
    h.pod(lesser("large", cpu="2", priority=1).obj())
    h.pod(lesser("small", priority=0).obj())
    assert found(h, vip()) == {"n": (("small",), 0)}
    # And who does not fit any more leaves, though somebody less important may stay.
    assert found(h, vip("2")) == {"n": (("large",), 0)}


def test_who_a_budget_protects_is_reprieved_before_the_more_important(h):
    h.node(zoned("n", cpu="2").obj())
    h.budget("b", 0, app="x")
    h.pod(lesser("important", priority=5).obj())
    h.pod(lesser("protected", priority=0, app="x").obj())
    assert found(h, vip()) == {"n": (("important",), 0)}
    assert found(h, vip("2")) == {"n": (("important", "protected"), 1)}


def test_a_budget_protects_the_least_important_of_its_pods(h):
    """The budget is used up by the most important ones, so the others' leaving is forbidden."""
    h.node(zoned("n", cpu="3").obj())
    h.budget("b", 1, app="x")
    for number in range(3):
        h.pod(lesser(f"p{number}", priority=3 - number, app="x").obj())
    assert found(h, vip()) == {"n": (("p0",), 0)}
    assert found(h, vip("2")) == {"n": (("p0", "p2"), 1)}


def test_victims_are_told_in_the_order_of_importance(h):
    h.node(zoned("n", cpu="4").obj())
    h.budget("b", 0, app="x")
    for name, priority, labels in (
        ("a", 4, {}),
        ("b", 3, {"app": "x"}),
        ("c", 2, {}),
        ("d", 1, {"app": "x"}),
    ):
        h.pod(lesser(name, priority=priority, **labels).obj())
    assert found(h, vip("4")) == {"n": (("a", "b", "c", "d"), 2)}


def test_equals_are_no_victims(h):
    h.node(zoned("n", cpu="1").obj())
    h.pod(lesser("equal", priority=10).obj())
    assert found(h, vip()) == {}


def test_a_port_is_freed(h):
    h.node(zoned("n").obj())
    for name, port in (("a", 80), ("b", 81)):
        pod = lesser(name)
        pod.raw["spec"]["containers"][0]["ports"] = [{"hostPort": port}]
        h.pod(pod.obj())
    wants = vip()
    wants.raw["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    assert found(h, wants) == {"n": (("a",), 0)}


def test_an_enemy_leaves(h):
    h.node(zoned("n").obj())
    h.pod(lesser("enemy", app="x").obj())
    h.pod(lesser("other").obj())
    assert found(h, away(vip(), app="x")) == {"n": (("enemy",), 0)}


def test_an_enemy_on_another_node_of_the_zone_is_out_of_reach(h):
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    h.pod(lesser("enemy", app="x", node="n1").obj())
    h.pod(lesser("other", node="n2").obj())
    assert found(h, away(vip(), app="x")) == {"n1": (("enemy",), 0)}


def test_company_that_would_leave_is_no_help(h):
    h.node(zoned("n", cpu="1").obj())
    h.pod(lesser("friend", app="x").obj())
    assert found(h, near(vip(), app="x")) == {}


def test_crowds_are_thinned_out(h):
    h.node(zoned("n1", "z1").obj())
    h.node(zoned("n2", "z2", cpu="0").obj())
    for name in ("a", "b"):
        h.pod(lesser(name, app="x", node="n1", start=1 + (name == "b")).obj())
    pod = spread(vip().label(app="x"), app="x")
    assert found(h, pod) == {"n1": (("a", "b"), 0)}


# Promises


def test_a_promise_to_somebody_as_important_counts(h):
    h.node(zoned("n", cpu="3").obj())
    h.pod(lesser("a", cpu="2").obj())
    h.pod(promised(make_pod("first").request(cpu="2").priority(10), "n").obj())
    assert found(h, vip()) == {"n": (("a",), 0)}
    assert found(h, vip("2")) == {}


def test_a_promise_to_somebody_less_important_does_not_count(h):
    h.node(zoned("n", cpu="3").obj())
    h.pod(lesser("a", cpu="2").obj())
    h.pod(promised(make_pod("first").request(cpu="2").priority(9), "n").obj())
    assert h.core.judge(vip().obj()).feasible == ("n",)
    assert found(h, vip("2")) == {"n": (("a",), 0)}


# Nodes that do not come into question


def test_only_nodes_that_may_be_helped_are_tried(h):
    h.node(zoned("large", cpu="4").obj())
    h.node(zoned("small", cpu="1").obj())
    h.node(zoned("tainted", cpu="4").taint("k").obj())
    for node in ("large", "small", "tainted"):
        h.pod(lesser(f"on-{node}", cpu="1", node=node).obj())
    h.pod(lesser("more", cpu="2", priority=1, node="large").obj())
    assert found(h, vip("2")) == {"large": (("on-large",), 0)}


def test_a_node_set_is_respected(h):
    for node in ("n1", "n2"):
        h.node(zoned(node, cpu="1").obj())
        h.pod(lesser(f"on-{node}", node=node).obj())
    assert found(h, pinned(vip(), "n2")) == {"n2": (("on-n2",), 0)}


def test_a_nominated_node_that_is_gone_does_not_keep_anybody_waiting(h):
    """Its pods are still known; but nothing can be promised on a node that is not there."""
    h.node(zoned("gone").obj())
    h.node(zoned("n", cpu="1").obj())
    h.pod(lesser("other").obj())
    leaving = lesser("leaving", node="gone").deleting()
    leaving.raw["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ]
    h.pod(leaving.obj())
    h.drop_node("gone")
    told = preemption(h, promised(vip(), "gone"))
    assert told.not_eligible == ""
    assert told.picks == ("n",)


# Errors


def test_an_error_in_a_dry_run_names_plugin_and_problem(h, monkeypatch):
    h.node(zoned("n", cpu="1").obj())
    h.pod(lesser("a").obj())
    original = NodeResourcesFit.filter

    def filter_once(self, term, rows):
        if rows._delta is not None:
            raise RuntimeError("boom")
        return original(self, term, rows)

    monkeypatch.setattr(NodeResourcesFit, "filter", filter_once)
    told = h.core.judge(vip().obj()).preemption
    assert told.error == 'running Filter plugin "NodeResourcesFit": RuntimeError: boom'
    assert told.candidates == {}


def test_judging_changes_nothing(h):
    h.node(zoned("n", cpu="2").obj())
    for name in ("a", "b"):
        h.pod(lesser(name).obj())
    before = h.core.checkpoint()
    first = h.core.judge(vip("2").obj())
    assert h.core.checkpoint() == before
    assert h.core.judge(vip("2").obj()) == first
