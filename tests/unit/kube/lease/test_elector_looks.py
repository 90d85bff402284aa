"""How soon a candidate follows by looks alone: often, and awake when the lease is over.

Without the right to watch, that is; what a watch adds is in `test_lease_watch.py`.
"""

import asyncio

from tests.fakes.clock import virtual_time
from tests.fakes.transport import WATCH, status
from tests.unit.kube.elector_seat import LEASE, Seat, acquire, hold_by_other
from tests.unit.kube.write_fakes import loop_clock, running


def blind_seat(**times: float) -> Seat:
    seat = Seat(**times)
    seat.api.script(WATCH, "*/leases", *[status(403, "Forbidden")] * 1000)
    return seat


class TestLooks:
    """A standby with somebody before it."""

    @virtual_time
    async def test_a_held_lease_is_looked_at_twice_a_second(self) -> None:
        seat = blind_seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(11.1)
        # Every 0.5 * (1 + 0.2 * 0.5) = 0.55 seconds.
        assert len(seat.api.asked("GET")) == 21
        assert seat.api.asked("PUT") == []

    @virtual_time
    async def test_looks_are_no_more_frequent_than_a_shorter_retry_period(self) -> None:
        seat = blind_seat(retry_period_seconds=0.1, renew_deadline_seconds=1.0)
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(1.15)
        assert len(seat.api.asked("GET")) == 11

    @virtual_time
    async def test_a_crashed_leader_is_followed_a_look_after_its_lease_is_over(
        self,
    ) -> None:
        seat = blind_seat()
        hold_by_other(seat.api)
        crashed_at = 6.3

        async def renew_until_the_crash() -> None:
            while loop_clock()() < crashed_at - 2.0:
                await asyncio.sleep(2.0)
                lease = seat.api.object(LEASE)
                assert lease is not None
                seat.api.update(LEASE, lease)

        async with running(renew_until_the_crash()):
            await seat.elector.acquire()
        assert loop_clock()() <= crashed_at + 15.0 + 0.6

    @virtual_time
    async def test_a_released_lease_is_taken_within_a_look(self) -> None:
        seat = blind_seat()
        hold_by_other(seat.api)
        async with running(acquire(seat.elector)):
            await asyncio.sleep(7.0)
            lease = seat.api.object(LEASE)
            assert lease is not None
            lease["spec"]["holderIdentity"] = ""
            seat.api.update(LEASE, lease)
            await asyncio.sleep(0.6)
            assert seat.elector.is_leading
