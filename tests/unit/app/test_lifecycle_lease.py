"""What a daemon that stops does with a lease that it holds, or may hold without knowing."""

import asyncio

import pytest

from k8s_scheduler.app.process.exit_codes import ExitCode
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, status
from tests.unit.app.lifecycle_scene import Scene
from tests.unit.kube.elector_seat import LEASE, Seat, hold_by_other
from tests.unit.kube.write_fakes import Desk, condition


class TestConditions:
    """Those under way are writes as any others."""

    @virtual_time
    async def test_the_lease_is_given_back_when_none_is_under_way(self, monkeypatch):
        desk = Desk()
        seat = Seat(api=desk.api)
        desk.api.script("PATCH", "*", *[Late(1.0)] * 400)
        scene = Scene(elector=seat.elector, dispatcher=desk.dispatcher)
        await settle()
        for number in range(400):
            desk.add_pod(f"p{number}")
            desk.dispatcher.submit_condition(condition(f"p{number}"))
        under_way = []
        ask = desk.api.request

        async def noting(method, path, **rest):
            if method == "PUT" and b'"holderIdentity":""' in rest["body"]:
                under_way.append(desk.dispatcher._conditions.under_way)
            return await ask(method, path, **rest)

        monkeypatch.setattr(desk.api, "request", noting)
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert under_way == [0]
        assert seat.spec()["holderIdentity"] == ""
        # Eight at a time, every second from 0 to 26: what is begun later could outlast the drain.
        assert len(desk.api.asked("PATCH")) == 8 * 27


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

    @staticmethod
    async def too_late():
        """Return a seat whose lease somebody else was faster to take, and the scene."""
        seat = Seat()
        hold_by_other(seat.api, holder="")
        seat.api.script("PUT", LEASE, status(409, "Conflict"))
        scene = Scene(elector=seat.elector)
        await settle()
        seat.lose_to("faster")
        return seat, scene

    @virtual_time
    async def test_that_of_somebody_else_is_left_alone(self):
        seat, scene = await self.too_late()
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert seat.spec()["holderIdentity"] == "faster"

    @virtual_time
    async def test_a_standby_that_was_too_late_asks_for_nothing_when_it_stops(self):
        seat, scene = await self.too_late()
        await asyncio.sleep(2.0)
        asked = len(seat.api.requests)
        scene.stop.set()
        assert await scene.running == ExitCode.OK
        assert len(seat.api.requests) == asked
