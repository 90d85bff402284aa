"""Shelves and orders that live through changes hold what others made anew would hold."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.storage.objects import CsiStorageCapacity
from k8s_scheduler.core.plugins.volume_binding.order import NOWHERE, Order
from k8s_scheduler.core.plugins.volume_binding.shelves import Shelves

CLASSES = ["x", "y"]


class Row(list):
    """A shelf of the things themselves."""

    def changed(self, gone, come):
        return Row([t for t in self if not any(t is other for other in gone)] + come)


# Namespace and name -> class and capacity; a value that stays is the same object.
contents = st.dictionaries(
    st.tuples(st.sampled_from(["", "s"]), st.sampled_from("abcdefgh")),
    st.tuples(st.sampled_from(CLASSES), st.sampled_from(["1", "2"])),
)


def things(content, known):
    """Return the objects by name, those of earlier times again where nothing changed."""
    found = []
    for (space, name), (of, amount) in sorted(content.items()):
        key = (space, name, of, amount)
        if key not in known:
            metadata = ObjectMeta(name=name, namespace=space)
            known[key] = CsiStorageCapacity(
                metadata=metadata, storage_class_name=of, capacity=amount
            )
        found.append(known[key])
    return tuple(found)


@given(st.lists(contents, min_size=2, max_size=5))
def test_changed_shelves_equal_new_ones(history):
    shelves = Shelves(lambda t: t.storage_class_name, lambda t: t, Row)
    known = {}
    for content in history:
        now = things(content, known)
        for name in CLASSES:
            found = shelves.shelf(name, now) or []
            expected = [t for t in now if t.storage_class_name == name]
            assert sorted(found, key=repr) == sorted(expected, key=repr)


places = st.sets(st.tuples(st.integers(0, 1), st.integers(0, 9)))


@given(before=places, gone=places, come=places)
def test_a_changed_order_equals_a_new_one(before, gone, come):
    """Things are the negative of their places' numbers, and columns by rank move with them."""
    gone &= before
    come -= before - gone
    order = Order((place, -place[1]) for place in before)
    following, moves = order.changed(sorted(gone), ((place, -place[1]) for place in sorted(come)))
    expected = Order((place, -place[1]) for place in before - gone | come)
    assert (following.places, following.things) == (expected.places, expected.things)
    assert order.places == sorted(before)
    column = np.array([1000 + number for _, number in order.places], dtype=np.int64)
    moved = moves.column(column, (1000 - thing for _, thing in moves.come))
    assert moved.tolist() == [1000 + number for _, number in following.places]
    for rank, place in enumerate(order.places):
        after = int(moves.after[rank])
        stays = place not in gone
        assert after == (following.places.index(place) if stays else NOWHERE)
    assert [rank for rank, _ in moves.come] == [following.places.index(p) for p in sorted(come)]
    # The first part of an order, of which nothing moves to the rest.
    counts = [sum(place < (1,) for place in found.places) for found in (order, following)]
    part = moves.first(*counts)
    assert (len(part.after), len(part.before)) == tuple(counts)
    assert all(rank < counts[1] for rank in part.after.tolist())
    assert [rank for rank, _ in part.come] == [r for r, _ in moves.come if r < counts[1]]
