"""Columns of labels: given back once no node has the key any more."""

import numpy as np

from k8s_scheduler.core.state.nodes.labels import ABSENT, LabelColumns
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from tests.builders import make_node

KEYS = 200


def table_with(keys: int) -> NodeTable:
    """Return a table of two nodes, one of which has many labels that all have a column."""
    table = NodeTable()
    table.put_node(make_node("plain").label(zone="a").obj())
    table.put_node(make_node("odd").label(**{f"k{n}": "same" for n in range(keys)}).obj())
    for n in range(keys):
        table.labels.column(f"k{n}")
    table.labels.column("zone")
    return table


def columns_of(table: NodeTable) -> int:
    return sum(table.labels.has_column(f"k{n}") for n in range(KEYS))


def test_columns_of_keys_that_no_node_has_any_more_are_given_back():
    table = table_with(KEYS)
    epoch = table.labels.epoch
    table.put_node(make_node("odd").obj())
    assert columns_of(table) == 0
    # Ids mean other values from now on.
    assert table.labels.epoch > epoch
    plain = table.row_of("plain")
    zone = table.labels.column("zone")
    assert table.labels.value(zone[plain]) == "a"
    assert np.count_nonzero(zone != ABSENT) == 1


def test_a_few_such_columns_stay_as_the_key_may_come_back():
    table = table_with(LabelColumns.SPARE_COLUMNS)
    epoch = table.labels.epoch
    table.put_node(make_node("odd").obj())
    assert columns_of(table) == LabelColumns.SPARE_COLUMNS
    assert table.labels.epoch == epoch
    table.put_node(make_node("odd").label(k0="back").obj())
    row = table.row_of("odd")
    assert table.labels.value(table.labels.column("k0")[row]) == "back"


def test_keys_that_came_back_are_not_given_back():
    table = table_with(LabelColumns.SPARE_COLUMNS)
    table.put_node(make_node("odd").obj())
    table.put_node(make_node("odd").label(**{f"k{n}": "same" for n in range(KEYS)}).obj())
    for n in range(KEYS):
        table.labels.column(f"k{n}")
    table.put_node(make_node("plain").obj())
    assert columns_of(table) == KEYS
