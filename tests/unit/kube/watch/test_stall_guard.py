"""Silence is measured from when somebody began to wait, however often bytes came before."""

import asyncio

import pytest

from k8s_scheduler.kube.watch.stall_guard import StallGuard
from k8s_scheduler.kube.watch.streams import StreamError
from tests.fakes.clock import virtual_time


def now():
    return asyncio.get_running_loop().time()


async def chunks(*pauses):
    for pause in pauses:
        await asyncio.sleep(pause)
        yield b"x"


async def read(patience, stream, *, work_seconds=0.0):
    async with patience.guard():
        while await patience.next_chunk(stream) is not None:  # noqa: ASYNC110  work, not waiting
            await asyncio.sleep(work_seconds)


@virtual_time
async def test_a_watch_that_falls_silent_is_given_up_so_long_after_the_last_chunk():
    with pytest.raises(StreamError, match="nothing came for 10 s"):
        await read(StallGuard(10.0), chunks(1.0, 9.0, 3.0, 1000.0))
    assert now() == 1.0 + 9.0 + 3.0 + 10.0


@virtual_time
async def test_chunks_that_come_in_time_are_enough_for_ever():
    await read(StallGuard(10.0), chunks(*[9.0] * 20))
    assert now() == 180.0


@virtual_time
async def test_slow_work_is_no_silence():
    await read(StallGuard(10.0), chunks(1.0, 1.0, 1.0), work_seconds=60.0)
    assert now() == 183.0


@virtual_time
async def test_silence_after_slow_work_is_counted_from_its_end():
    with pytest.raises(StreamError):
        await read(StallGuard(10.0), chunks(1.0, 1000.0), work_seconds=14.0)
    assert now() == 25.0


@virtual_time
async def test_one_watch_after_the_other_has_all_its_time():
    patience = StallGuard(10.0)
    await read(patience, chunks(8.0))
    with pytest.raises(StreamError):
        await read(patience, chunks(1000.0))
    assert now() == 18.0


@virtual_time
async def test_an_interruption_ends_it_at_once_and_quietly():
    patience = StallGuard(10.0)
    asyncio.get_running_loop().call_later(4.0, patience.interrupt)
    await read(patience, chunks(1.0, 1000.0))
    assert now() == 4.0
