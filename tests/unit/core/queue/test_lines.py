"""Lines of pods: one order over all of them, and lines that are passed over at no cost."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_scheduler.core.queue.lines import Lines


class Plain:
    """What lines promise, by looking at every member each time."""

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
    lines, plain = Lines(), Plain()
    for sequence in range(steps):
        act = rng.choice(["push", "push", "push", "pop", "remove", "hold"])
        if act == "push":
            key, order, line = f"k{sequence}", (rng.choice([0.0, 1.0, 2.0]),), rng.choice("abc")
            lines.push(key, key, line=line, order=order, sequence=sequence)
            plain.members[key] = (order, sequence, line)
        elif act == "pop":
            found = plain.first()
            assert lines.pop() == (None if found is None else found[1])
            if found is not None:
                del plain.members[found[1]]
        elif act == "remove" and plain.members:
            key = rng.choice(sorted(plain.members))
            assert lines.remove(key) == key
            assert lines.remove(key) is None
            del plain.members[key]
        elif act == "hold":
            plain.held = frozenset(rng.sample("abc", rng.randint(0, 3)))
            lines.hold(plain.held)
            assert lines.held == plain.held
        assert len(lines) == len(plain.members)
        assert all(key in lines for key in plain.members)
        assert lines.has_free == (plain.first() is not None)


def test_to_hold_a_line_moves_none_of_its_members():
    """A tenant decides how many stand there; nobody else pays for it."""
    lines = Lines()
    for sequence in range(5000):
        lines.push(f"a{sequence}", "a", line="a", order=(0.0,), sequence=sequence)
    lines.push("b", "b", line="b", order=(9.0,), sequence=9999)
    for _ in range(1000):
        lines.hold(["a"])
        assert lines.has_free
        lines.hold([])
    lines.hold(["a"])
    assert lines.pop() == "b"
    assert len(lines) == 5000
    # Leftovers of all the changes are swept out.
    assert len(lines._firsts) <= 64
