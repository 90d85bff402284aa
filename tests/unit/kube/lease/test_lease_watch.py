"""The watch on the lease: seen at once where it works, and as by looks alone where it does not."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.lease.lease_watch import LeaseWatch
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import WATCH, FakeStream, Request, status
from tests.fakes.watch import gone_event, line
from tests.unit.kube.elector_seat import LEASE, Seat, acquire, hold_by_other
from tests.unit.kube.write_fakes import loop_clock, running

LIST = LEASE.rsplit("/", 1)[0]
# The longest wait before a server in trouble is asked again: a retry period and its jitter.
RETRY_SECONDS = 2.0 * (1.0 + 1.2 * 0.5)
LOOK_SECONDS = 0.5 * (1.0 + 0.2 * 0.5)
REFUSED = status(403, "Forbidden", 'User "u" cannot watch resource "leases" in API group "c"')


def renew(api: FakeApi, **spec: Any) -> None:
    lease = api.object(LEASE)
    assert lease is not None
    lease["spec"].update(spec)
    api.update(LEASE, lease)


def release(api: FakeApi) -> None:
    renew(api, holderIdentity="")


async def follow_an_outage(api: FakeApi) -> float:
    """Renew between two looks, lose the server, and return how long after its return we lead."""
    seat = Seat(api=api)
    hold_by_other(api)
    async with running(acquire(seat.elector)) as waiting:
        await asyncio.sleep(10 * LOOK_SECONDS + 0.1)
        renew(api)
        await asyncio.sleep(0.1)
        api.refusing = True
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(30.0)
        api.refusing = False
        back_at = loop_clock()()
        await waiting
    return loop_clock()() - back_at


class TestEyes:
    """A watch that works."""

    @virtual_time
    async def test_is_on_the_one_lease_from_the_version_last_seen(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await settle()
        (asked,) = seat.api.asked(WATCH)
        assert asked.path == LIST
        assert asked.query["fieldSelector"] == "metadata.name=kube-scheduler"
        assert asked.query["resourceVersion"] == str(seat.api.version)
        assert asked.query["allowWatchBookmarks"] == "true"
        assert 300 <= int(asked.query["timeoutSeconds"]) <= 600

    @virtual_time
    async def test_a_renewal_that_no_look_saw_before_an_outage_was_seen(self) -> None:
        assert await follow_an_outage(FakeApi()) <= RETRY_SECONDS + 0.1

    @virtual_time
    async def test_without_it_the_lease_is_counted_from_the_return(self) -> None:
        api = FakeApi()
        api.script(WATCH, LIST, *[REFUSED] * 100)
        assert await follow_an_outage(api) >= 15.0

    @virtual_time
    async def test_a_released_lease_is_taken_at_once(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(10 * LOOK_SECONDS + 0.1)
            release(seat.api)
            await settle()
            assert seat.elector.is_leading

    @virtual_time
    async def test_a_deleted_lease_is_looked_for_at_once_and_waited_for_all_the_same(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(10 * LOOK_SECONDS + 0.1)
            looks = len(seat.api.asked("GET"))
            seat.api.delete(LEASE)
            await settle()
            assert len(seat.api.asked("GET")) == looks + 1
            # Its holder may still write: those who have seen it wait as if it were there.
            await asyncio.sleep(15.0 - 10 * LOOK_SECONDS - 0.2)
            assert not seat.elector.is_leading
            await asyncio.sleep(0.2)
            assert seat.elector.is_leading

    @virtual_time
    async def test_renewals_wake_nobody(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            for _ in range(10):
                await asyncio.sleep(LOOK_SECONDS)
                renew(seat.api)
            await settle()
        assert len(seat.api.asked("GET")) == 11

    @virtual_time
    async def test_one_that_ends_as_agreed_goes_on_at_once(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, leaseDurationSeconds=600)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(5.0)
            seat.api.drop_watches()
            await settle()
            assert len(seat.api.watches) == 1
        assert len(seat.api.asked(WATCH)) == 2


class TestEnd:
    """It is open while somebody waits, and at no other time."""

    @virtual_time
    async def test_none_is_opened_for_a_lease_that_is_free(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        assert seat.api.asked(WATCH) == []

    @virtual_time
    async def test_a_holder_has_one_for_as_long_as_it_holds(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        await seat.elector.acquire()
        assert seat.api.asked(WATCH)
        assert seat.api.streams == []
        async with running(seat.elector.hold()):
            await asyncio.sleep(30.0)
            assert len(seat.api.streams) == 1
        assert seat.api.streams == []

    @virtual_time
    async def test_none_is_open_after_a_cancelled_wait(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.0)
            assert len(seat.api.streams) == 1
        assert seat.api.streams == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    @virtual_time
    async def test_the_next_wait_has_one_of_its_own(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        await seat.elector.acquire()
        hold_seconds = 1.0
        async with running(seat.elector.hold()):
            await asyncio.sleep(hold_seconds)
            renew(seat.api, holderIdentity="other")
            await asyncio.sleep(5.0)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.0)
            release(seat.api)
            await settle()
            assert seat.elector.is_leading

    @virtual_time
    async def test_a_mistake_of_our_own_is_not_hidden(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stumble(self: LeaseWatch, line: bytes) -> None:
            raise ZeroDivisionError(line)

        monkeypatch.setattr(LeaseWatch, "_take", stumble)
        seat = Seat()
        hold_by_other(seat.api)
        waiting = asyncio.create_task(seat.elector.acquire())
        await asyncio.sleep(1.0)
        renew(seat.api)
        with pytest.raises(ZeroDivisionError):
            await waiting


class NeverAnswered(FakeApi):
    """A server that takes watches and says nothing, not even yes."""

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[FakeStream]:
        self.requests.append(Request(WATCH, path, dict(query or {})))
        await asyncio.Event().wait()
        yield FakeStream()


async def released_within_a_look(seat: Seat) -> None:
    """Release between two looks, and be led by the next one."""
    await asyncio.sleep(0.1)
    release(seat.api)
    await asyncio.sleep(LOOK_SECONDS)
    assert seat.elector.is_leading


class TestBlind:
    """A watch that does not work changes nothing but how soon things are seen."""

    @virtual_time
    async def test_a_missing_right_is_told_once_and_clearly(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        seat = Seat()
        seat.api.script(WATCH, LIST, *[REFUSED] * 1000)
        hold_by_other(seat.api, leaseDurationSeconds=600)
        await seat.elector.acquire()
        assert loop_clock()() == pytest.approx(600.0, abs=0.1)
        assert len(seat.api.asked(WATCH)) == pytest.approx(600.0 / RETRY_SECONDS, abs=2)
        told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        cause = 'User "u" cannot watch resource "leases" in API group "c"'
        where = "watch leases.coordination.k8s.io in namespace kube-system"
        assert told == [f"missing permission: {where}: {cause}"]

    @pytest.mark.parametrize(
        "answer",
        [
            REFUSED,
            status(410, "Expired"),
            status(500, "InternalError"),
            status(404, "NotFound"),
            NotSent("refused"),
            OutcomeUnknown("reset"),
            [OutcomeUnknown("reset")],
            [b"}{\n"],
            [b"[" * 9999 + b"\n"],
            [b'{"type":"NEWS","object":{"metadata":{"name":"kube-scheduler"}}}\n'],
            [line(gone_event())],
            [],
        ],
        ids=lambda answer: repr(answer)[:30],
    )
    @virtual_time
    async def test_looks_go_on_and_it_is_opened_again(self, answer: Any) -> None:
        seat = Seat()
        seat.api.script(WATCH, LIST, answer)
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(RETRY_SECONDS - 0.1)
            assert len(seat.api.asked(WATCH)) == 1
            assert len(seat.api.asked("GET")) == 6
            await asyncio.sleep(0.2)
            assert len(seat.api.asked(WATCH)) == 2
            release(seat.api)
            await settle()
            assert seat.elector.is_leading

    @virtual_time
    async def test_one_that_is_never_answered(self) -> None:
        seat = Seat(api=NeverAnswered())
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(10 * LOOK_SECONDS)
            assert len(seat.api.asked(WATCH)) == 1
            await released_within_a_look(seat)

    @virtual_time
    async def test_a_silent_one_is_replaced_after_a_lease_duration(self) -> None:
        seat = Seat()
        seat.api.stalled = True
        hold_by_other(seat.api, leaseDurationSeconds=60)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(14.9)
            assert len(seat.api.asked(WATCH)) == 1
            await asyncio.sleep(RETRY_SECONDS + 0.2)
            assert len(seat.api.asked(WATCH)) == 2
            await released_within_a_look(seat)

    @virtual_time
    async def test_lost_history_is_not_asked_for_again(self) -> None:
        seat = Seat()
        seat.api.gone_as_event = True
        hold_by_other(seat.api, leaseDurationSeconds=60)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.0)
            seat.api.compact()
            seat.api.break_watches(OutcomeUnknown("reset"))
            await asyncio.sleep(3 * RETRY_SECONDS)
        asked = [request.query["resourceVersion"] for request in seat.api.asked(WATCH)]
        assert asked == ["101", "101", "0"]

    @virtual_time
    async def test_other_objects_and_unreadable_ones_say_nothing(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        other = {"metadata": {"name": "x", "resourceVersion": "900"}, "spec": {}}
        broken = {"metadata": {"name": "kube-scheduler", "resourceVersion": "901"}, "spec": 7}
        events = [{"type": kind, "object": o} for kind in ("ADDED", "DELETED") for o in (other,)]
        events.append({"type": "MODIFIED", "object": broken})
        seat.api.script(WATCH, LIST, [*map(line, events)])
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.0)
            assert seat.elector.holder == "other"
            assert len(seat.api.asked("GET")) == 2

    @virtual_time
    async def test_a_late_event_puts_nothing_back(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        stream = FakeStream()
        seat.api.open = lambda _request: stream
        old = seat.api.object(LEASE)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.0)
            renew(seat.api, holderIdentity="third")
            await asyncio.sleep(9.0)
            looks = len(seat.api.asked("GET"))
            # One that was seen long ago, one of before, and one that can't be compared.
            for version in (str(seat.api.version), "100", "zz", ""):
                assert old is not None
                old["metadata"]["resourceVersion"] = version
                old["spec"]["holderIdentity"] = ""
                stream.feed(line({"type": "MODIFIED", "object": old}))
            await settle()
            assert seat.elector.holder == "third"
            assert len(seat.api.asked("GET")) == looks
            # Seen by the look at 1.1 s, and counted from there.
            await asyncio.sleep(6.0)
            assert not seat.elector.is_leading
            await asyncio.sleep(0.2)
            assert seat.elector.is_leading
