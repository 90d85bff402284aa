"""Events as they stand on the wire, and the arithmetic of limits and series."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.kube.events.event import EventNote, event_name, series_key, shorten_note
from k8s_scheduler.kube.events.recorder import ObjectLimits
from k8s_scheduler.kube.events.series import Series, SeriesCache
from k8s_scheduler.kube.timestamps import micro_time, second_time


def note(name: str = "p", *, reason: str = "FailedScheduling", text: str = "why") -> EventNote:
    return EventNote(
        regarding=ObjectReference("Pod", name, namespace="a", uid=f"uid-{name}"),
        type="Warning",
        reason=reason,
        action="Scheduling",
        note=text,
        reporting_controller="default-scheduler",
    )


def series(name: str, *, at: float) -> Series:
    made = note(name)
    return Series(series_key(made), made, f"{name}.1", 0, 0, at)


class TestTimes:
    """The server parses a fixed layout."""

    def test_micro_time_has_six_digits_also_when_they_are_zeros(self) -> None:
        assert micro_time(1_767_323_045_000_000_000) == "2026-01-02T03:04:05.000000Z"
        assert micro_time(1_767_323_045_000_006_999) == "2026-01-02T03:04:05.000006Z"

    def test_second_time_has_no_fraction(self) -> None:
        assert second_time(1_767_323_045_999_999_999) == "2026-01-02T03:04:05Z"


class TestNote:
    """At most 1024 bytes, whole characters."""

    def test_1024_bytes_are_kept(self) -> None:
        assert shorten_note("x" * 1024) == "x" * 1024

    def test_more_is_cut_to_1020_bytes_and_dots(self) -> None:
        assert shorten_note("x" * 1025) == "x" * 1020 + " ..."

    def test_character_is_not_cut_in_two(self) -> None:
        # 510 two-byte characters fill 1020 bytes; the odd byte before them cuts the last one.
        assert shorten_note("x" + "é" * 600) == "x" + "é" * 509 + " ..."

    @given(st.text(alphabet=st.characters(), max_size=2000))
    def test_any_text_fits_and_can_be_encoded(self, text: str) -> None:
        assert len(shorten_note(text).encode()) <= 1024

    def test_lone_surrogate_does_not_raise(self) -> None:
        assert shorten_note("a\ud800b") == "a?b"


class TestName:
    """`<object>.<hex>`, never longer than the server takes."""

    def test_is_object_and_hex_of_the_time(self) -> None:
        assert event_name("web-0", 0xABCDEF) == "web-0.abcdef"

    def test_long_object_name_is_cut_to_a_valid_name(self) -> None:
        name = event_name("a" * 230 + "." * 23, 1_767_323_045_000_006_000)
        assert len(name) <= 253
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name)
        assert ".." not in name


class TestKey:
    """What makes events the same."""

    def test_resource_version_does_not_matter(self) -> None:
        other = EventNote(
            regarding=ObjectReference("Pod", "p", "a", "uid-p", resource_version="7"),
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note="why",
            reporting_controller="default-scheduler",
        )
        assert series_key(other) == series_key(note())

    def test_object_reason_note_and_related_matter(self) -> None:
        related = EventNote(
            regarding=note().regarding,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note="why",
            reporting_controller="default-scheduler",
            related=ObjectReference("Pod", "q", "a"),
        )
        notes = (note(), note("q"), note(reason="Other"), note(text="new"), related)
        assert len({series_key(n) for n in notes}) == 5


class TestLimits:
    """Tokens come back with time."""

    def test_object_has_a_burst_of_25_and_one_more_per_five_minutes(self) -> None:
        limits = ObjectLimits()
        assert [limits.allows("p", 0.0) for _ in range(26)] == [True] * 25 + [False]
        assert limits.allows("q", 0.0)
        assert not limits.allows("p", 299.0)
        assert limits.allows("p", 600.0)

    def test_memory_is_bounded_by_forgetting_the_least_recent(self) -> None:
        limits = ObjectLimits(burst=1, objects=2)
        assert limits.allows("p", 0.0)
        assert limits.allows("q", 0.0)
        assert not limits.allows("p", 0.0)
        assert limits.allows("r", 0.0)
        assert not limits.allows("p", 0.0)
        assert limits.allows("q", 0.0)


class TestSeries:
    """When a series is written, and when it is over."""

    def test_second_occurrence_is_due_at_once_and_later_ones_ever_more_rarely(self) -> None:
        one = series("p", at=0.0)
        one.acknowledge(1, 10.0)
        assert one.due_at == 10.0
        waits = []
        for count in range(2, 12):
            one.acknowledge(count, 100.0)
            waits.append(one.due_at - 100.0)
        assert waits == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0, 300.0]

    @pytest.mark.parametrize(("now", "known"), [(359.0, True), (360.0, False)])
    def test_is_over_after_six_minutes_without_a_repeat(self, now: float, known: bool) -> None:
        cache = SeriesCache(10)
        one = series("p", at=0.0)
        cache.add(one)
        assert (cache.recall(one.key, now) is one) == known
        cache.forget_idle(now)
        assert len(cache) == known

    def test_least_recent_is_forgotten_for_room(self) -> None:
        cache = SeriesCache(2)
        one, two, three = (series(name, at=0.0) for name in "pqr")
        cache.add(one)
        cache.add(two)
        cache.recall(one.key, 0.0)
        cache.add(three)
        assert [each in cache for each in (one, two, three)] == [True, False, True]

    def test_forgetting_leaves_a_newer_series_of_the_same_key(self) -> None:
        cache = SeriesCache(2)
        old, new = series("p", at=0.0), series("p", at=400.0)
        cache.add(old)
        cache.add(new)
        cache.forget(old)
        assert new in cache
