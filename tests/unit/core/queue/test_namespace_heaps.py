"""Heaps by namespace: one order over all of them, and some that are passed over at no cost."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_scheduler.core.queue.namespace_heaps import NamespaceHeaps


class Plain:
    """What the heaps promise, by looking at every member each time."""

    def __init__(self):
        self.members = {}
        self.held = frozenset()

    def first(self):
        free = [(m, key) for key, m in self.members.items() if m[2] not in self.held]
        return min(free, default=None)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 120))
def test_whatever_happens_the_first_free_member_comes_out(seed, steps):
    rng = random.Random(seed)
    heaps, plain = NamespaceHeaps(), Plain()
    for sequence in range(steps):
        act = rng.choice(["push", "push", "push", "pop", "remove", "hold"])
        if act == "push":
            key, order, namespace = (
                f"k{sequence}",
                (rng.choice([0.0, 1.0, 2.0]),),
                rng.choice("abc"),
            )
            heaps.push(key, key, namespace=namespace, order=order, sequence=sequence)
            plain.members[key] = (order, sequence, namespace)
        elif act == "pop":
            found = plain.first()
            assert heaps.pop() == (None if found is None else found[1])
            if found is not None:
                del plain.members[found[1]]
        elif act == "remove" and plain.members:
            key = rng.choice(sorted(plain.members))
            assert heaps.remove(key) == key
            assert heaps.remove(key) is None
            del plain.members[key]
        elif act == "hold":
            plain.held = frozenset(rng.sample("abc", rng.randint(0, 3)))
            heaps.hold(plain.held)
            assert heaps.held == plain.held
        assert len(heaps) == len(plain.members)
        assert all(key in heaps for key in plain.members)
        assert heaps.has_free == (plain.first() is not None)


def test_to_hold_a_namespace_moves_none_of_its_members():
    """A tenant decides how many there are; no other one pays for it."""
    heaps = NamespaceHeaps()
    for sequence in range(5000):
        heaps.push(f"a{sequence}", "a", namespace="a", order=(0.0,), sequence=sequence)
    heaps.push("b", "b", namespace="b", order=(9.0,), sequence=9999)
    for _ in range(1000):
        heaps.hold(["a"])
        assert heaps.has_free
        heaps.hold([])
    heaps.hold(["a"])
    assert heaps.pop() == "b"
    assert len(heaps) == 5000
    # Leftovers of all the changes are swept out.
    assert len(heaps._firsts) <= 64
