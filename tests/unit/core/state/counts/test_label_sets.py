"""Distinct labels of placed pods: ids that are used again, and selectors over them."""

import pytest

from k8s_scheduler.api.selectors.labels import Requirement
from k8s_scheduler.core.state.counts.label_sets import LabelSets


def picked(sets, namespaces=None, *requirements):
    return sets.match(namespaces, requirements).nonzero()[0].tolist()


def req(key, operator, *values):
    return Requirement(key, operator, values)


def test_equal_labels_share_an_id_and_no_labels_are_labels():
    sets = LabelSets()
    first = sets.acquire("a", {"x": "1", "y": "2"})
    assert sets.acquire("a", {"y": "2", "x": "1"}) == first
    assert sets.acquire("b", {"x": "1", "y": "2"}) != first
    assert sets.acquire("a", None) == sets.acquire("a", {})


def test_an_id_lives_until_its_last_pod_is_gone():
    sets = LabelSets()
    shared = sets.acquire("a", {"x": "1"})
    sets.acquire("a", {"x": "1"})
    sets.release(shared)
    assert picked(sets) == [shared]
    sets.release(shared)
    assert picked(sets) == []
    assert sets.acquire("b", {"x": "2"}) == shared
    assert len(sets) == 1
    assert picked(sets, ["a"]) == []
    assert picked(sets, None, req("x", "In", "2")) == [shared]


def test_the_lowest_free_id_is_used_first():
    sets = LabelSets()
    ids = [sets.acquire("a", {"x": str(i)}) for i in range(4)]
    for found in (ids[2], ids[0], ids[1]):
        sets.release(found)
    assert [sets.acquire("b", {"x": str(i)}) for i in range(3)] == sorted(ids[:3])


@pytest.mark.parametrize(
    "requirement", [req("x", "NotIn", "1"), req("x", "DoesNotExist"), req("z", "DoesNotExist")]
)
def test_nobody_with_a_free_id_is_picked(requirement):
    sets = LabelSets()
    sets.acquire("a", {"y": "1"})
    sets.release(sets.acquire("a", {"x": "1"}))
    assert picked(sets, None, requirement) == [0]
    assert picked(sets, ["a"], requirement) == [0]
    assert picked(sets, ["b"], requirement) == []


def test_nothing_and_everything():
    sets = LabelSets()
    sets.acquire("a", {})
    assert sets.match(None, None).tolist() == [False]
    assert sets.match(None, ()).tolist() == [True]
    assert sets.match([], ()).tolist() == [False]
    assert sets.match(["nowhere"], ()).tolist() == [False]
    assert sets.match((n for n in ["nowhere", "a"]), ()).tolist() == [True]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (req("x", "In", "1"), [0]),
        (req("x", "In", "1", "2"), [0, 1]),
        (req("x", "In", "unheard-of"), []),
        (req("x", "In", "unheard-of", "2"), [1]),
        (req("x", "NotIn", "1"), [1, 2]),
        (req("x", "NotIn", "unheard-of"), [0, 1, 2]),
        (req("x", "NotIn", "1", "2"), [2]),
        (req("x", "Exists"), [0, 1]),
        (req("x", "DoesNotExist"), [2]),
        (req("unheard-of", "In", "1"), []),
        (req("unheard-of", "NotIn", "1"), [0, 1, 2]),
        (req("unheard-of", "Exists"), []),
    ],
)
def test_operators(requirement, expected):
    sets = LabelSets()
    for labels in ({"x": "1"}, {"x": "2"}, {"y": "1"}):
        sets.acquire("a", labels)
    assert picked(sets, None, requirement) == expected


def test_a_key_that_was_asked_for_before_anybody_had_it():
    sets = LabelSets()
    sets.acquire("a", {})
    assert picked(sets, None, req("x", "Exists")) == []
    sets.acquire("a", {"x": "1"})
    assert picked(sets, None, req("x", "Exists")) == [1]


def test_all_conditions_must_hold():
    sets = LabelSets()
    for labels in ({"x": "1", "y": "1"}, {"x": "1", "y": "2"}, {"x": "1"}):
        sets.acquire("a", labels)
    assert picked(sets, None, req("x", "In", "1"), req("y", "NotIn", "2")) == [0, 2]


def test_many_sets():
    sets = LabelSets()
    ids = [sets.acquire(f"n{i % 3}", {"i": str(i)}) for i in range(300)]
    assert ids == list(range(300))
    assert picked(sets, ["n1"], req("i", "In", "298", "299", "1")) == [1, 298]


class TestForgetting:
    """What only pods had that are gone is not kept, and what others have too is."""

    def kept(self, sets):
        labels = sets._labels
        columns = [key for key in ("x", "y", "own-0", "own-99") if labels.has_column(key)]
        return columns, sorted(labels._ids), [name for _, name in sets._namespaces.items()]

    def test_labels_and_namespaces_go_with_their_last_pod(self):
        sets = LabelSets()
        for i in range(100):
            found = sets.acquire(f"space-{i}", {"x": str(i), f"own-{i}": "1"})
            wanted = [req("x", "In", str(i)), req(f"own-{i}", "Exists"), req(f"own-{i}", "In", "1")]
            assert picked(sets, [f"space-{i}"], *wanted) == [found]
            sets.release(found)
        assert self.kept(sets) == ([], [], [""])
        assert sets._labels._uses == {}

    def test_what_another_set_has_stays(self):
        sets = LabelSets()
        going = sets.acquire("a", {"x": "1", "y": "2"})
        staying = sets.acquire("a", {"x": "2", "y": "1"})
        assert picked(sets, ["a"], req("x", "In", "1", "2"), req("y", "Exists")) == [going, staying]
        sets.release(going)
        assert self.kept(sets) == (["x", "y"], ["1", "2"], ["", "a"])
        assert picked(sets, ["a"], req("x", "In", "2"), req("y", "In", "1")) == [staying]

    def test_what_comes_back_is_found_and_has_another_id(self):
        sets = LabelSets()
        first = sets.acquire("a", {"x": "1"})
        assert picked(sets, ["a"], req("x", "In", "1")) == [first]
        known = sets._labels.known_id("1")
        sets.release(first)
        assert picked(sets, ["a"], req("x", "In", "1")) == []
        again = sets.acquire("a", {"x": "1"})
        assert picked(sets, ["a"], req("x", "In", "1")) == [again]
        assert sets._labels.known_id("1") > known

    def test_a_namespace_without_a_name_is_one_of_many(self):
        sets = LabelSets()
        nameless, named = sets.acquire("", {"x": "1"}), sets.acquire("a", {"x": "1"})
        assert picked(sets, [""]) == [nameless]
        sets.release(nameless)
        assert picked(sets, [""]) == []
        assert picked(sets, ["", "a"]) == [named]


def test_somebody_is_told_of_sets_that_come_and_go():
    sets = LabelSets()
    told = []
    sets.listen(lambda *born: told.append(born), told.append)
    found = sets.acquire("a", {"x": "1"})
    assert sets.acquire("a", {"x": "1"}) == found
    sets.release(found)
    assert told == [(found, "a", {"x": "1"})]
    sets.release(found)
    assert told[1:] == [found]
