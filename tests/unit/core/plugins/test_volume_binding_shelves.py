"""Shelves hold what is there now, and are made from the ones before where something changed."""

import pytest

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.storage.objects import CsiStorageCapacity
from k8s_scheduler.core.plugins.volume_binding.shelves import Shelves


def thing(name, of, *, space="s", limit="1"):
    metadata = ObjectMeta(name=name, namespace=space)
    return CsiStorageCapacity(metadata=metadata, storage_class_name=of, capacity=limit)


class Row(list):
    """A shelf, and a diary of how it came about."""

    def __init__(self, facts, made):
        super().__init__(sorted(facts))
        self.made = made

    def changed(self, gone, come):
        self.made.append((sorted(gone), sorted(come)))
        return Row([found for found in self if found not in gone] + come, self.made)


class Library:
    """Shelves of (name, limit), and a diary of the work done."""

    def __init__(self):
        self.looked_at = []
        self.made = []
        self.shelves = Shelves(lambda t: t.storage_class_name, self.facts_of, self.shelf_of)

    def facts_of(self, found):
        self.looked_at.append(found.metadata.name)
        return found.metadata.name, found.capacity

    def shelf_of(self, facts):
        self.made.append(len(facts))
        return Row(facts, self.made)

    def shelf(self, name, *things):
        return self.shelves.shelf(name, things)


@pytest.fixture
def library():
    return Library()


A, B, C = thing("a", "x"), thing("b", "x"), thing("c", "y")


def test_what_is_there_by_class(library):
    assert library.shelf("x", A, B, C) == [("a", "1"), ("b", "1")]
    assert library.shelf("y", A, B, C) == [("c", "1")]
    assert library.shelf("z", A, B, C) is None


def test_what_comes_changes_and_goes(library):
    library.shelf("x", A, B, C)
    new = thing("d", "x")
    assert library.shelf("x", A, B, C, new) == [("a", "1"), ("b", "1"), ("d", "1")]
    changed = thing("b", "x", limit="2")
    assert library.shelf("x", A, changed, C, new) == [("a", "1"), ("b", "2"), ("d", "1")]
    assert library.shelf("x", changed, C) == [("b", "2")]
    assert library.shelf("x", C) is None
    assert library.shelf("y", C) == [("c", "1")]


def test_what_moves_to_another_class(library):
    library.shelf("x", A, B, C)
    moved = thing("a", "y")
    assert library.shelf("x", moved, B, C) == [("b", "1")]
    assert library.shelf("y", moved, B, C) == [("a", "1"), ("c", "1")]


def test_one_goes_as_another_comes(library):
    library.shelf("x", A, B)
    assert library.shelf("x", B, thing("d", "x")) == [("b", "1"), ("d", "1")]


def test_equal_names_in_two_namespaces_are_two_things(library):
    other = thing("a", "x", space="t", limit="2")
    assert library.shelf("x", A, other) == [("a", "1"), ("a", "2")]


def test_only_what_changed_is_looked_at(library):
    library.shelf("x", A, B, C)
    library.shelf("y", A, B, C)
    library.looked_at.clear()
    library.made.clear()
    after = (A, thing("b", "x", limit="2"), C)
    library.shelf("y", *after)
    assert (library.looked_at, library.made) == (["b"], [])
    library.shelf("x", *after)
    assert (library.looked_at, library.made) == (["b"], [([("b", "1")], [("b", "2")])])


def test_changes_add_up_until_somebody_asks(library):
    library.shelf("x", A, B, C)
    library.shelf("y", A, B, C)
    library.made.clear()
    passing = thing("e", "x")
    library.shelf("y", A, thing("b", "x", limit="2"), C, passing)
    library.shelf("y", A, thing("b", "x", limit="3"), C)
    assert library.shelf("x", A, thing("b", "x", limit="4"), C) == [("a", "1"), ("b", "4")]
    assert library.made == [([("b", "1")], [("b", "4")])]


def test_where_much_has_changed_the_shelf_is_made_from_scratch(library):
    library.shelf("x", A, B)
    library.made.clear()
    many = [thing(f"m{number:02}", "x") for number in range(40)]
    assert len(library.shelf("x", A, *many)) == 41
    assert library.made == [41]


def test_what_is_empty_starts_over(library):
    library.shelf("x", A, B)
    assert library.shelf("x") is None
    assert library.shelf("x", B) == [("b", "1")]
