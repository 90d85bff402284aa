"""The elector: calls that are never answered leave time for another try."""

import asyncio

import pytest

from tests.fakes.clock import virtual_time
from tests.fakes.transport import WATCH, Late, Lost, status
from tests.unit.kube.elector_seat import LEASE, Seat, acquire, hold_by_other
from tests.unit.kube.write_fakes import loop_clock, running

# A connection that has died without a word.
HANGS = Lost(executed=False, after_seconds=3600.0)


class TestHangingCalls:
    """Each call has a share of the time there is, half of it, as in client-go."""

    @virtual_time
    async def test_one_renewal_that_hangs_does_not_cost_the_lease(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, HANGS)
        async with running(seat.elector.hold()) as holding:
            await asyncio.sleep(30.0)
            assert not holding.done()
            assert seat.elector.may_write()

    @virtual_time
    async def test_a_renewal_is_tried_again_as_soon_as_one_that_hangs_is_given_up(self) -> None:
        """Begun at 2 and given up at 7, when the retry period has long passed."""
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, HANGS)
        async with running(seat.elector.hold()):
            await asyncio.sleep(7.1)
            assert len(seat.api.asked("PUT")) == 2
            # What was asked for at 7 counts from there.
            await asyncio.sleep(3.0)
            assert seat.elector.may_write()

    @virtual_time
    async def test_one_look_that_hangs_does_not_hold_up_a_take_over(self) -> None:
        seat = Seat()
        seat.api.script(WATCH, "*/leases", *[status(403, "Forbidden")] * 99)
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(3.0)
            seat.api.script("GET", LEASE, HANGS)
            await asyncio.sleep(1.0)
            seat.lose_to("")
            # What is left of five seconds, and a pause of 2 * (1 + 1.2 * 0.5) after a failure.
            await asyncio.sleep(8.0)
            assert seat.elector.is_leading

    @virtual_time
    async def test_a_release_that_hangs_is_tried_again(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, HANGS)
        assert await seat.elector.release()
        assert loop_clock()() == 2.5
        assert seat.spec()["holderIdentity"] == ""

    @virtual_time
    async def test_the_read_and_the_write_of_a_release_have_a_share_each(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, *[Late(2.4)] * 2)
        seat.api.script("GET", LEASE, Late(2.4))
        # Left in the middle of a renewal: the lease has to be read.
        async with running(seat.elector.hold()):
            await asyncio.sleep(2.1)
        assert await seat.elector.release()
        assert loop_clock()() == pytest.approx(2.1 + 2.4 + 2.4)

    @pytest.mark.parametrize(
        ("renew_deadline_seconds", "call_seconds"), [(10.0, 5.0), (1.5, 1.0), (0.8, 0.8)]
    )
    @virtual_time
    async def test_a_call_has_half_of_the_renew_deadline_and_a_second_if_that_is_less(
        self, renew_deadline_seconds: float, call_seconds: float
    ) -> None:
        seat = Seat(
            renew_deadline_seconds=renew_deadline_seconds,
            retry_period_seconds=renew_deadline_seconds / 5,
        )
        await seat.elector.acquire()
        assert {r.timeout_seconds for r in seat.api.requests} == {call_seconds}
