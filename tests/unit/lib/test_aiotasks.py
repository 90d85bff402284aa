"""A background task can't die unnoticed."""

import asyncio

from k8s_scheduler.lib.aiotasks import Supervisor


async def fail():
    raise ValueError("boom")


async def test_the_first_death_is_told_with_its_cause():
    tasks = Supervisor()
    tasks.start("worker", fail())
    died = await asyncio.wait_for(tasks.died, 1)
    assert "worker ended" in str(died)
    assert isinstance(died.__cause__, ValueError)
    await tasks.stop()


async def test_ending_is_a_death_too_unless_it_may():
    tasks = Supervisor()
    tasks.start("short", asyncio.sleep(0), may_end=True)
    await asyncio.sleep(0.01)
    assert not tasks.died.done()
    tasks.start("endless", asyncio.sleep(0))
    assert "endless" in str(await asyncio.wait_for(tasks.died, 1))
    await tasks.stop()


async def test_stopping_is_no_death():
    tasks = Supervisor()
    tasks.start("one", asyncio.Event().wait())
    tasks.start("two", asyncio.Event().wait())
    await tasks.stop("one")
    assert "one" not in tasks
    assert "two" in tasks
    await tasks.stop()
    assert not tasks.died.done()


async def test_until_ends_with_an_event_a_death_or_the_time():
    tasks = Supervisor()
    stop, other = asyncio.Event(), asyncio.Event()
    await tasks.until(stop, other, at_most_seconds=0)
    assert not stop.is_set()
    other.set()
    await asyncio.wait_for(tasks.until(stop, other), 60)
    other.clear()
    tasks.start("worker", fail())
    await asyncio.wait_for(tasks.until(stop, other), 60)
    assert tasks.died.done()
    await tasks.stop()
