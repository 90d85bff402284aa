"""Dicts give memory back that entries took which are gone."""

import sys

from k8s_scheduler.lib.hollow import compact


def emptied(size, left):
    found = dict.fromkeys(range(size))
    for number in range(size - left):
        del found[number]
    return found


def test_one_that_only_grew_stays_as_it_is():
    for size in (0, 1, 10, 100, 1000, 5461, 5462, 20_000):
        found = {f"name-{number}": None for number in range(size)}
        assert compact(found) is found


def test_one_that_was_much_larger_is_made_anew():
    found = emptied(20_000, left=3)
    fresh = compact(found)
    assert fresh == found
    assert list(fresh) == list(found)
    assert sys.getsizeof(fresh) < sys.getsizeof(found) / 100


def test_one_that_is_half_empty_stays_as_it_is():
    found = emptied(20_000, left=10_000)
    assert compact(found) is found
