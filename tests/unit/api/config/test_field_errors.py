"""The nearest right name."""

import difflib

import pytest

from k8s_scheduler.api.config.field_errors import did_you_mean

KNOWN = ("NodeName", "NodeResourcesFit", "ImageLocality")


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("nodename", '; did you mean "NodeName"?'),
        ("NodeResourceFit", '; did you mean "NodeResourcesFit"?'),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_the_nearest_known_name_is_offered_if_one_is_near(given, hint):
    assert did_you_mean(given, KNOWN) == hint


def test_where_nothing_is_known_nothing_is_near():
    assert did_you_mean("a", ()) == ""


@pytest.mark.parametrize("length", range(60))
def test_a_long_name_gets_the_hint_it_would_get_by_comparing(length):
    given = "noderesourcesfit" + "x" * length
    near = difflib.get_close_matches(given, [name.lower() for name in KNOWN], n=1, cutoff=0.6)
    assert bool(did_you_mean(given, KNOWN)) == bool(near)


def test_a_name_too_long_for_any_is_not_compared_at_all(monkeypatch):
    # A plugin called by 70,000 letters, a hundred times over, took more than a second.
    monkeypatch.setattr(difflib, "get_close_matches", None)
    assert did_you_mean("n" * 70_000, KNOWN) == ""
