"""Columns of labels that few nodes have, made by a look at those alone."""

import random

import numpy as np

from k8s_scheduler.core.state.columns import Columns
from k8s_scheduler.core.state.nodes.key_holders import KeyHolders
from k8s_scheduler.core.state.nodes.labels import ABSENT, LabelColumns
from k8s_scheduler.core.state.rows import NodeRow


class Looked(dict):
    """Labels that count how often they were looked at."""

    looks = 0

    def get(self, key, default=None):
        Looked.looks += 1
        return super().get(key, default)


def labelled(rows):
    columns = Columns()
    columns.reserve(len(rows))
    found = LabelColumns(columns)
    for row, labels in enumerate(rows):
        found.put(NodeRow(row), labels)
    return found


def test_a_column_of_a_key_that_few_rows_have_looks_at_those_alone():
    rows = [Looked(host=f"n{number}") for number in range(500)]
    for row in (3, 77):
        rows[row] |= {f"key-{i}": f"v{row}" for i in range(20)}
    labels = labelled(rows)
    Looked.looks = 0
    for i in range(20):
        column = labels.column(f"key-{i}")
        assert np.flatnonzero(column != ABSENT).tolist() == [3, 77]
        assert labels.value(int(column[77])) == "v77"
    assert Looked.looks == 2 * 20


def test_columns_say_what_rows_have_whoever_came_and_went_before():
    chance = random.Random(19)
    keys = [f"k{i}" for i in range(6)]
    labels = labelled([])
    rows = {}
    labels._columns.reserve(200)
    for step in range(3000):
        row = NodeRow(chance.randrange(200 if step % 1000 < 600 else 20))
        had = chance.random()
        rows[row] = {
            key: f"v{chance.randrange(4)}"
            for i, key in enumerate(keys)
            if chance.random() < (i / 6 if had < 0.7 else 0.1)
        }
        if chance.random() < 0.3:
            rows[row] = {}
        labels.put(row, rows[row] or None)
        if step % 50 == 0:
            fresh = labelled([])
            fresh._columns.reserve(200)
            for other, own in rows.items():
                fresh.put(other, own or None)
            for key in keys[step // 50 % 3 :: 3]:
                here, there = labels.column(key), fresh.column(key)
                assert labels.holder_count(key) == sum(key in own for own in rows.values())
                for other, own in rows.items():
                    found = here[other]
                    assert (None if found == ABSENT else labels.value(found)) == own.get(key)
                    assert (found == ABSENT) == (there[other] == ABSENT)


class TestKeyHolders:
    """Which rows have a key, as long as that is known."""

    def test_rows_are_known_as_long_as_they_are_few(self):
        holders = KeyHolders()
        assert holders.rows("k") == ()
        assert holders.add("k", NodeRow(5))
        for row in range(10, 10 + KeyHolders.FEW - 1):
            assert not holders.add("k", NodeRow(row))
        assert holders.rows("k") == (5, *range(10, 10 + KeyHolders.FEW - 1))
        holders.remove("k", NodeRow(5))
        assert 5 not in holders.rows("k")
        holders.add("k", NodeRow(5))
        holders.add("k", NodeRow(6))
        assert holders.rows("k") is None
        holders.remove("k", NodeRow(6))
        # Who is left is not known, only how many.
        assert holders.rows("k") is None
        assert holders.count("k") == KeyHolders.FEW

    def test_a_key_that_no_row_has_any_more_starts_over(self):
        holders = KeyHolders()
        for row in range(KeyHolders.FEW + 5):
            holders.add("k", NodeRow(row))
        for row in range(KeyHolders.FEW + 5):
            holders.remove("k", NodeRow(row))
        assert "k" not in holders
        assert holders.rows("k") == ()
        assert holders.add("k", NodeRow(1))
        assert holders.rows("k") == (1,)
