"""Counts of pods in views: to those who declared them, for the rows in view."""

import numpy as np
import pytest

from k8s_scheduler.api.selectors.labels import pairs_of
from k8s_scheduler.core.framework.dependencies import Declarations, Row
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView, UndeclaredReadError
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.counts.questions import SelectedPods, TermHolders
from k8s_scheduler.core.state.news.facts import LABELS, PODS
from k8s_scheduler.core.state.terms.picked_terms import NOT_PICKED, Purpose
from tests.builders import Reading, make_node, make_pod
from tests.unit.core.engine.cores import away

WEB = (("default",), pairs_of({"app": "web"}))
LIVELY = SelectedPods((WEB,), with_terminating=False)
ALL = SelectedPods((WEB,), with_terminating=True)
HELD_BY_NOBODY = TermHolders(NOT_PICKED, Purpose.REFUSING, "zone")


@pytest.fixture
def cache():
    found = Cache()
    for name in ("a1", "a2", "b1"):
        found.put_node(make_node(name).label(zone=name[0], host=name).obj())
    found.put_node(make_node("bare").obj())
    found.put_bound(make_pod("p").label(app="web").on("a1").obj())
    found.put_bound(make_pod("q").label(app="web").on("a2").deleting().obj())
    found.put_bound(away(make_pod("r"), app="web").on("b1").obj())
    found.put_bound(make_pod("s").label(app="web").on("bare").obj())
    return found


def view(cache, *columns, rows=None, reads=None, wide=False):
    return RowsView(
        cache,
        cache.nodes.present_rows() if rows is None else np.array(rows),
        reader=Reading("test", Declarations(map(Row, columns))),
        verdicts=VerdictTable(),
        reads=reads,
    ).seen_as(wide=wide)


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2, 0], [3]])
def test_counts_of_the_rows_in_view(cache, rows):
    seen = view(cache, "pods/", "label/", rows=rows)
    here, near = {LIVELY: [1, 0, 0, 1], ALL: [1, 1, 0, 1]}, {LIVELY: [1, 1, 0, 0]}
    near[ALL] = [2, 2, 0, 0]
    for counted, by_row in here.items():
        counter = seen.counter(counted)
        assert seen.count_here(counter).tolist() == [by_row[row] for row in rows]
        assert seen.count_near(counter, "zone").tolist() == [near[counted][row] for row in rows]
    newcomer = PodView(make_pod("new").label(app="web").obj())
    picked = seen.terms_picking(newcomer, {})
    (key,) = picked.keys[Purpose.REFUSING]
    held = seen.counter(TermHolders(picked, Purpose.REFUSING, key))
    assert seen.count_here(held).tolist() == [[0, 0, 1, 0][row] for row in rows]
    assert seen.has_label("zone").tolist() == [row != 3 for row in rows]


def test_counts_of_all_nodes_whichever_are_in_view(cache):
    seen = view(cache, "pods/", "label/", rows=[3])
    counter = seen.counter(ALL)
    assert seen.count_by_domain(counter, "zone").tolist()[seen.label_id("a")] == 2
    assert seen.count_by_domain(counter, "zone").sum() == 2
    assert seen.count_everywhere(counter).tolist() == [1, 1, 0, 1]
    assert seen.count_any(counter, "zone")
    assert not seen.count_any(counter, "rack")
    assert [seen.label_value(domain) for domain in seen.domains("zone")] == ["a", "b"]
    assert not seen.is_label_on_all_nodes("zone")
    cache.remove_node("bare")
    assert seen.is_label_on_all_nodes("zone")


