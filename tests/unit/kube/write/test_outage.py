"""What waits for a server that is away: scouts, its return, and its first moments after."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.outage import SCOUT_SECONDS, SCOUTS, Outage
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import status
from tests.unit.kube.write_fakes import loop_clock, loop_timing

OK = Response(200)
LONG_SECONDS = 10_000.0


class Scene:
    """An outage whose items are names; one that is woken asks, and may wait again."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.group = group
        self.woken: list[tuple[str, float]] = []
        self.asks_in_vain = False
        self.outage: Outage[str] = Outage(
            self.wake,
            start=lambda begin: group.create_task(begin()),
            timing=loop_timing(),
            starting_seconds=30.0,
        )

    def wake(self, item: str) -> None:
        self.woken.append((item, loop_clock()()))
        if self.asks_in_vain:
            self.wait(item, LONG_SECONDS)

    def wait(self, item: str, seconds: float) -> None:
        self.group.create_task(self.outage.wait(item, seconds))


@asynccontextmanager
async def away() -> AsyncIterator[Scene]:
    async with asyncio.TaskGroup() as group:
        scene = Scene(group)
        yield scene
        scene.asks_in_vain = False
        scene.outage.answered(OK)


@virtual_time
async def test_a_wait_ends_by_itself() -> None:
    async with away() as scene:
        scene.wait("a", 0.5)
        await asyncio.sleep(0.75)
        assert scene.woken == [("a", 0.5)]


@virtual_time
async def test_the_one_that_has_waited_longest_asks_every_second() -> None:
    async with away() as scene:
        for item in "abc":
            scene.wait(item, LONG_SECONDS)
        await asyncio.sleep(2.5 * SCOUT_SECONDS)
        assert scene.woken == [("a", 1.0), ("b", 2.0)]


@virtual_time
async def test_a_success_wakes_all_at_once() -> None:
    async with away() as scene:
        for item in "abc":
            scene.wait(item, LONG_SECONDS)
        await settle()
        scene.outage.answered(OK)
        assert scene.woken == [("a", 0.0), ("b", 0.0), ("c", 0.0)]


@pytest.mark.parametrize("code", [403, 429, 503])
@virtual_time
async def test_an_answer_that_is_no_success_wakes_none(code: int) -> None:
    async with away() as scene:
        scene.wait("a", LONG_SECONDS)
        await settle()
        scene.outage.answered(status(code, "No"))
        assert scene.woken == []


@virtual_time
async def test_a_server_that_is_away_for_long_is_not_asked_every_second_for_ever() -> None:
    async with away() as scene:
        scene.asks_in_vain = True
        scene.wait("a", LONG_SECONDS)
        await asyncio.sleep(3 * SCOUTS * SCOUT_SECONDS)
        assert len(scene.woken) == SCOUTS


@virtual_time
async def test_after_its_return_the_next_outage_has_its_scouts() -> None:
    async with away() as scene:
        scene.asks_in_vain = True
        scene.wait("a", LONG_SECONDS)
        await asyncio.sleep(2 * SCOUTS * SCOUT_SECONDS)
        scene.asks_in_vain = False
        scene.outage.answered(OK)
        scene.woken.clear()
        began_at = loop_clock()()
        scene.wait("b", LONG_SECONDS)
        await asyncio.sleep(1.5 * SCOUT_SECONDS)
        assert scene.woken == [("b", began_at + SCOUT_SECONDS)]


@virtual_time
async def test_a_server_may_be_starting_for_a_while_after_trouble() -> None:
    async with away() as scene:
        assert not scene.outage.may_be_starting
        scene.outage.had_trouble()
        await asyncio.sleep(29.0)
        assert scene.outage.may_be_starting
        await asyncio.sleep(1.0)
        assert not scene.outage.may_be_starting
