"""Counters: born on demand, kept up to date, dropped when nobody asks."""

import pytest

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.selectors.labels import pairs_of
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.counts.concerned import ConcernIndex
from k8s_scheduler.core.state.counts.live_counters import Counters
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.counts.questions import SelectedPods
from tests.builders import make_node, make_pod


def apps(name, *, namespaces=("default",), with_terminating=True):
    return SelectedPods(((namespaces, pairs_of({"app": name})),), with_terminating)


class Bench:
    def __init__(self, nodes=3):
        self.cache = Cache()
        self.counters = self.cache.pods.counters
        for number in range(nodes):
            self.node(f"n{number}", zone="ab"[number % 2])

    def node(self, name, **labels):
        self.cache.put_node(make_node(name).label(host=name, **labels).obj())

    def place(self, name, node, app="web"):
        self.cache.put_bound(make_pod(name).label(app=app).on(node).obj())

    def zones(self, counter):
        labels = self.cache.nodes.labels
        counts = enumerate(counter.by_domain("zone").tolist())
        return {labels.value(value_id): count for value_id, count in counts if count}


def test_counts_what_was_there_before_and_what_comes_and_goes():
    bench = Bench()
    bench.place("p", "n0")
    counter = bench.counters.get(apps("web"))
    assert bench.zones(counter) == {"a": 1}
    bench.place("q", "n1")
    bench.place("other", "n1", app="db")
    assert counter.by_row[:3].tolist() == [1, 1, 0]
    assert bench.zones(counter) == {"a": 1, "b": 1}
    assert counter.total("zone") == 2
    bench.cache.remove_pod(PodUid(make_pod("p").obj().metadata.uid))
    assert bench.zones(counter) == {"b": 1}


def test_a_node_takes_its_pods_to_another_domain():
    bench = Bench()
    bench.place("p", "n0")
    counter = bench.counters.get(apps("web"))
    assert bench.zones(counter) == {"a": 1}
    bench.node("n0", zone="new")
    assert bench.zones(counter) == {"new": 1}
    bench.cache.remove_node(NodeName("n0"))
    assert (bench.zones(counter), counter.total("zone")) == ({}, 0)
    bench.node("n0", zone="b")
    assert (bench.zones(counter), counter.total("zone")) == ({"b": 1}, 1)


def test_a_topology_that_no_node_has_yet():
    bench = Bench()
    bench.place("p", "n0")
    counter = bench.counters.get(apps("web"))
    assert counter.total("rack") == 0
    before = counter.version
    bench.node("n0", zone="a", rack="r")
    assert counter.version > before
    assert counter.total("rack") == 1


def test_grows_with_the_table():
    bench = Bench(1)
    counter = bench.counters.get(apps("web"))
    assert counter.total("host") == 0
    for number in range(200):
        bench.node(f"more{number}", zone="c")
        bench.place(f"p{number}", f"more{number}")
    assert counter.by_row[:201].tolist() == [0, *200 * [1]]
    assert counter.total("host") == 200
    assert counter.by_domain("host").max() == 1


def test_one_counter_for_one_question():
    bench = Bench()
    first = bench.counters.get(apps("web"))
    assert bench.counters.get(apps("web")) is first
    assert bench.counters.get(apps("web", with_terminating=False)) is not first


def test_the_one_not_asked_for_longest_is_dropped_and_comes_back(monkeypatch):
    monkeypatch.setattr(Counters, "LIMIT", 2)
    bench = Bench()
    web, db, cron = (bench.counters.get(apps(name)) for name in ("web", "db", "cron"))
    for counter in (web, db, web, cron):
        assert counter.total("zone") == 0
    assert [web.is_live, db.is_live, cron.is_live] == [True, False, True]
    bench.place("p", "n0", app="db")
    assert bench.counters.get(apps("db")) is db
    assert bench.zones(db) == {"a": 1}
    assert [web.is_live, db.is_live, cron.is_live] == [False, True, True]
    assert len(bench.counters) == 2


def test_a_single_row_is_counted_anew_too(monkeypatch):
    monkeypatch.setattr(Counters, "LIMIT", 1)
    bench = Bench()
    web, db = (bench.counters.get(apps(name)) for name in ("web", "db"))
    assert web.count_at(1) == 0
    assert db.count_at(1) == 0
    bench.place("p", "n1")
    assert not web.is_live
    assert (web.count_at(1), web.count_at(2)) == (1, 0)
    # Behind all rows there are.
    assert web.count_at(len(web.by_row)) == 0


def test_whoever_asks_a_dropped_counter_knows_that_much_may_have_happened(monkeypatch):
    monkeypatch.setattr(Counters, "LIMIT", 1)
    bench = Bench()
    web, db = (bench.counters.get(apps(name)) for name in ("web", "db"))
    cursor = web.version
    bench.place("p", "n1")
    assert web.rows_since(cursor) == [1]
    cursor = web.version
    assert db.total("zone") == 0
    assert web.rows_since(cursor) is None


