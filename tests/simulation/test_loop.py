"""Time that jumps, and processes that stand still, on one loop."""

import asyncio
import contextvars

import pytest

from tests.simulation.loop import OWNER, StandstillError, VirtualLoop


@pytest.fixture
def loop():
    made = VirtualLoop()
    yield made
    made.close()


def owned(loop, owner, work):
    context = contextvars.copy_context()
    context.run(OWNER.set, owner)
    return loop.create_task(work, context=context)


async def steps(name, log, *, seconds=1.0, count=3):
    loop = asyncio.get_running_loop()
    for _ in range(count):
        await asyncio.sleep(seconds)
        log.append((name, loop.time()))


def test_time_jumps_to_the_next_timer(loop):
    log = []
    loop.run_until_complete(steps("x", log, seconds=1000.0))
    assert log == [("x", 1000.0), ("x", 2000.0), ("x", 3000.0)]


def test_a_frozen_owner_stands_still_and_goes_on_where_it_was(loop):
    log = []
    tasks = [owned(loop, name, steps(name, log)) for name in ("a", "b")]
    loop.at(1.5, loop.freeze, "a")
    loop.at(10.0, loop.thaw, "a")
    loop.run_until_complete(asyncio.wait(tasks))
    assert [at for name, at in log if name == "b"] == [1.0, 2.0, 3.0]
    assert [at for name, at in log if name == "a"] == [1.0, 10.0, 11.0]


def test_what_came_for_a_frozen_owner_is_there_when_it_is_thawed(loop):
    log = []
    answer = loop.create_future()

    async def asking():
        log.append((await answer, loop.time()))

    task = owned(loop, "a", asking())
    loop.at(0.5, loop.freeze, "a")
    loop.at(1.0, answer.set_result, "yes")
    loop.at(5.0, loop.thaw, "a")
    loop.run_until_complete(task)
    assert log == [("yes", 5.0)]


def test_ending_an_owner_ends_its_tasks_and_no_others(loop):
    log = []
    gone, stays = (owned(loop, name, steps(name, log)) for name in ("a", "b"))
    loop.at(1.5, loop.end, "a")
    loop.run_until_complete(asyncio.wait([gone, stays]))
    assert gone.cancelled()
    assert [name for name, _ in log] == ["a", "b", "b", "b"]


def test_what_happens_outside_survives_the_owner_that_asked_for_it(loop):
    log = []

    async def asking():
        loop.at(2.0, log.append, "carried out")
        await asyncio.sleep(10.0)

    task = owned(loop, "a", asking())
    loop.at(1.0, loop.freeze, "a")
    loop.at(3.0, loop.thaw, "a")
    loop.run_until_complete(task)
    assert log == ["carried out"]


def test_a_loop_on_which_nothing_can_happen_says_so(loop):
    with pytest.raises(StandstillError, match="no timer is set"):
        loop.run_until_complete(loop.create_future())


def test_a_loop_that_spins_says_so(loop):
    def spin():
        loop.call_soon(spin)

    spin()
    with pytest.raises(StandstillError, match=r"turns at 0\.000 s"):
        loop.run_until_complete(loop.create_future())
