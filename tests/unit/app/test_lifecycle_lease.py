"""What a daemon that stops does with a lease that it holds, or may hold without knowing."""

import asyncio

import pytest

from k8s_scheduler.app.exit_codes import ExitCode
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, status
from tests.unit.app.lifecycle_scene import Scene
from tests.unit.kube.elector_seat import LEASE, Seat, hold_by_other


class TestLeaseThatIsBeingTaken:
    """It would be held by a process that is no more, and all others would have to wait."""

    @pytest.mark.parametrize(
        ("answer", "after_seconds"),
        [(Late(0.05), 0.0), (Lost(executed=True), 1.0), (Lost(executed=False), 1.0)],
        ids=["under way", "taken, and the answer lost", "not taken, and the answer lost"],
    )
    @virtual_time
    async def test_is_given_back(self, answer, after_seconds):
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("PUT", LEASE, answer)
        scene = Scene(elector=seat.elector)
        await settle()
        await asyncio.sleep(after_seconds)
        assert not seat.elector.is_leading
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert seat.spec()["holderIdentity"] == ""

    @virtual_time
    async def test_a_write_that_arrives_after_the_release_takes_nothing(self):
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("PUT", LEASE, Lost(executed=False, after_seconds=60.0))
        scene = Scene(elector=seat.elector)
        await settle()
        [under_way] = seat.api.asked("PUT")
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert seat.api.answer(under_way).status == 409
        assert seat.spec()["holderIdentity"] == ""

    @virtual_time
    async def test_that_of_somebody_else_is_left_alone(self):
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("PUT", LEASE, status(409, "Conflict"))
        scene = Scene(elector=seat.elector)
        await settle()
        seat.lose_to("faster")
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert seat.spec()["holderIdentity"] == "faster"

    @virtual_time
    async def test_a_standby_that_was_too_late_asks_for_nothing_when_it_stops(self):
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("PUT", LEASE, status(409, "Conflict"))
        scene = Scene(elector=seat.elector)
        await settle()
        seat.lose_to("faster")
        await asyncio.sleep(2.0)
        asked = len(seat.api.requests)
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert len(seat.api.requests) == asked
