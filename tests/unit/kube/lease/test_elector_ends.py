"""The elector: giving a lease back, and what may still be told afterwards."""

import asyncio
from typing import Any

import pytest

from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.lease.elector import Elector
from tests.fakes.clock import virtual_time
from tests.fakes.transport import Lost, status
from tests.unit.kube.elector_seat import LEASE, Seat
from tests.unit.kube.write_fakes import loop_clock, running


async def release(elector: Elector) -> None:
    await elector.release(timeout_seconds=60.0)


class TestTelling:
    """Events about what was done: also after giving the lease back, never after losing it."""

    @virtual_time
    async def test_who_never_led_may_tell_of_itself(self) -> None:
        assert Seat().elector.may_tell()

    @virtual_time
    async def test_ends_at_the_deadline(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        await asyncio.sleep(9.9)
        assert seat.elector.may_tell()
        await asyncio.sleep(0.1)
        assert not seat.elector.may_tell()
        await seat.elector.hold()
        assert not seat.elector.may_tell()
        await seat.elector.acquire()
        assert seat.elector.may_tell()

    @virtual_time
    async def test_ends_when_another_holder_is_seen(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.lose_to("other")
        await seat.elector.hold()
        assert not seat.elector.may_tell()
        assert await seat.elector.release()
        assert not seat.elector.may_tell()

    @virtual_time
    async def test_goes_on_after_the_lease_was_given_back(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        assert await seat.elector.release()
        await asyncio.sleep(60.0)
        assert not seat.elector.may_write()
        assert seat.elector.may_tell()

    @pytest.mark.parametrize("next_holder", ["", "next"])
    @virtual_time
    async def test_goes_on_if_only_the_answer_to_the_release_was_lost(
        self, next_holder: str
    ) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, Lost(executed=True, after_seconds=1.0))
        async with running(release(seat.elector)) as releasing:
            await asyncio.sleep(1.0)
            seat.lose_to(next_holder)
            await releasing
        await asyncio.sleep(60.0)
        assert seat.elector.may_tell()

    @virtual_time
    async def test_ends_if_the_lease_may_have_been_taken_before_it_was_given_back(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, Lost(executed=False, after_seconds=1.0))
        async with running(release(seat.elector)) as releasing:
            await asyncio.sleep(0.5)
            seat.ahead_seconds = 15.0
            seat.lose_to("next")
            await releasing
        assert not seat.elector.may_tell()

    @virtual_time
    async def test_a_lease_that_is_left_to_run_out_bounds_it(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            await asyncio.sleep(1.0)
        assert seat.elector.may_tell()
        await asyncio.sleep(9.0)
        assert not seat.elector.may_tell()


class TestRelease:
    """Giving the lease back."""

    @virtual_time
    async def test_frees_the_lease_for_the_next_one_at_once(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            await asyncio.sleep(5.0)
        assert await seat.elector.release()
        assert not seat.elector.may_write()
        assert seat.spec()["holderIdentity"] == ""
        assert seat.spec()["leaseDurationSeconds"] == 1
        before = loop_clock()()
        await Seat("next", seat.api).elector.acquire()
        assert loop_clock()() == before
        assert seat.spec()["leaseTransitions"] == 1

    @virtual_time
    async def test_leaves_the_lease_of_another_alone(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.lose_to("other")
        assert await seat.elector.release()
        assert seat.spec()["holderIdentity"] == "other"

    @virtual_time
    async def test_without_a_lease_does_nothing(self) -> None:
        seat = Seat()
        assert await seat.elector.release()
        assert seat.api.object(LEASE) is None

    @pytest.mark.parametrize(
        "answer", [NotSent("x"), Lost(executed=True), Lost(executed=False), status(500, "x")]
    )
    @virtual_time
    async def test_overcomes_passing_trouble(self, answer: Any) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.script("PUT", LEASE, answer)
        assert await seat.elector.release()
        assert seat.spec()["holderIdentity"] == ""

    @virtual_time
    async def test_gives_up_in_time_and_says_so(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        seat.api.refusing = True
        assert not await seat.elector.release(timeout_seconds=3.0)
        assert loop_clock()() == 3.0
        assert not seat.elector.may_write()
