"""Shelves that live through changes hold what shelves made anew would hold."""

from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.storage import CsiStorageCapacity
from k8s_scheduler.core.plugins.volume_binding.shelves import Shelves

CLASSES = ["x", "y"]

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
    shelves = Shelves(lambda t: t.storage_class_name, lambda t: t, list)
    known = {}
    for content in history:
        now = things(content, known)
        for name in CLASSES:
            found = shelves.shelf(name, now) or []
            expected = [t for t in now if t.storage_class_name == name]
            assert sorted(found, key=repr) == sorted(expected, key=repr)
