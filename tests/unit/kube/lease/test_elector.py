"""The elector: taking, renewing and losing a lease."""

import asyncio
import logging
import time
from typing import Any

import pytest

from k8s_scheduler.kube.errors import CredentialsError, NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.lease.elector import boot_time
from k8s_scheduler.kube.lease.lease import LeaseConfig
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, Request, status
from tests.unit.kube.elector_seat import LEASE, Seat, acquire, hold_by_other
from tests.unit.kube.write_fakes import loop_clock, running


class TestAcquire:
    """Becoming the leader."""

    @virtual_time
    async def test_missing_lease_is_created(self) -> None:
        seat = Seat()
        assert not seat.elector.may_write()
        assert seat.status() == 0
        await seat.elector.acquire()
        lease = seat.api.object(LEASE)
        assert lease is not None
        assert lease["spec"] == {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-02T03:04:05.000006Z",
            "renewTime": "2026-01-02T03:04:05.000006Z",
            "leaseTransitions": 0,
        }
        assert seat.elector.may_write()
        assert seat.elector.is_leading
        assert seat.elector.holder == "me"
        assert seat.status() == 1

    @virtual_time
    async def test_released_lease_is_taken_at_once_and_keeps_its_metadata(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="", preferredHolder="x", strategy="OldestEmulationVersion")
        await seat.elector.acquire()
        assert loop_clock()() == 0.0
        lease = seat.api.object(LEASE)
        assert lease is not None
        assert lease["metadata"]["labels"] == {"team": "a"}
        assert lease["spec"]["leaseTransitions"] == 5
        assert lease["spec"]["strategy"] == "OldestEmulationVersion"
        assert lease["spec"]["preferredHolder"] == "x"

    @virtual_time
    async def test_own_lease_of_a_former_life_is_taken_at_once(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="me", acquireTime="2025-01-01T00:00:00.000000Z")
        await seat.elector.acquire()
        assert loop_clock()() == 0.0
        assert seat.spec()["leaseTransitions"] == 4
        assert seat.spec()["acquireTime"] == "2025-01-01T00:00:00.000000Z"

    @virtual_time
    async def test_lease_of_another_is_taken_only_when_unchanged_for_its_duration(self) -> None:
        seat = Seat()
        # A remote clock far behind must not make the lease look expired.
        hold_by_other(seat.api, renewTime="1990-01-01T00:00:00.000000Z")
        await seat.elector.acquire()
        # And not a moment later than it may.
        assert loop_clock()() == pytest.approx(15.0, abs=0.02)
        assert seat.spec()["leaseTransitions"] == 5

    @virtual_time
    async def test_duration_is_the_one_the_holder_wrote(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, leaseDurationSeconds=60)
        await seat.elector.acquire()
        assert 60.0 <= loop_clock()() <= 65.0

    @virtual_time
    async def test_every_change_of_the_record_starts_the_wait_again(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)

        async def keep_alive() -> None:
            for _ in range(10):
                await asyncio.sleep(10.0)
                lease = seat.api.object(LEASE)
                assert lease is not None
                seat.api.update(LEASE, lease)  # even a write that changes nothing of the spec

        async with running(keep_alive()):
            await seat.elector.acquire()
        assert loop_clock()() >= 115.0

    @virtual_time
    async def test_deleted_lease_of_a_living_holder_is_not_taken_early(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.0)
            seat.api.delete(LEASE)
            await asyncio.sleep(13.0)
            assert not seat.elector.is_leading
            await asyncio.sleep(6.0)
            assert seat.elector.is_leading

    @virtual_time
    async def test_tries_of_a_server_in_trouble_are_jittered(self) -> None:
        seat = Seat()
        hold_by_other(seat.api)
        seat.api.script("GET", LEASE, *[status(500, "InternalError")] * 99)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(10.0)
        # Every 2 * (1 + 1.2 * 0.5) = 3.2 seconds.
        assert len(seat.api.asked("GET")) == 4

    @pytest.mark.parametrize(
        "answer",
        [
            NotSent("refused"),
            OutcomeUnknown("reset"),
            CredentialsError("no token"),
            status(500, "InternalError"),
            status(429, "TooManyRequests"),
            status(403, "Forbidden"),
            Response(200, b"not a lease"),
        ],
    )
    @virtual_time
    async def test_trouble_is_outlasted(self, answer: Any) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("GET", LEASE, answer)
        seat.api.script("PUT", LEASE, answer)
        await seat.elector.acquire()
        assert seat.spec()["holderIdentity"] == "me"

    @virtual_time
    async def test_answer_that_comes_too_late_does_not_make_a_leader(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="")

        def lagging(request: Request) -> Response:
            seat.ahead_seconds = 10.0
            return seat.api.answer(request)

        seat.api.script("PUT", LEASE, lagging)
        async with running(acquire(seat.elector)):
            await settle()
            assert seat.spec()["holderIdentity"] == "me"
            assert not seat.elector.is_leading

    @virtual_time
    async def test_lost_answer_does_not_make_a_leader_until_a_write_is_answered(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("PUT", LEASE, Lost(executed=True, after_seconds=1.0))
        async with running(acquire(seat.elector)):
            await asyncio.sleep(2.0)
            assert seat.spec()["holderIdentity"] == "me"
            assert not seat.elector.may_write()
            await asyncio.sleep(4.0)
            assert seat.elector.may_write()
        assert len(seat.api.asked("PUT")) == 2

    @virtual_time
    async def test_missing_namespace_is_told_of_and_asked_for_as_a_server_in_trouble(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        seat = Seat()
        text = 'namespaces "kube-system" not found'
        seat.api.script("POST", LEASE.rpartition("/")[0], *[status(404, "NotFound", text)] * 3)
        await seat.elector.acquire()
        # Three pauses of 2 * (1 + 1.2 * 0.5) seconds.
        assert loop_clock()() == pytest.approx(9.6)
        lines = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        said = "cannot create lease kube-system/kube-scheduler, trying again"
        assert lines[0] == f"{said}: 404 NotFound: {text}"

    @virtual_time
    async def test_lease_that_is_deleted_while_it_is_taken_is_made_anew_at_once(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="")

        def deleted(request: Request) -> Response:
            seat.api.delete(LEASE)
            return seat.api.answer(request)

        seat.api.script("PUT", LEASE, deleted)
        await seat.elector.acquire()
        assert loop_clock()() < 0.1
        assert seat.spec()["holderIdentity"] == "me"

    @virtual_time
    async def test_somebody_faster_wins(self) -> None:
        seat = Seat()
        hold_by_other(seat.api, holder="")

        def overtaken(request: Request) -> Response:
            lease = seat.api.object(LEASE)
            assert lease is not None
            lease["spec"]["holderIdentity"] = "faster"
            seat.api.update(LEASE, lease)
            return seat.api.answer(request)

        seat.api.script("PUT", LEASE, overtaken)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(10.0)
            assert not seat.elector.is_leading
            assert seat.elector.holder == "faster"


class TestHold:
    """Staying the leader, and knowing when it is over."""

    @virtual_time
    async def test_renews_every_retry_period_without_reading(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        reads = len(seat.api.asked("GET"))
        async with running(seat.elector.hold()):
            await asyncio.sleep(100.5)
            assert seat.elector.may_write()
            assert len(seat.api.asked("PUT")) == 50
            assert len(seat.api.asked("GET")) == reads
            assert seat.spec()["renewTime"] == "2026-01-02T03:05:45.000006Z"
            assert seat.spec()["acquireTime"] == "2026-01-02T03:04:05.000006Z"
            assert seat.spec()["leaseTransitions"] == 0

    @pytest.mark.parametrize(
        "answer", [NotSent("refused"), OutcomeUnknown("reset"), status(503, "x"), Late(60.0)]
    )
    @virtual_time
    async def test_stops_before_the_lease_can_be_taken(self, answer: Any) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, *[answer] * 99)
        seat.api.script("GET", LEASE, *[answer] * 99)
        await seat.elector.hold()
        assert loop_clock()() == 10.0
        assert not seat.elector.is_leading
        assert not seat.elector.may_write()
        assert seat.status() == 0

    @virtual_time
    async def test_deadline_counts_from_the_start_of_the_renewal(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, Late(5.0))
        async with running(seat.elector.hold()):
            await asyncio.sleep(6.0)  # renewed at 2, answered at 7
            seat.api.refusing = True
            await asyncio.sleep(5.9)
            assert seat.elector.may_write()
            await asyncio.sleep(0.1)
            assert not seat.elector.may_write()

    @virtual_time
    async def test_may_write_ends_at_the_deadline_even_if_nothing_else_runs(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        await asyncio.sleep(9.9)
        assert seat.elector.may_write()
        await asyncio.sleep(0.1)
        assert seat.elector.is_leading
        assert not seat.elector.may_write()
        await seat.elector.hold()
        assert not seat.elector.is_leading

    @virtual_time
    async def test_renewal_that_is_read_after_the_deadline_does_not_bring_it_back(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        could_write = []

        def lagging(request: Request) -> Response:
            seat.ahead_seconds = 9.0
            could_write.append(seat.elector.may_write())
            return seat.api.answer(request)

        seat.api.script("PUT", LEASE, lagging)
        # Renewed at 2, read at 11: until 12 it would count, but from 10 on writes were held back.
        await seat.elector.hold()
        assert could_write == [False]
        assert loop_clock()() == 2.0
        assert not seat.elector.is_leading
        assert not seat.elector.may_write()

    @virtual_time
    async def test_who_lost_it_so_can_take_it_anew(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.ahead_seconds = 10.0
        await seat.elector.hold()
        await seat.elector.acquire()
        assert seat.elector.may_write()

    @virtual_time
    async def test_short_trouble_does_not_end_it(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, NotSent("x"), Lost(executed=True), status(500, "x"))
        async with running(seat.elector.hold()):
            await asyncio.sleep(30.0)
            assert seat.elector.may_write()

    @virtual_time
    async def test_foreign_write_that_leaves_us_the_holder_is_read_and_renewed(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        lease = seat.api.object(LEASE)
        assert lease is not None
        lease["metadata"]["labels"] = {"team": "b"}
        seat.api.update(LEASE, lease)
        async with running(seat.elector.hold()):
            await asyncio.sleep(3.0)
            assert seat.elector.may_write()
            after = seat.api.object(LEASE)
            assert after is not None
            assert after["metadata"]["labels"] == {"team": "b"}
            assert len(seat.api.asked("PUT")) == 2

    @virtual_time
    async def test_other_holder_ends_it_at_the_next_renewal(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.lose_to("other")
        await seat.elector.hold()
        assert loop_clock()() == 2.0
        assert not seat.elector.may_write()

    @virtual_time
    async def test_deleted_lease_is_created_again(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.delete(LEASE)
        async with running(seat.elector.hold()):
            await asyncio.sleep(3.0)
            assert seat.elector.may_write()
            assert seat.spec()["holderIdentity"] == "me"

    @virtual_time
    async def test_bug_or_cancellation_never_leaves_it_leading(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, ZeroDivisionError("bug"))
        with pytest.raises(ZeroDivisionError):
            await seat.elector.hold()
        assert not seat.elector.is_leading
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            await settle()
        assert not seat.elector.is_leading

    @virtual_time
    async def test_says_what_happened_in_kube_schedulers_words(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        seat = Seat()
        with caplog.at_level(logging.INFO):
            await seat.elector.acquire()
            seat.api.refusing = True
            await seat.elector.hold()
        lines = [record.getMessage() for record in caplog.records]
        assert "attempting to acquire leader lease kube-system/kube-scheduler..." in lines
        assert "successfully acquired lease kube-system/kube-scheduler" in lines
        assert "me became leader" in lines
        assert "failed to renew lease kube-system/kube-scheduler: timed out" in lines
        assert lines[-1] == "me stopped leading"

    @virtual_time
    async def test_missing_permission_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        seat = Seat()
        text = 'User "u" cannot get resource "leases" in API group "coordination.k8s.io"'
        seat.api.script("GET", LEASE, *[status(403, "Forbidden", text)] * 3)
        await seat.elector.acquire()
        lines = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert lines == [
            "missing permission: get leases.coordination.k8s.io in namespace kube-system: " + text
        ]


class TestConfig:
    """Times that would not be safe are refused, all at once."""

    @pytest.mark.parametrize(
        ("times", "problem"),
        [
            ({"lease_duration_seconds": 10.0}, "leaseDuration must be greater than renewDeadline"),
            ({"retry_period_seconds": 9.0}, "renewDeadline must be greater than retryPeriod"),
            ({"retry_period_seconds": 0.0}, "retryPeriod must be greater than zero"),
            ({"renew_deadline_seconds": -1.0}, "renewDeadline must be greater than zero"),
            ({"identity": ""}, "identity must not be empty"),
        ],
    )
    def test_refuses(self, times: dict[str, Any], problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            LeaseConfig(**{"name": "n", "namespace": "s", "identity": "i", **times})

    def test_tells_everything_that_is_wrong(self) -> None:
        with pytest.raises(ValueError, match=r"name must.*; namespace must.*; leaseDuration"):
            LeaseConfig(name="", namespace="", identity="i", lease_duration_seconds=1.0)

    @virtual_time
    async def test_fraction_of_a_second_is_rounded_up_for_others(self) -> None:
        seat = Seat(lease_duration_seconds=15.5)
        await seat.elector.acquire()
        assert seat.spec()["leaseDurationSeconds"] == 16

    def test_boot_time_goes_forward(self) -> None:
        assert boot_time() >= time.monotonic() - 1.0