def test_the_log_is_bounded(monkeypatch):
    monkeypatch.setattr(PodCounter, "LOGGED", 2)
    bench = Bench()
    counter = bench.counters.get(apps("web"))
    start = counter.version
    for number in range(4):
        bench.place(f"p{number}", f"n{number % 3}")
    assert counter.rows_since(start) == [0, 1, 2, 0]
    bench.place("one-more", "n2")
    assert counter.rows_since(start) is None
    assert counter.rows_since(start + 2) == [2, 0, 2]
    assert counter.rows_since(counter.version) == []


def test_versions_grow_with_what_is_counted_alone():
    bench = Bench()
    bench.place("p", "n0")
    everybody = bench.counters.get(apps("web"))
    lively = bench.counters.get(apps("web", with_terminating=False))
    assert (bench.zones(everybody), bench.zones(lively)) == ({"a": 1}, {"a": 1})
    versions = everybody.version, lively.version
    bench.place("other", "n0", app="db")
    bench.node("empty", zone="a")
    bench.node("n2", zone="b")
    assert (everybody.version, lively.version) == versions
    bench.cache.put_bound(make_pod("p").label(app="web").on("n0").deleting().obj())
    assert everybody.version == versions[0]
    assert lively.version > versions[1]
    bench.cache.put_bound(make_pod("p").label(app="web", more="x").on("n0").deleting().obj())
    assert everybody.version == versions[0], "other labels, but picked all the same"


@pytest.mark.parametrize("namespace", ["default", "elsewhere"])
def test_new_labels_ask_only_counters_that_they_may_concern(namespace, monkeypatch):
    bench = Bench()
    for number in range(50):
        bench.counters.get(apps(f"a{number}")).by_row.sum()
        bench.counters.get(apps(f"a{number}", namespaces=None)).by_row.sum()
    asked = []
    picks = SelectedPods.picks
    monkeypatch.setattr(
        SelectedPods, "picks", lambda spec, *about: asked.append(spec) or picks(spec, *about)
    )
    pod = make_pod("p").namespace(namespace).label(app="a7", own="p").on("n0").obj()
    bench.cache.put_bound(pod)
    here = [apps("a7")] if namespace == "default" else []
    assert asked == [apps("a7", namespaces=None), *here]


def of_set(number, **more):
    return make_pod(f"db-{number}").label(app="db", index=str(number), **more).on("n0").obj()


def test_labels_that_no_counter_looks_at_are_not_asked_about_again(monkeypatch):
    bench = Bench()
    everybody = bench.counters.get(apps("db"))
    assert everybody.by_row[0] == 0
    asked = []
    picks = SelectedPods.picks
    monkeypatch.setattr(
        SelectedPods, "picks", lambda spec, *about: asked.append(spec) or picks(spec, *about)
    )
    for number in range(5):
        bench.cache.put_bound(of_set(number))
    assert everybody.by_row[0] == 5
    assert asked == [apps("db")]


def test_a_counter_that_looks_at_another_label_tells_sets_apart(monkeypatch):
    monkeypatch.setattr(Counters, "LIMIT", 2)
    bench = Bench()
    third = SelectedPods(((("default",), pairs_of({"index": "3"})),), with_terminating=True)
    everybody, one = bench.counters.get(apps("db")), bench.counters.get(third)
    assert everybody.by_row[0] == 0
    for number in range(4):
        bench.cache.put_bound(of_set(number))
    assert (everybody.by_row[0], one.by_row[0]) == (4, 1)
    for number in (3, 4):
        bench.cache.put_bound(of_set(number, more="x"))
    bench.cache.remove_pod(PodUid(of_set(0).metadata.uid))
    assert (everybody.by_row[0], one.by_row[0]) == (4, 1)
    # Makes room for itself: the first is no longer kept up to date.
    assert bench.counters.get(apps("web")).by_row[0] == 0
    bench.cache.put_bound(of_set(5))
    bench.cache.remove_pod(PodUid(of_set(3).metadata.uid))
    assert (everybody.is_live, one.is_live) == (False, True)
    assert (one.by_row[0], everybody.by_row[0]) == (0, 4)


def test_few_looks_of_label_sets_are_remembered(monkeypatch):
    monkeypatch.setattr(ConcernIndex, "SEEN", 2)
    bench = Bench()
    names = [f"a{number}" for number in range(5)]
    found = [bench.counters.get(apps(name)) for name in names]
    assert [counter.by_row[0] for counter in found] == [0] * 5
    for name in names:
        bench.place(name, "n0", app=name)
    assert [counter.by_row[0] for counter in found] == [1] * 5
    assert len(bench.counters._index._seen) <= 2
