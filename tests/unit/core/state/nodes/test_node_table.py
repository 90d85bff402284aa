"""Rows of nodes: which are used again, and when the table becomes shorter."""

import numpy as np
import pytest

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from tests.builders import make_node

NODES = 4
GHOSTS = NodeTable.SPARED


def table_of(nodes: int = NODES, *, ghosts: int = 0) -> NodeTable:
    table = NodeTable()
    for number in range(nodes):
        table.put_node(make_node(f"n{number}").label(zone=f"z{number}").offers(cpu="4").obj())
    for number in range(ghosts):
        table.claim_row(NodeName(f"ghost-{number}"))
    return table


def free(table: NodeTable, *, first: int = 0, ghosts: int = GHOSTS) -> None:
    for number in range(first, ghosts):
        row = table.row_of(NodeName(f"ghost-{number}"))
        assert row is not None
        table.free_if_empty(row)


def test_free_rows_at_the_end_are_cut_off():
    table = table_of(ghosts=GHOSTS)
    table.labels.column("zone")
    free(table)
    assert table.row_count == NODES + GHOSTS
    assert table.shorten()
    assert table.row_count == NODES
    assert not table.shorten()
    assert [name for _, name in table.used_rows()] == ["n0", "n1", "n2", "n3"]


def test_everything_is_as_long_as_in_a_table_that_was_never_longer():
    table, fresh = table_of(ghosts=GHOSTS), table_of()
    for each in (table, fresh):
        each.labels.column("zone")
    free(table)
    table.shorten()
    for name in ("unschedulable", "taint_set", "label/zone", "allocatable/cpu", "pod_count"):
        assert np.array_equal(table.column(name), fresh.column(name))
    assert table.labels.capacity == fresh.labels.capacity


def test_rows_are_given_again_as_in_a_table_that_was_never_longer():
    table, fresh = table_of(ghosts=GHOSTS), table_of()
    free(table)
    for each in (table, fresh):
        each.remove_node(NodeName("n1"))
    table.shorten()
    for name in ("a", "b", "c"):
        node = make_node(name).obj()
        assert table.put_node(node) == fresh.put_node(node)


@pytest.mark.parametrize("ghosts", [1, GHOSTS - 1], ids=["one row", "nearly enough"])
def test_few_free_rows_stay(ghosts):
    table = table_of(ghosts=ghosts)
    free(table, ghosts=ghosts)
    assert not table.shorten()
    assert table.row_count == NODES + ghosts


def test_fewer_free_rows_than_others_stay():
    table = table_of(GHOSTS + 1, ghosts=GHOSTS)
    free(table)
    assert not table.shorten()
    table.remove_node(NodeName(f"n{GHOSTS}"))
    assert table.shorten()
    assert table.row_count == GHOSTS


def test_a_ghost_at_the_end_keeps_all_rows_before_it():
    table = table_of(ghosts=GHOSTS)
    free(table, ghosts=GHOSTS - 1)
    assert not table.shorten()
    free(table, first=GHOSTS - 1)
    assert table.shorten()


def test_an_empty_table_has_no_rows():
    table = table_of(0, ghosts=GHOSTS)
    free(table)
    assert table.shorten()
    assert table.row_count == 0
    assert table.claim_row(NodeName("n")) == 0


def test_a_table_from_a_checkpoint_is_shortened_alike():
    table = table_of(ghosts=GHOSTS)
    free(table)
    table.remove_node(NodeName("n2"))
    other = NodeTable()
    other.lay_out(rows=table.row_count, names=dict(table.used_rows()))
    assert other.shorten()
    assert table.shorten()
    assert other.row_count == table.row_count
    for name in ("a", "b"):
        assert other.claim_row(NodeName(name)) == table.claim_row(NodeName(name))


def test_a_label_is_written_where_it_is_read_after_columns_came_back_to_their_length():
    table = table_of(ghosts=GHOSTS)
    table.labels.column("zone")
    assert table.labels.id_at(0, "zone") >= 0
    free(table)
    table.shorten()
    for number in range(GHOSTS):
        table.claim_row(NodeName(f"again-{number}"))
    table.put_node(make_node("n0").label(zone="another").obj())
    found = table.labels.column("zone")[0]
    assert table.labels.value(found) == "another"
    assert table.labels.id_at(0, "zone") == found


# Nodes that are shown without a copy


def test_nodes_on_the_first_rows_are_all_rows_whatever_is_behind_them():
    table = table_of()
    found = table.present_rows()
    assert table.all_rows is found
    table.claim_row(NodeName("ghost"))
    assert table.all_rows is table.present_rows() is found
    table.free_if_empty(table.row_of(NodeName("ghost")))
    assert table.all_rows is table.present_rows() is found


def test_nodes_with_a_gap_between_them_are_not_all_rows():
    table = table_of()
    table.remove_node(NodeName("n1"))
    assert table.present_rows().tolist() == [0, 2, 3]
    assert table.all_rows is None
    table.remove_node(NodeName("n3"))
    table.put_node(make_node("other").obj())
    assert table.present_rows().tolist() == [0, 1, 2]
    assert table.all_rows is table.present_rows()
