"""Workers are there when there is work, never too many, and never by half."""

import asyncio
from collections import deque

import pytest

from k8s_scheduler.lib.worker_pool import WorkerPool
from tests.unit.kube.write_fakes import running


class Lane:
    """Pieces that wait, and workers that do each when the test says so."""

    def __init__(self, most):
        self.waiting = deque()
        self.begun = []
        self.ends = {}
        self.pool = WorkerPool(
            most, lambda: self.waiting.popleft() if self.waiting else None, self.do
        )

    def put(self, *pieces):
        for piece in pieces:
            self.waiting.append(piece)
            self.pool.notify()

    async def do(self, piece):
        self.begun.append(piece)
        self.ends[piece] = asyncio.get_running_loop().create_future()
        await self.ends[piece]

    async def end(self, piece):
        self.ends[piece].set_result(None)
        await turns()


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_no_more_than_so_many_work_at_a_time_and_what_is_left_is_taken_up():
    lane = Lane(2)
    async with running(lane.pool.run()):
        await turns()
        lane.put("a", "b", "c", "d")
        await turns()
        assert lane.begun == ["a", "b"]
        await lane.end("b")
        assert lane.begun == ["a", "b", "c"]
        await lane.end("a")
        assert lane.begun == ["a", "b", "c", "d"]


async def test_no_worker_stays_when_nothing_is_left():
    lane = Lane(8)
    before = len(asyncio.all_tasks())
    async with running(lane.pool.run()):
        lane.put("a", "b")
        await turns()
        await lane.end("a")
        await lane.end("b")
        assert len(asyncio.all_tasks()) == before + 1
        lane.put("c")
        await turns()
        assert lane.begun == ["a", "b", "c"]


async def test_a_piece_is_begun_in_the_next_turn():
    lane = Lane(1)
    async with running(lane.pool.run()):
        await turns()
        lane.put("a")
        assert not lane.begun
        await asyncio.sleep(0)
        assert lane.begun == ["a"]


async def test_what_came_before_it_runs_is_done():
    lane = Lane(2)
    lane.put("a", "b", "c")
    async with running(lane.pool.run()):
        await turns()
        assert lane.begun == ["a", "b"]


async def test_fewer_finish_what_they_have_begun_and_more_begin_at_once():
    lane = Lane(2)
    async with running(lane.pool.run()):
        await turns()
        lane.put("a", "b", "c", "d", "e")
        await turns()
        lane.pool.resize(1)
        await lane.end("a")
        assert lane.begun == ["a", "b"]
        await lane.end("b")
        assert lane.begun == ["a", "b", "c"]
        lane.pool.resize(3)
        await turns()
        assert lane.begun == ["a", "b", "c", "d", "e"]


async def test_a_pool_without_workers_waits_until_it_has_some():
    lane = Lane(0)
    lane.put("a")
    async with running(lane.pool.run()):
        lane.put("b")
        await turns()
        assert not lane.begun
        lane.pool.resize(1)
        await turns()
        assert lane.begun == ["a"]


async def test_a_worker_that_fails_ends_all_and_later_notifications_do_no_harm():
    lane = Lane(2)
    task = asyncio.ensure_future(lane.pool.run())
    await turns()
    lane.put("a", "b")
    await turns()
    lane.ends["a"].set_exception(ValueError("boom"))
    for piece in "cdefgh":
        lane.put(piece)
        await asyncio.sleep(0)
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert isinstance(caught.value.exceptions[0], ValueError)
    assert lane.begun == ["a", "b"]


async def test_a_side_task_takes_no_workers_place():
    lane, ended = Lane(1), asyncio.Event()
    async with running(lane.pool.run()):
        await turns()
        lane.pool.start(ended.wait)
        lane.put("a")
        await turns()
        assert lane.begun == ["a"]


async def test_a_side_task_that_fails_ends_all_and_later_ones_do_no_harm():
    lane, failing = Lane(1), asyncio.get_running_loop().create_future()

    async def fail():
        await failing

    task = asyncio.ensure_future(lane.pool.run())
    await turns()
    lane.pool.start(fail)
    await turns()
    failing.set_exception(ValueError("boom"))
    for piece in "abc":
        lane.pool.start(fail)
        lane.put(piece)
        await asyncio.sleep(0)
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert isinstance(caught.value.exceptions[0], ValueError)


async def test_a_side_task_of_a_pool_that_does_not_run_is_not_begun():
    lane, begun = Lane(1), []

    async def begin():
        begun.append(1)

    lane.pool.start(begin)
    await turns()
    assert not begun
