"""What structures take."""

import sys

import msgspec
import numpy as np

from k8s_scheduler.lib import sizes
from k8s_scheduler.lib.sizes import Sizer


class Wire(msgspec.Struct, frozen=True, gc=False):
    """As objects of the API are: the garbage collector does not see what is inside."""

    text: str


class Shared:
    """Belongs to others."""

    def __init__(self):
        self.text = "x" * 10_000


class Owner:
    """Holds something."""

    def __init__(self, *things):
        self.things = things


def measured(*things, apart_from=()):
    sizer = Sizer(lambda kind: kind is Shared)
    return sizer.measure(Owner(*things), apart_from=apart_from) - sizer.measure(Owner())


def near(found, expected):
    return expected <= found <= expected + 200


def test_text_counts_where_the_garbage_collector_cannot_see_it():
    assert near(measured(Wire("x" * 5000)), 5000)


def test_what_is_held_twice_counts_once():
    text = "x" * 5000
    assert near(measured(text, text, [text]), 5000)


def test_an_array_counts_with_its_numbers_and_a_part_of_one_with_the_whole():
    array = np.zeros(1000, dtype=np.int64)
    assert near(measured(array), 8000)
    assert measured(array[:2]) >= 8000


def test_what_is_shared_or_named_counts_for_nothing():
    text = "x" * 5000
    assert near(measured(Shared(), sys, len, int), 0)
    assert near(measured(text, apart_from=[text]), 0)


def test_a_very_large_structure_is_measured_in_part(monkeypatch):
    monkeypatch.setattr(sizes, "MOST_OBJECTS", 100)
    many = [[f"{number:0100}" for number in range(10)] for _ in range(1000)]
    assert measured(many) > 500_000
