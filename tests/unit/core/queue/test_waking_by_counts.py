"""Pods that come and leave: judged again are those parked ones alone whose plugins count them."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.messages.outgoing import Evict
from k8s_scheduler.core.queue import interest, waking
from k8s_scheduler.core.queue.prices import judging, price_of
from k8s_scheduler.core.state.news.pod_news import PodNews
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness, away, near, pinned, spread, zoned
from tests.unit.core.harness import only


@pytest.fixture
def h():
    found = FullHarness()
    found.node(zoned("n1").obj())
    found.node(zoned("n2", "other").obj())
    return found


@pytest.fixture
def judged(h, monkeypatch):
    """Of each judgement by waking, how many rows it was about."""
    found: list[int] = []
    runtime = inside(h.core).parked.waker._judge._runtime
    original = runtime.run_filters

    def run_filters(profile, pod, rows, *rest, **options):
        found.append(len(rows))
        return original(profile, pod, rows, *rest, **options)

    monkeypatch.setattr(runtime, "run_filters", run_filters)
    return found


def names(h):
    return [bind.name for bind in h.out if hasattr(bind, "node")]


def park(h, judged, *pods):
    """Let pods be parked, and be judged once: by that it is known what counts."""
    for pod in pods:
        h.pod(pod.obj())
    h.settle()
    h.pod(make_pod("passer-by").on("n1").obj())
    h.settle()
    assert h.parked() == [pod.raw["metadata"]["name"] for pod in pods]
    judged.clear()


def test_pods_that_nobody_counts_cost_no_judgement(h, judged):
    park(h, judged, near(make_pod("p"), app="x"))
    h.pod(make_pod("y").label(app="y").on("n1").obj())
    elsewhere = make_pod("x").namespace("elsewhere").label(app="x").on("n1").obj()
    h.pod(elsewhere)
    h.settle()
    h.drop_pod(elsewhere)
    h.settle()
    assert judged == []


def test_a_thousand_parked_shapes_are_not_even_looked_at(h, judged, monkeypatch):
    park(h, judged, *(near(make_pod(f"p{i:04}"), app=f"x{i}") for i in range(1000)))
    seen = []
    waker = inside(h.core).parked.waker
    original = waker._look_at
    monkeypatch.setattr(
        waker, "_look_at", lambda r, alike: seen.append(alike) or original(r, alike)
    )
    h.pod(make_pod("y").label(app="y").on("n1").obj())
    h.settle()
    assert seen == []
    h.pod(make_pod("friend").label(app="x77").on("n1").obj())
    h.settle()
    assert len(seen) == 1
    assert names(h) == ["p0077"]


def test_a_friend_that_comes_wakes(h, judged):
    park(h, judged, near(make_pod("p"), app="x"))
    h.pod(make_pod("friend").label(app="x").on("n2").obj())
    h.settle()
    assert judged == [2]
    assert names(h) == ["p"]


def test_a_pod_that_becomes_a_friend_wakes(h, judged):
    friend = make_pod("friend").label(app="y").on("n2")
    h.pod(friend.obj())
    park(h, judged, near(make_pod("p"), app="x"))
    h.pod(friend.label(app="x").version(2).obj())
    h.settle()
    assert names(h) == ["p"]


def test_an_enemy_that_is_one_no_more_wakes(h, judged):
    enemy = make_pod("enemy").label(app="x").on("n1")
    h.pod(enemy.obj())
    park(h, judged, pinned(away(make_pod("p"), app="x"), "n1"))
    h.pod(enemy.label(app="y").version(2).obj())
    h.settle()
    assert names(h) == ["p"]


def test_an_enemy_among_many_terms_wakes(h, judged):
    enemy = make_pod("enemy").label(app="x5").on("n1").obj()
    h.pod(enemy)
    p = pinned(make_pod("p"), "n1")
    for i in range(10):
        away(p, app=f"x{i}")
    park(h, judged, p)
    h.pod(make_pod("y").label(app="y").on("n1").obj())
    h.settle()
    assert judged == []
    h.drop_pod(enemy)
    h.settle()
    assert names(h) == ["p"]


def test_a_pod_with_more_terms_than_are_remembered_is_judged_each_time(h, judged, monkeypatch):
    monkeypatch.setattr(interest, "_MOST", 4)
    p = pinned(make_pod("p"), "n1")
    for i in range(10):
        away(p, app=f"x{i}")
    enemy = make_pod("enemy").label(app="x5").on("n1").obj()
    h.pod(enemy)
    park(h, judged, p)
    h.drop_pod(enemy)
    h.settle()
    assert names(h) == ["p"]


def test_a_pod_that_refused_company_wakes_when_it_leaves(h, judged):
    hermit = away(make_pod("hermit"), app="x").on("n1").obj()
    h.pod(hermit)
    park(h, judged, pinned(make_pod("p").label(app="x"), "n1"))
    h.drop_pod(hermit)
    h.settle()
    assert names(h) == ["p"]


def test_one_that_came_later_and_refused_company_wakes_when_it_leaves(h, judged):
    """It is met only where the pod was rejected for something else when all nodes were judged."""
    enemy = make_pod("enemy").label(app="z").on("n1").obj()
    h.pod(enemy)
    park(h, judged, pinned(away(make_pod("p").label(app="x"), app="z"), "n1"))
    hermit = away(make_pod("hermit"), app="x").on("n1").obj()
    h.pod(hermit)
    h.settle()
    h.drop_pod(enemy)
    h.settle()
    assert h.parked() == ["p"]
    h.drop_pod(hermit)
    h.settle()
    assert names(h) == ["p"]


def test_spreading_is_news_in_its_own_namespace_alone(h, judged):
    h.node(zoned("n2", "other").cordoned().obj())
    h.pod(make_pod("a").label(app="x").on("n1").obj())
    park(h, judged, spread(make_pod("p").label(app="x"), app="x"))
    h.pod(make_pod("b").namespace("elsewhere").label(app="x").on("n2").obj())
    h.settle()
    assert judged == []
    h.pod(make_pod("c").label(app="x").on("n2").obj())
    h.settle()
    assert names(h) == ["p"]


def test_a_namespace_that_is_picked_later_counts_from_then_on(h, judged):
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "namespaceSelector": {"matchLabels": {"team": "red"}},
    }
    p = make_pod("p")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    p.raw["spec"]["affinity"] = {"podAffinity": {required: [term]}}
    park(h, judged, p)
    h.object(Kind.NAMESPACE, "elsewhere", metadata={"labels": {"team": "red"}})
    h.settle()
    h.pod(make_pod("friend").namespace("elsewhere").label(app="x").on("n2").obj())
    h.settle()
    assert names(h) == ["p"]


def test_room_on_a_node_is_news_whoever_leaves(h, judged):
    large = make_pod("large").request(cpu="4").on("n2").obj()
    h.pod(large)
    h.pod(make_pod("x").label(app="x").on("n1").obj())
    park(h, judged, away(make_pod("p").request(cpu="1"), app="x"))
    h.drop_pod(large)
    h.settle()
    assert judged == [1]
    assert names(h) == ["p"]


def test_a_pod_that_could_preempt_is_woken_by_a_victim_alone(h, judged):
    enemy = make_pod("enemy").label(app="x").priority(9).on("n1").obj()
    h.pod(enemy)
    park(h, judged, pinned(away(make_pod("p").priority(5), app="x"), "n1"))
    h.pod(make_pod("y").label(app="y").on("n1").obj())
    h.settle()
    assert judged == []
    h.pod(make_pod("lesser").label(app="x").on("n1").obj())
    h.drop_pod(enemy)
    h.settle()
    assert [evict.victim.name for evict in only(Evict, h.out)] == ["lesser"]


def test_after_a_checkpoint_any_pod_may_have_come(h, judged):
    park(h, judged, near(make_pod("p"), app="x"))
    h.pod(make_pod("friend").label(app="x").on("n2").obj())
    h.core.checkpoint()
    h.settle()
    assert names(h) == ["p"]


# What is known of pods


def looks(*pods):
    news = PodNews()
    for pod in pods:
        news.meet(pod.obj())
    return news


def test_a_pod_is_behind_the_doors_of_its_namespace_and_labels():
    news = looks(make_pod("p").namespace("a").label(app="x"))
    assert list(news.doors) == [
        (None, None),
        ("a", None),
        (None, ("app", "x")),
        ("a", ("app", "x")),
    ]
    assert not news.hold_terms
    assert looks(away(make_pod("p"), app="x")).hold_terms


def test_where_there_are_too_many_doors_it_may_have_been_any(monkeypatch):
    monkeypatch.setattr(PodNews, "MOST", 100)
    news = looks(*(make_pod("p").label(app=f"x{i}") for i in range(60)))
    assert news.is_any
    assert not news.doors
    others = looks(make_pod("p"))
    others.include(news)
    assert others.is_any


# Steps


def test_a_group_costs_as_much_as_there_are_rows_to_judge(h, judged, monkeypatch):
    pods = [near(make_pod(f"p{i}"), app=f"x{i}") for i in range(8)]
    for i in range(20):
        h.node(zoned(f"more{i}").obj())
    for pod in pods:
        h.pod(pod.obj())
    h.settle()
    judged.clear()
    price = price_of(pods[0].obj())
    monkeypatch.setattr(waking, "WORK_PER_STEP", 2 * judging(price, 22))
    h.pod(make_pod("passer-by").on("n1").obj())
    h.schedule()
    assert judged == [22, 22]
    assert judging(price, 5000) == 6 * price
