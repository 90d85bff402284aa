"""Which resources have a column where there are more than columns."""

from unittest.mock import patch

import pytest

from k8s_scheduler.core.state.amounts import column_grants
from k8s_scheduler.core.state.amounts.column_grants import ColumnGrants


@pytest.fixture
def grants():
    """Return grants of two columns."""
    with patch.object(column_grants, "MOST_COLUMNS", 2):
        yield ColumnGrants()


def offer(grants, *resources):
    """Let a node offer resources; return those that get a column, and those that lose one."""
    for resource in resources:
        grants.count(resource, 1)
    found = [grants.won(resource) for resource in resources]
    won = [name for name, (has_won, _) in zip(resources, found, strict=True) if has_won]
    return won, [loser for _, loser in found if loser is not None]


def test_whoever_comes_first_has_a_column_while_there_are_some(grants):
    assert offer(grants, "a", "b", "c") == (["a", "b"], [])


def test_native_resources_need_none(grants):
    assert offer(grants, "cpu", "memory", "pods", "ephemeral-storage") == ([], [])
    assert grants.offering["cpu"] == 1


def test_twice_as_many_nodes_take_a_column(grants):
    offer(grants, "a", "b")
    offer(grants, "b")
    assert offer(grants, "c") == ([], [])
    assert offer(grants, "c") == (["c"], ["a"])


def test_one_node_takes_no_column_of_several(grants):
    for _ in range(2):
        offer(grants, "a", "b")
    assert offer(grants, *(f"odd{i}" for i in range(100))) == ([], [])


def test_a_little_more_is_not_enough(grants):
    for _ in range(3):
        offer(grants, "a", "b")
    for _ in range(5):
        assert offer(grants, "c") == ([], [])
    assert offer(grants, "c") == (["c"], ["a"])


def test_what_no_node_offers_gives_its_column_to_what_most_do(grants):
    offer(grants, "a", "b", "c", "d")
    for _ in range(2):
        offer(grants, "b")
    grants.count("d", 1)
    grants.count("a", -1)
    assert grants.lost() == ["a"]
    assert grants.next_in_line() == ["d"]
    assert grants.next_in_line() == []
    assert grants.lost() == []


def test_what_is_gone_waits_no_more(grants):
    offer(grants, "a", "b", "c")
    grants.count("c", -1)
    grants.count("a", -1)
    assert grants.lost() == ["a"]
    assert grants.next_in_line() == []
    assert grants.offering == {"b": 1}


def test_what_comes_back_at_once_keeps_its_column(grants):
    offer(grants, "a")
    grants.count("a", -1)
    grants.count("a", 1)
    assert grants.lost() == []
    assert offer(grants, "a") == ([], [])