def test_nobody_writes_to_the_state_through_a_view(cache):
    seen = view(cache, "pods/", "label/")
    counter = seen.counter(ALL)
    seen.count_near(counter, "zone")[:] = 7
    for shared in (seen.count_here(counter), seen.count_by_domain(counter, "zone")):
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 7
    assert seen.count_here(counter).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("counted", "columns", "missing"),
    [
        (ALL, ["pods/terminating", "pods/terms"], "pods/labels"),
        (LIVELY, ["pods/labels", "pods/terms"], "pods/terminating"),
        (HELD_BY_NOBODY, ["pods/labels", "pods/terminating"], "pods/terms"),
    ],
)
def test_counts_have_to_be_declared(cache, counted, columns, missing):
    counter = cache.pods.counters.get(counted)
    seen = view(cache, "label/", *columns)
    for read in (
        lambda: seen.counter(counted),
        lambda: seen.count_here(counter),
        lambda: seen.count_near(counter, "zone"),
        lambda: seen.count_by_domain(counter, "zone"),
        lambda: seen.count_everywhere(counter),
        lambda: seen.count_any(counter, "zone"),
        lambda: seen.count_version(counter),
    ):
        with pytest.raises(UndeclaredReadError, match=missing):
            read()


def test_what_is_counted_before_rows_are_judged_depends_on_all_pods_and_labels(cache):
    reads = Reads()
    counter = cache.pods.counters.get(ALL)
    view(cache, "pods/", "label/", reads=reads).count_any(counter, "zone")
    assert (reads.wide_facts, reads.presences) == (0, {(counter, "zone"): True})
    view(cache, "pods/", "label/", reads=reads, wide=True).count_here(counter)
    assert reads.wide_facts == PODS | LABELS


def test_topologies_have_to_be_declared(cache):
    seen = view(cache, "pods/", "label/host")
    counter = seen.counter(ALL)
    assert seen.count_near(counter, "host").tolist() == [1, 1, 0, 0]
    assert seen.has_label("host").tolist() == [True, True, True, False]
    for read in (
        lambda: seen.count_near(counter, "zone"),
        lambda: seen.count_by_domain(counter, "zone"),
        lambda: seen.count_any(counter, "zone"),
        lambda: seen.has_label("zone"),
        lambda: seen.is_label_on_all_nodes("zone"),
        lambda: seen.domains("zone"),
    ):
        with pytest.raises(UndeclaredReadError, match="label/zone"):
            read()


def test_what_selects_a_pod():
    pod = PodView(make_pod("p").label(app="web", tier="x").obj())
    assert pod.is_selected_by(())
    assert pod.is_selected_by(pairs_of({"app": "web"}))
    assert not pod.is_selected_by(pairs_of({"app": "db"}))
    assert not pod.is_selected_by(None)
    assert pod.has_labels({"app": "web"})
    assert not pod.has_labels({"app": "web", "tier": "y"})
    assert not PodView(make_pod("q").obj()).has_labels({"app": "web"})


class TestSettled:
    """A view that is asked again and again shows counts as they are now."""

    def test_counts_are_read_anew_and_taken_down_once(self, cache):
        reads = Reads()
        shown = view(cache, "pods/", "label/", rows=[2, 0], reads=reads)
        shown.settle()
        counter = shown.counter(LIVELY)
        domains = shown.domains("zone")
        for more in range(3):
            assert shown.count_near(counter, "zone").tolist() == [0, 1 + more]
            assert shown.count_here(counter).tolist() == [0, 1 + more]
            assert sorted(shown.count_in(counter, "zone", domains).tolist()) == [0, 1 + more]
            cache.put_bound(make_pod(f"m{more}").label(app="web").on("a1").obj())
        assert list(reads.narrow) == [(counter, "zone"), (counter, None)]
        assert list(reads.wide_counters) == [counter]

    def test_a_view_of_all_nodes_never_settles(self, cache):
        shown = view(cache, "pods/", "label/", rows=None)
        shown.settle()
        counter = shown.counter(LIVELY)
        assert shown.count_near(counter, "zone").tolist() == [1, 1, 0, 0]
        cache.put_node(make_node("b1").label(zone="a", host="b1").obj())
        assert shown.count_near(counter, "zone").tolist() == [1, 1, 1, 0]

    @pytest.mark.parametrize("read", ["count_near", "count_in"])
    def test_what_is_not_declared_is_not_shown(self, cache, read):
        shown = view(cache, "pods/labels", "pods/terminating", rows=[2, 0])
        shown.settle()
        more = (np.array([0]),) if read == "count_in" else ()
        with pytest.raises(UndeclaredReadError, match="label/zone"):
            getattr(shown, read)(cache.pods.counters.get(LIVELY), "zone", *more)
