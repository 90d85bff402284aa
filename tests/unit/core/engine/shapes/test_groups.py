"""Rows that look alike: what is kept of their groups, and when it is let go."""

import numpy as np
import pytest

from k8s_scheduler.api.selectors.labels import pairs_of
from k8s_scheduler.core.engine.shapes.groups import LIMITS, Groups
from k8s_scheduler.core.engine.shapes.row_columns import NEVER
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import FEW
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.counts.questions import SelectedPods
from tests.builders import make_node, make_pod

WEB = SelectedPods(((("default",), pairs_of({"app": "web"})),), with_terminating=False)
NODES = 6
BASE = np.arange(NODES) * 10


@pytest.fixture
def cache():
    """Six nodes in two zones, in turns."""
    found = Cache()
    for number in range(NODES):
        found.put_node(make_node(f"n{number}").label(zone="ab"[number % 2]).obj())
    return found


@pytest.fixture
def groups(cache):
    """Grouped by zone and by how many pods are on a row: the groups 0 (a) and 1 (b)."""
    found = Groups(cache)
    found.add_keys({"label/zone": None, (cache.pods.counters.get(WEB), None): None})
    found.lay_out(cache.nodes.present_rows(), np.ones(NODES, dtype=np.bool_))
    assert found.of_row.tolist() == [0, 1] * 3
    return found


def put_pod(cache, groups, row):
    """Let a pod come to a row, and put the row where it belongs."""
    number = int(cache.pods.counters.get(WEB).by_row[row])
    cache.put_bound(make_pod(f"p{row}-{number}").label(app="web").on(f"n{row}").obj())
    rows = groups.stale_rows(have_moved=False)
    groups.place_by_counts(rows, [True] * len(rows))


class TestAsked:
    """Those that have feasible rows, with a row of each."""

    def test_it_is_the_same_while_only_other_rows_than_the_members_move(self, cache, groups):
        put_pod(cache, groups, 2)
        asked = groups.asked()
        assert (asked.groups, asked.members.tolist()) == ([0, 1, 2], [0, 1, 2])
        put_pod(cache, groups, 4)
        assert groups.asked() is asked

    def test_a_group_is_asked_from_its_first_row_on(self, cache, groups):
        assert groups.asked().groups == [0, 1]
        put_pod(cache, groups, 2)
        assert groups.asked().groups == [0, 1, 2]

    def test_a_member_that_leaves_is_replaced(self, cache, groups):
        put_pod(cache, groups, 2)
        assert groups.asked().members.tolist() == [0, 1, 2]
        put_pod(cache, groups, 0)
        assert groups.asked().members.tolist() == [4, 1, 2]

    def test_a_group_is_asked_as_long_as_it_has_a_feasible_row(self, groups):
        assert groups.asked().groups == [0, 1]
        groups.count([0, 2, 4], feasible=False)
        assert groups.asked().groups == [1]
        groups.count([2], feasible=True)
        assert groups.asked().groups == [0, 1]

    def test_it_is_another_one_when_nodes_have_moved(self, groups):
        asked = groups.asked()
        groups.stale_rows(have_moved=False)
        assert groups.asked() is asked
        groups.stale_rows(have_moved=True)
        assert groups.asked() is not asked

    def test_rows_are_counted_again_when_they_have_changed(self, cache, groups):
        asked = groups.asked()
        asked.count(groups.counts, groups.count_changes)
        nodes = asked.nodes
        assert (asked.each, asked.total) == ([3, 3], 6)
        groups.count([4], feasible=False)
        asked.count(groups.counts, groups.count_changes)
        assert (asked.each, nodes.tolist(), asked.total) == ([2, 3], [2, 3], 5)

    def test_many_groups_are_counted_as_few_are(self, cache):
        for number in range(NODES, 3 * FEW):
            cache.put_node(make_node(f"n{number}").label(zone=f"z{number}").obj())
        found = Groups(cache)
        found.add_keys({"label/zone": None})
        found.lay_out(cache.nodes.present_rows(), np.ones(3 * FEW, dtype=np.bool_))
        asked = found.asked()
        nodes = asked.nodes
        found.count([0], feasible=False)
        asked.count(found.counts, found.count_changes)
        assert len(asked.groups) > FEW
        assert nodes.tolist() == asked.each == [2, 3] + [1] * (3 * FEW - NODES)

    def test_what_is_left_goes_by_the_codes(self, groups, monkeypatch):
        monkeypatch.setattr(LIMITS, "choices", 1)
        asked = groups.asked()
        left = asked.left([7, 0])
        assert (left.groups, left.members.tolist()) == ([1], [1])
        assert asked.left([7, 0]) is left
        assert asked.left([0, 7]).groups == [0]
        assert asked.left([7, 7]).groups == []
        assert asked.left([7, 0]) is not left

    def test_views_are_kept_for_one_who_takes_down(self, groups):
        asked, reads = groups.asked(), Reads()
        views = asked.views(reads)
        assert asked.views(reads) is views
        assert asked.views(Reads()) is not views

    def test_groups_that_are_not_asked_never_add_up(self, groups):
        left = groups.asked().left([0, 7])
        assert left.addend(None, 2).tolist() == [0, NEVER]
        assert left.addend(np.array([5]), 2).tolist() == [5, NEVER]
        # A group more, and what was said before is still there.
        assert left.addend(None, 3).tolist() == [0, NEVER, NEVER]
        assert groups.asked().addend(np.array([5, 6]), 2).tolist() == [5, 6]


class TestAddTo:
    """What rows have by their groups."""

    def test_it_follows_rows_that_move_between_two_times(self, cache, groups):
        put_pod(cache, groups, 5)
        by_group = np.array([1, 2, 3])
        for _ in range(3):
            assert groups.add_to(BASE, by_group).tolist() == [1, 12, 21, 32, 41, 53]
        put_pod(cache, groups, 3)
        assert groups.add_to(BASE, by_group).tolist() == [1, 12, 21, 33, 41, 53]

    def test_it_follows_rows_that_move_to_a_new_group(self, cache, groups):
        for _ in range(3):
            groups.add_to(BASE, np.array([1, 2]))
        put_pod(cache, groups, 5)
        assert groups.add_to(BASE, np.array([1, 2, 3])).tolist() == [1, 12, 21, 32, 41, 53]
        assert groups.add_to(BASE, np.array([1, 2, 3])).tolist() == [1, 12, 21, 32, 41, 53]

    def test_what_was_returned_stays_as_it_is(self, groups):
        first, second = (groups.add_to(BASE, np.array([1, 2])) for _ in range(2))
        third = groups.add_to(BASE, np.array([3, 4]))
        assert first.tolist() == second.tolist() == [1, 12, 21, 32, 41, 52]
        assert third.tolist() == [3, 14, 23, 34, 43, 54]

    def test_rows_grow(self, cache, groups):
        for _ in range(2):
            groups.add_to(BASE, np.array([1, 2]))
        groups.grow(NODES + 1)
        found = groups.add_to(np.arange(NODES + 1), np.array([1, 2]))
        assert found[:NODES].tolist() == [1, 3, 3, 5, 5, 7]


def test_a_row_without_a_node_is_in_no_group(cache, groups):
    cache.remove_node("n2")
    groups.count([2], feasible=False)
    assert groups.stale_rows(have_moved=True) == []
    groups.place([2, 4], [False, True])
    assert groups.of_row.tolist() == [0, 1, -1, 1, 0, 1]
    assert groups.counts == [2, 3]
