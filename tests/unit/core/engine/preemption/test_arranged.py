"""Pods of a row are put in order once, and anew when something has changed."""

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.preemption import arranged
from k8s_scheduler.core.engine.preemption.arranged import Arranged
from k8s_scheduler.core.engine.preemption.disruption_budgets import Budgets
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.rows import NodeRow
from tests.builders import make_node, make_pod
from tests.unit.core.engine.preemption.test_disruption_budgets_in_force import budget, listing

ROW = NodeRow(0)


@pytest.fixture
def state():
    found = Cache()
    found.put_node(make_node("n0").offers(cpu="10", pods="10").obj())
    for number in range(6):
        put(found, f"p{number}", number % 3)
    return found


def put(state: Cache, name: str, priority: int = 0, node: str = "n0", **labels: str) -> None:
    pod = make_pod(name).label(app="x", **labels).priority(priority).request(cpu="1")
    state.put_bound(pod.on(node).obj())


def names(pods) -> list[str]:
    return [placed.pod.metadata.name for placed in pods]


def test_the_most_important_come_first_and_then_who_was_there_first(state):
    known = Arranged(state)
    assert names(known.below(ROW, 3).pods) == ["p2", "p5", "p1", "p4", "p0", "p3"]
    assert names(known.below(ROW, 1).pods) == ["p0", "p3"]
    assert names(known.below(ROW, 0).pods) == []


def test_what_they_take_is_added_up(state):
    sums = Arranged(state).below(ROW, 2).gone.sums
    assert (sums["requested/cpu"], sums["pod_count"]) == (-4000, -4)


def test_ports_are_free_once_they_are_gone(state):
    pod = make_pod("q").request(cpu="1").on("n0")
    pod.raw["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    state.put_bound(pod.obj())
    lesser = Arranged(state).below(ROW, 2)
    assert (lesser.has_ports, lesser.has_volumes) == (True, False)
    assert state.delta(ROW).port_users("TCP", 80)
    assert not lesser.gone.port_users("TCP", 80)
    assert lesser.departed().by(lambda pod: [p.port for p in pod.host_ports]) == {
        80: [names(lesser.pods).index("q")]
    }


def test_it_is_the_same_until_a_pod_of_the_row_changes(state):
    state.put_node(make_node("n1").offers(cpu="10", pods="10").obj())
    known = Arranged(state)
    before = known.below(ROW, 2)
    put(state, "elsewhere", node="n1")
    assert known.below(ROW, 2) is before
    put(state, "p0", 1)
    assert names(known.below(ROW, 1).pods) == ["p3"]
    state.remove_pod(PodUid("uid-p3"))
    assert names(known.below(ROW, 1).pods) == []


def test_budgets_are_asked_again_when_they_have_changed(state):
    lesser, budgets = Arranged(state).below(ROW, 1), Budgets()
    free = listing([])
    assert lesser.divided(budgets, free) == (lesser.pods, 0)
    strict = listing([budget(1)])
    waiting, protected = lesser.divided(budgets, strict)
    assert (names(waiting), protected) == (["p3", "p0"], 1)
    assert lesser.divided(budgets, strict)[0] is waiting
    assert lesser.divided(budgets, free) == (lesser.pods, 0)


def test_only_so_many_pods_are_kept(state, monkeypatch):
    monkeypatch.setattr(arranged, "MAX_PODS", 8)
    state.put_node(make_node("n1").obj())
    for number in range(4):
        put(state, f"q{number}", node="n1")
    known = Arranged(state)
    before = known.below(ROW, 2)
    assert known.below(NodeRow(1), 2)
    assert known.below(ROW, 2) is not before
    assert len(known._rows) == 1


def test_only_so_many_priorities_of_a_row_are_kept(state, monkeypatch):
    monkeypatch.setattr(arranged, "MAX_PRIORITIES", 2)
    known = Arranged(state)
    for priority in (3, 2, 1, 0):
        known.below(ROW, priority)
        assert len(known._rows[ROW]._known) <= 2
    assert names(known.below(ROW, 1).pods) == ["p0", "p3"]


def test_what_nobody_asks_for_is_let_go(state):
    known = Arranged(state)
    before = known.below(ROW, 2)
    known.tidy()
    assert known.below(ROW, 2) is before
    known.tidy()
    known.tidy()
    assert not known._rows
