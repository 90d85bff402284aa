"""Decisions are compared part by part, and nothing that differs passes."""

import pytest

from tests.conformance.oracle.compare import Tally, describe, differing_parts

VERDICT = {"plugin": "P", "code": "Unschedulable", "reasons": ["b", "a"]}
DECISION = {
    "id": "family-1-0",
    "pod": "default/p",
    "rejected": {"n": VERDICT},
    "feasible": ["m", "o"],
    "scores": {"m": {"": 1, "P": 1}, "o": {"": 2, "P": 2}},
    "message": "0/1",
    "preemption": {"n": {"victims": ["a/b", "a/c"], "pdbViolations": 1}},
    "preemptionPicks": ["n", "m"],
    "preemptionNotEligible": "no",
    "preFilter": VERDICT,
}


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("error", "failed"),
        ("preFilter", VERDICT | {"code": "UnschedulableAndUnresolvable"}),
        ("rejected", {}),
        ("rejected", {"n": VERDICT | {"reasons": ["a"]}}),
        ("rejected", {"n": VERDICT | {"plugin": "Q"}}),
        ("feasible", ["m"]),
        ("scores", {"m": {"": 1, "P": 1}, "o": {"": 2, "P": 2, "Q": 0}}),
        ("message", "0/2"),
        ("preemption", {"n": {"victims": ["a/b"], "pdbViolations": 1}}),
        ("preemption", {"n": {"victims": ["a/b", "a/c"]}}),
        ("preemptionPicks", []),
        ("preemptionPicks", ["x"]),
        ("preemptionNotEligible", ""),
    ],
)
def test_a_difference_is_named_by_its_part(part, other):
    changed = DECISION | {part: other}
    assert differing_parts(DECISION, changed) == [part]
    assert len(list(describe(DECISION, changed, [part]))) >= 2


@pytest.mark.parametrize(
    "same",
    [
        {"feasible": ["o", "m"]},
        {"rejected": {"n": VERDICT | {"reasons": ["a", "b"]}}},
        {"preemptionPicks": ["m"]},
        {"preemption": {"n": {"victims": ["a/c", "a/b"], "pdbViolations": 1}}},
        {"error": ""},
    ],
    ids=str,
)
def test_order_and_choice_among_equals_do_not_matter(same):
    assert differing_parts(DECISION, DECISION | same) == []


def test_an_errors_text_does_not_matter():
    assert differing_parts({"id": "a", "error": "x"}, {"id": "a", "error": "y"}) == []


class TestTally:
    """Agreement means that there was something to compare and all of it agrees."""

    def test_nothing_compared_is_no_agreement(self):
        assert not Tally().agrees

    def test_missing_and_unasked_answers_differ(self):
        tally = Tally()
        assert tally.add(("a-1", "p"), DECISION, None) == ["missing"]
        assert tally.add(("b-1", "p"), None, DECISION) == ["unasked"]
        assert tally.add(("b-2", "p"), DECISION, DECISION) == []
        assert not tally.agrees
        assert list(tally.table()) == [
            "a                   0 / 1      missing 1",
            "b                   1 / 2      unasked 1",
            "agreement 1/3",
        ]

    def test_all_good_is_agreement(self):
        tally = Tally()
        tally.add(("a-1", "p"), DECISION, DECISION)
        assert tally.agrees
