"""Waits that end by themselves or are ended, once each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from k8s_scheduler.kube.write.interruptible_waits import InterruptibleWaits
from tests.fakes.clock import virtual_time


class Scene:
    def __init__(self) -> None:
        self.woken: list[tuple[str, float]] = []
        self.waits = InterruptibleWaits(self.wake, asyncio.sleep)

    def wake(self, item: str) -> None:
        self.woken.append((item, asyncio.get_running_loop().time()))

    @asynccontextmanager
    async def waiting(self, **seconds: float) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for item, length in seconds.items():
                group.create_task(self.waits.wait(item, length))
            await asyncio.sleep(0)
            yield


@virtual_time
async def test_each_is_woken_when_its_time_is_over() -> None:
    scene = Scene()
    async with scene.waiting(a=2.0, b=1.0):
        assert len(scene.waits) == 2
    assert scene.woken == [("b", 1.0), ("a", 2.0)]
    assert len(scene.waits) == 0


@virtual_time
async def test_the_one_that_began_first_is_woken_first_and_only_once() -> None:
    scene = Scene()
    async with scene.waiting(a=3.0, b=2.0):
        scene.waits.wake_first()
    assert scene.woken == [("a", 0.0), ("b", 2.0)]


@virtual_time
async def test_all_are_woken_in_their_order() -> None:
    scene = Scene()
    async with scene.waiting(a=3.0, b=2.0):
        scene.waits.wake_all()
        scene.waits.wake_all()
        scene.waits.wake_first()
    assert scene.woken == [("a", 0.0), ("b", 0.0)]


@virtual_time
async def test_a_wait_that_was_ended_early_does_not_end_the_next_of_the_same_item() -> None:
    scene = Scene()
    async with scene.waiting(a=3.0):
        scene.waits.wake_all()
        await asyncio.sleep(1.0)
        async with scene.waiting(a=5.0):
            pass
    assert scene.woken == [("a", 0.0), ("a", 6.0)]
