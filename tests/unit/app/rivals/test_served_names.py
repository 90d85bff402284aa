"""What a Lease says about the schedulerNames that its holder serves."""

import json

import pytest

from k8s_scheduler.app.rivals.served_names import (
    LABEL,
    MOST_BYTES,
    NOTE,
    encode,
    notes_of,
    served_by,
)
from k8s_scheduler.kube.lease.other_leases import MOST_NOTE_CHARACTERS, OtherLease


def lease(note="", *, holder="me", namespace="a", name="l"):
    return OtherLease(namespace, name, "u", "1", holder, 15.0, note)


def test_what_is_written_is_what_is_read():
    notes = notes_of({"b", "a"}, "me")
    assert notes.labels == {LABEL: "true"}
    text = notes.annotations[NOTE]
    assert json.loads(text) == {"by": "me", "schedulerNames": ["a", "b"]}
    assert served_by(lease(text)) == {"a", "b"}


def test_a_note_of_another_holder_says_nothing_about_this_one():
    """After a rollback an older version holds the Lease, and leaves the note as it is."""
    assert served_by(lease(encode(("a",), "me"), holder="older")) == frozenset()


def test_nobody_serves_nothing():
    assert served_by(lease(encode(("a",), ""), holder="")) == frozenset()


@pytest.mark.parametrize(
    "names",
    [
        [f"scheduler-{number}" for number in range(10_000)],
        ["x" * 253] * 30,
        ["\u00e4" * 200] * 30,
        ["y" * 10_000],
    ],
    ids=["many", "long", "not ascii", "one that is too long"],
)
def test_a_note_is_short_whatever_the_names_are(names):
    text = encode(tuple(names), "me")
    assert len(text.encode()) <= MOST_BYTES < MOST_NOTE_CHARACTERS
    told = json.loads(text)
    assert len(told["schedulerNames"]) + told["more"] == len(names)
    assert served_by(lease(text)) == set(told["schedulerNames"])


def test_as_many_names_as_there_is_room_for_are_told():
    names = tuple(f"scheduler-{number:04}" for number in range(10_000))
    assert len(encode(names, "me").encode()) > MOST_BYTES - 40


@pytest.mark.parametrize(
    "note",
    [
        "nonsense",
        "[]",
        '{"by": "me"}',
        '{"by": "me", "schedulerNames": "a"}',
        '{"by": "me", "schedulerNames": [1]}',
        '{"by": 3, "schedulerNames": ["a"]}',
        "[" * 5000,
    ],
)
def test_a_note_that_is_none_says_nothing(note):
    assert served_by(lease(note)) == frozenset()


def test_fields_of_a_newer_version_do_no_harm():
    assert served_by(lease('{"by": "me", "schedulerNames": ["a"], "shard": 3}')) == {"a"}


class TestKubeScheduler:
    """Its Lease says nothing, and stands for the name that it serves by default."""

    def at(self, note="", holder="control-plane-1"):
        return lease(note, holder=holder, namespace="kube-system", name="kube-scheduler")

    def test_held_it_stands_for_the_default_scheduler(self):
        assert served_by(self.at()) == {"default-scheduler"}

    def test_so_it_does_with_a_note_of_a_former_holder(self):
        assert served_by(self.at(encode(("a",), "me"))) == {"default-scheduler"}

    def test_with_a_note_of_its_holder_it_says_what_the_note_says(self):
        assert served_by(self.at(encode(("a",), "me"), holder="me")) == {"a"}

    def test_released_it_stands_for_nothing(self):
        assert served_by(self.at(holder="")) == frozenset()

    def test_elsewhere_it_is_a_lease_like_any_other(self):
        assert served_by(lease(name="kube-scheduler")) == frozenset()
