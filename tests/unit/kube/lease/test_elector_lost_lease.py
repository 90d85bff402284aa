"""A lease that is deleted, or older all of a sudden, never makes two processes write at once."""

import asyncio

import pytest

from k8s_scheduler.kube.watch.set_back import SetBack, Source
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Lost
from tests.unit.kube.elector_seat import LEASE, Seat, acquire, hold_by_other
from tests.unit.kube.write_fakes import running


class TestDeleted:
    """The holder notices at once; whoever makes a lease says that it did."""

    @virtual_time
    async def test_a_holder_lets_no_write_begin_until_it_has_made_the_lease_again(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            await asyncio.sleep(5.0)
            seat.api.refusing = True
            seat.api.delete(LEASE)
            await settle()
            waiting = asyncio.create_task(seat.elector.writes_may_begin())
            await asyncio.sleep(1.0)
            assert not waiting.done()
            seat.api.refusing = False
            await asyncio.sleep(2.0)
            assert waiting.done()
            assert seat.spec()["holderIdentity"] == "me"
            assert seat.elector.may_write()

    @virtual_time
    async def test_a_holder_makes_it_again_at_once_not_with_the_next_renewal(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            await asyncio.sleep(5.0)
            before = asyncio.get_running_loop().time()
            seat.api.delete(LEASE)
            await settle()
            assert asyncio.get_running_loop().time() == before
            assert seat.spec()["holderIdentity"] == "me"
            await seat.elector.writes_may_begin()

    @virtual_time
    async def test_a_holder_whose_lease_another_made_has_lost_it_at_once(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        holding = asyncio.create_task(seat.elector.hold())
        await asyncio.sleep(5.0)
        seat.api.delete(LEASE)
        hold_by_other(seat.api)
        await settle()
        assert holding.done()
        assert not seat.elector.may_write()
        # Whoever waited to begin a write is let go, to learn that it may not.
        await seat.elector.writes_may_begin()

    @virtual_time
    async def test_whoever_makes_a_lease_that_it_never_saw_is_newborn(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        assert seat.elector.is_newborn
        before = asyncio.get_running_loop().time()
        await seat.elector.let_others_stop()
        assert asyncio.get_running_loop().time() == pytest.approx(before + 15.0)

    @virtual_time
    async def test_so_it_is_if_the_answer_was_lost(self) -> None:
        seat = Seat()
        seat.api.script("POST", "*/leases", Lost(executed=True))
        await seat.elector.acquire()
        assert seat.elector.is_newborn

    @virtual_time
    async def test_whoever_saw_it_held_or_released_is_not(self) -> None:
        for holder in ("other", ""):
            seat = Seat()
            hold_by_other(seat.api, holder)
            await seat.elector.acquire()
            assert not seat.elector.is_newborn


class TestSetBack:
    """A lease of a restored storage is older than one that was seen."""

    @virtual_time
    async def test_a_holder_tells_of_it_with_its_next_renewal_and_goes_on(self) -> None:
        seat = Seat()
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            await asyncio.sleep(3.0)
            saved = seat.api.snapshot()
            await asyncio.sleep(3.0)
            known = str(seat.api.version)
            seat.api.restore(saved)
            seen = str(seat.api.version)
            await asyncio.sleep(2.1)
            assert seat.set_backs == [SetBack("leases", Source.LEASE, known=known, seen=seen)]
            assert seat.elector.may_write()

    @virtual_time
    async def test_a_standby_waits_for_the_holder_that_a_restored_lease_does_not_name(self) -> None:
        api = FakeApi()
        hold_by_other(api, "")
        saved = api.snapshot()
        holder, standby = Seat("holder", api), Seat("standby", api)
        await holder.elector.acquire()
        async with running(acquire(standby.elector)):
            await asyncio.sleep(1.0)
            # The holder does not renew from here on: it writes for as long as its deadline allows.
            api.restore(saved)
            while holder.elector.may_write():
                assert not standby.elector.is_leading
                await asyncio.sleep(0.1)
            assert [news.source for news in standby.set_backs] == [Source.LEASE]
            await asyncio.sleep(8.0)
            assert standby.elector.is_leading
