"""The recorder: series, bounds, retries, shutdown."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.events import recorder as recorder_module
from k8s_scheduler.kube.events.event import EventNote
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.caller import Caller, always
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, status
from tests.unit.kube.write_fakes import WALL_NS, loop_clock, loop_timing, running

EVENTS = "/apis/events.k8s.io/v1/namespaces/a/events"


def note(name: str = "p", *, reason: str = "FailedScheduling", text: str = "why") -> EventNote:
    return EventNote(
        regarding=ObjectReference("Pod", name, namespace="a", uid=f"uid-{name}"),
        type="Warning",
        reason=reason,
        action="Scheduling",
        note=text,
        reporting_controller="default-scheduler",
    )


class Booth:
    """A recorder on a fake API server."""

    def __init__(
        self,
        *,
        may_write: Callable[[], bool] = always,
        may_tell: Callable[[], bool] = always,
    ) -> None:
        self.api = FakeApi()
        self.registry = CollectorRegistry()
        timing = loop_timing(is_wall_moving=True)
        self.recorder = EventRecorder(
            Caller(transport=self.api, timeout_seconds=4.0, timing=timing, may_write=may_write),
            hostname="host",
            metrics=KubeMetrics(self.registry),
            may_tell=may_tell,
        )

    def dropped(self, reason: str) -> float:
        name = "k8s_scheduler_events_dropped_total"
        return self.registry.get_sample_value(name, {"reason": reason}) or 0.0

    def events(self) -> list[dict[str, Any]]:
        return list(self.api.objects("/apis/events.k8s.io/v1/events").values())

    def counts(self) -> dict[str, int]:
        return {
            event["regarding"]["name"]: event.get("series", {}).get("count", 1)
            for event in self.events()
        }

    async def drained(self, timeout_seconds: float = 300.0) -> int:
        async with running(self.recorder.run()):
            return await self.recorder.drain(timeout_seconds)


class TestFirst:
    """One event."""

    @virtual_time
    async def test_is_posted_as_kube_scheduler_does(self) -> None:
        booth = Booth()
        booth.recorder.record(note())
        assert await booth.drained() == 0
        [request] = booth.api.requests
        assert (request.method, request.path) == ("POST", EVENTS)
        assert request.json() == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"p.{WALL_NS:x}", "namespace": "a"},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-host",
            "action": "Scheduling",
            "reason": "FailedScheduling",
            "type": "Warning",
            "note": "why",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "a",
                "name": "p",
                "uid": "uid-p",
            },
        }

    @virtual_time
    async def test_object_without_namespace_goes_to_default_and_related_is_named(self) -> None:
        booth = Booth()
        booth.recorder.record(
            EventNote(
                regarding=ObjectReference("Node", "n1"),
                type="Normal",
                reason="Preempted",
                action="Preempting",
                note="x",
                reporting_controller="default-scheduler",
                related=ObjectReference("Pod", "q", "a"),
            )
        )
        await booth.drained()
        [event] = booth.events()
        assert event["metadata"]["namespace"] == "default"
        assert event["related"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "a",
            "name": "q",
        }

    @virtual_time
    async def test_names_differ_even_at_the_same_moment(self) -> None:
        booth = Booth()
        booth.recorder.record(note(reason="One"))
        booth.recorder.record(note(reason="Two"))
        await booth.drained()
        assert len(booth.events()) == 2


class TestSeries:
    """Repeats are gathered."""

    @virtual_time
    async def test_second_is_patched_at_once_with_count_and_time(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            await asyncio.sleep(10.0)
            booth.recorder.record(note())
            await settle()
        [patch] = booth.api.asked("PATCH")
        assert patch.path == f"{EVENTS}/p.{WALL_NS:x}"
        assert patch.content_type == "application/merge-patch+json"
        assert patch.json() == {
            "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:15.000006Z"}
        }
        [event] = booth.events()
        assert event["note"] == "why"

    @virtual_time
    async def test_another_text_is_another_event(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            booth.recorder.record(note(text="something new"))
            await asyncio.sleep(10.0)
        assert [event["note"] for event in booth.events()] == ["why", "something new"]

    @virtual_time
    async def test_many_repeats_cost_few_writes_and_the_last_count_arrives(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            for _ in range(360):
                booth.recorder.record(note())
                await asyncio.sleep(1.0)
            await asyncio.sleep(360.0)
        assert len(booth.api.asked("POST")) == 1
        assert len(booth.api.asked("PATCH")) <= 10
        [event] = booth.events()
        assert event["series"]["count"] == 360

    @virtual_time
    async def test_repeats_while_a_write_is_under_way_are_gathered_into_the_next(self) -> None:
        booth = Booth()
        booth.api.script("POST", EVENTS, Late(3.0))
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            await settle()
            for _ in range(5):
                booth.recorder.record(note())
            await asyncio.sleep(4.0)
        assert [request.method for request in booth.api.requests] == ["POST", "PATCH"]
        assert booth.events()[0]["series"]["count"] == 6

    @virtual_time
    async def test_repeats_before_the_first_write_ride_along(self) -> None:
        booth = Booth()
        for _ in range(3):
            booth.recorder.record(note())
        await booth.drained()
        assert [request.method for request in booth.api.requests] == ["POST"]
        assert booth.events()[0]["series"]["count"] == 3

    @virtual_time
    async def test_after_six_idle_minutes_it_is_a_new_event(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            await asyncio.sleep(361.0)
            booth.recorder.record(note())
            await settle()
        assert [request.method for request in booth.api.requests] == ["POST", "POST"]
        assert len(booth.events()) == 2

    @virtual_time
    async def test_event_that_is_gone_is_posted_anew(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            await settle()
            booth.api.delete(f"{EVENTS}/p.{WALL_NS:x}")
            booth.recorder.record(note())
            await asyncio.sleep(5.0)
        assert [request.method for request in booth.api.requests] == ["POST", "PATCH", "POST"]
        assert booth.events()[0]["series"]["count"] == 2

    @virtual_time
    async def test_who_leads_no_more_says_nothing_new_and_writes_what_was_said(self) -> None:
        leads = [True]
        booth = Booth(may_write=lambda: leads[0])
        booth.recorder.record(note("before"))
        leads[0] = False
        booth.recorder.record(note("after", text="not leading"))
        assert await booth.drained() == 0
        assert [event["regarding"]["name"] for event in booth.events()] == ["before"]
        assert booth.dropped("not_leading") == 1

    @virtual_time
    async def test_draining_writes_counts_that_are_not_due(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            for _ in range(4):
                booth.recorder.record(note())
                await settle()
            assert booth.events()[0]["series"]["count"] == 2
            assert await booth.recorder.drain(1.0) == 0
        assert booth.events()[0]["series"]["count"] == 4

    @virtual_time
    async def test_series_pushed_out_of_memory_is_still_owed_its_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recorder_module, "SERIES_LIMIT", 1)
        booth = Booth()
        async with running(booth.recorder.run()):
            for _ in range(3):
                booth.recorder.record(note())
                await settle()
            booth.recorder.record(note("q"))
            await asyncio.sleep(10.0)
        assert booth.counts() == {"p": 3, "q": 1}


class TestBounds:
    """Events never pile up."""

    @virtual_time
    async def test_full_queue_drops_the_oldest_and_counts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recorder_module, "QUEUE_LIMIT", 1000)
        booth = Booth()
        for number in range(1010):
            booth.recorder.record(note(f"p{number}"))
        await booth.drained()
        names = {event["regarding"]["name"] for event in booth.events()}
        assert names == {f"p{number}" for number in range(10, 1010)}
        assert booth.dropped("queue_full") == 10

    @virtual_time
    async def test_count_that_finds_no_room_is_written_later(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recorder_module, "QUEUE_LIMIT", 1)
        booth = Booth()
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            await settle()
            booth.recorder.record(note())
            booth.recorder.record(note("q"))
            await asyncio.sleep(10.0)
        assert booth.counts() == {"p": 2, "q": 1}
        assert booth.dropped("queue_full") == 0

    @virtual_time
    async def test_counts_that_wait_are_bounded_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder_module, "SERIES_LIMIT", 1)
        booth = Booth()
        async with running(booth.recorder.run()):
            for name in "pq":
                for _ in range(3):
                    booth.recorder.record(note(name))
                    await settle()
            await asyncio.sleep(10.0)
        assert booth.counts() == {"p": 2, "q": 3}
        assert booth.dropped("queue_full") == 1

    @virtual_time
    async def test_one_object_cannot_make_more_than_25_events_in_a_burst(self) -> None:
        booth = Booth()
        for number in range(30):
            booth.recorder.record(note(reason=f"R{number}"))
        await booth.drained()
        assert len(booth.events()) == 25
        assert booth.dropped("spam") == 5

    @virtual_time
    async def test_at_most_eight_are_under_way(self) -> None:
        booth = Booth()
        booth.api.script("POST", EVENTS, *[Late(5.0)] * 50)
        for number in range(50):
            booth.recorder.record(note(f"p{number}"))
        async with running(booth.recorder.run()):
            await settle()
            assert len(booth.api.requests) == 8

    @virtual_time
    async def test_recording_without_a_server_never_raises_or_waits(self) -> None:
        booth = Booth()
        booth.recorder.record(note(text="a\ud800b"))
        assert booth.api.requests == []


class TestTrouble:
    """A few tries, then dropped and counted."""

    @pytest.mark.parametrize(
        "answer", [NotSent("x"), status(429, "x", Retry_After="2"), status(503, "x")]
    )
    @virtual_time
    async def test_passing_trouble_is_overcome(self, answer: Any) -> None:
        booth = Booth()
        booth.api.script("POST", EVENTS, answer)
        booth.recorder.record(note())
        assert await booth.drained() == 0
        assert len(booth.events()) == 1

    @virtual_time
    async def test_lost_answer_does_not_double_the_event(self) -> None:
        booth = Booth()
        booth.api.script("POST", EVENTS, Lost(executed=True))
        async with running(booth.recorder.run()):
            booth.recorder.record(note())
            await settle()
            booth.recorder.record(note())
            booth.recorder.record(note())
            assert await booth.recorder.drain(60.0) == 0
        [event] = booth.events()
        assert event["series"]["count"] == 3

    @virtual_time
    async def test_no_answer_is_given_up_and_the_next_occurrence_starts_anew(self) -> None:
        booth = Booth()
        async with running(booth.recorder.run()):
            booth.api.refusing = True
            booth.recorder.record(note())
            await asyncio.sleep(60.0)
            assert len(booth.api.asked("POST")) == 5
            assert booth.dropped("no_answer") == 1
            booth.api.refusing = False
            booth.recorder.record(note())
            await settle()
        assert len(booth.events()) == 1

    @virtual_time
    async def test_refusal_is_dropped_at_once(self) -> None:
        booth = Booth()
        booth.api.script("POST", EVENTS, status(422, "Invalid"))
        booth.recorder.record(note())
        await booth.drained()
        assert len(booth.api.requests) == 1
        assert booth.dropped("refused") == 1

    @virtual_time
    async def test_missing_permission_is_logged_once_a_minute(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        booth = Booth()
        text = 'User "u" cannot create resource "events" in API group "events.k8s.io"'
        booth.api.script("POST", EVENTS, *[status(403, "Forbidden", text)] * 70)
        with caplog.at_level(logging.WARNING):
            async with running(booth.recorder.run()):
                for number in range(70):
                    booth.recorder.record(note(f"p{number}"))
                    await asyncio.sleep(1.0)
        lines = [record.getMessage() for record in caplog.records]
        assert lines[0] == (
            f"missing permission: create events.events.k8s.io in namespace a: {text}"
        )
        assert len(lines) == 2
        assert lines[1].endswith("(and 59 more since)")
        assert booth.dropped("forbidden") == 70

    @virtual_time
    async def test_terminating_namespace_is_not_called_a_missing_permission(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        booth = Booth()
        text = "unable to create new content in namespace a because it is being terminated"
        booth.api.script("POST", EVENTS, status(403, "Forbidden", text))
        booth.recorder.record(note())
        await booth.drained()
        assert "missing permission" not in caplog.text
        assert text in caplog.text


class TestStop:
    """Draining."""

    @virtual_time
    async def test_what_is_left_after_the_time_is_counted(self) -> None:
        booth = Booth()
        booth.api.refusing = True
        for name in "pqr":
            booth.recorder.record(note(name))
        assert await booth.drained(0.5) == 3
        assert loop_clock()() == 0.5
        assert booth.dropped("stopped") == 3

    @virtual_time
    async def test_nothing_is_taken_afterwards(self) -> None:
        booth = Booth()
        assert await booth.drained() == 0
        booth.recorder.record(note())
        assert booth.dropped("stopped") == 1


class TestLost:
    """After the lease was lost nothing more is told of pods."""

    @virtual_time
    async def test_what_waits_is_dropped_and_counted(self) -> None:
        leading = True
        booth = Booth(may_write=lambda: leading, may_tell=lambda: leading)
        booth.recorder.record(note("p"))
        booth.recorder.record(note("q"))
        leading = False
        assert await booth.drained() == 0
        assert booth.api.requests == []
        assert booth.dropped("not_leading") == 2

    @virtual_time
    async def test_what_waits_is_written_after_the_lease_was_given_back(self) -> None:
        leading = True
        booth = Booth(may_write=lambda: leading)
        booth.recorder.record(note("p"))
        leading = False
        assert await booth.drained() == 0
        assert booth.counts() == {"p": 1}

    @virtual_time
    async def test_news_of_the_process_itself_needs_no_lease(self) -> None:
        booth = Booth(may_write=lambda: False, may_tell=lambda: False)
        booth.recorder.record(note("p"), is_own=True)
        booth.recorder.record(note("q"))
        assert await booth.drained() == 0
        assert booth.counts() == {"p": 1}
        assert booth.dropped("not_leading") == 1
