"""Which series are known: found again, made the most recent, forgotten."""

import pytest

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.kube.events.event import EventNote, series_key
from k8s_scheduler.kube.events.series import IDLE_SECONDS, Series, SeriesCache


def series(name, at=0.0):
    """Return a series about a pod, last heard of at a time."""
    note = EventNote(
        regarding=ObjectReference("Pod", name, namespace="a", uid=f"uid-{name}"),
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note="why",
        reporting_controller="default-scheduler",
    )
    return Series(series_key(note), note, f"{name}.1", first_wall_ns=0, last_wall_ns=0, last_at=at)


@pytest.fixture
def cache():
    return SeriesCache(limit=2)


class TestForgetting:
    """What is forgotten is gone; its next occurrence is a new event."""

    def test_a_series_is_not_recalled_and_takes_no_memory(self, cache):
        known = series("p")
        cache.add(known)
        assert cache.recall(known.key, 1.0) is known
        cache.forget(known)
        assert cache.recall(known.key, 1.0) is None
        assert (known in cache, len(cache), cache.nbytes) == (False, 0, 0)

    def test_a_newer_series_of_the_same_key_stays(self, cache):
        old, new = series("p"), series("p")
        cache.add(old)
        cache.add(new)
        cache.forget(old)
        assert cache.recall(new.key, 1.0) is new

    def test_six_minutes_without_a_repeat_forget_it(self, cache):
        idle, lively = series("p", at=0.0), series("q", at=1.0)
        cache.add(idle)
        cache.add(lively)
        assert cache.recall(idle.key, IDLE_SECONDS) is None
        cache.forget_idle(IDLE_SECONDS)
        assert (idle in cache, lively in cache, len(cache)) == (False, True, 1)


class TestBounds:
    """Too many push out the least recent."""

    def test_one_that_was_recalled_is_the_most_recent(self, cache):
        first, second, third = (series(name) for name in "pqr")
        cache.add(first)
        cache.add(second)
        cache.recall(first.key, 1.0)
        cache.add(third)
        assert [known in cache for known in (first, second, third)] == [True, False, True]
        assert cache.dropped == 1

    def test_one_that_is_made_anew_takes_the_place_of_the_old_one_and_is_the_most_recent(
        self, cache
    ):
        first, second, third = (series(name) for name in "pqr")
        again = series("p")
        cache.add(first)
        cache.add(second)
        cache.add(again)
        assert (len(cache), cache.nbytes) == (2, again.nbytes + second.nbytes)
        cache.add(third)
        assert [known in cache for known in (first, second, again, third)] == [
            False,
            False,
            True,
            True,
        ]
