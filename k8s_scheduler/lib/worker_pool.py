"""A pool of workers that start when there is work, up to a limit, and end when none is left.

    notify() ──► room for one more? ──► takes and does, item by item ──► ends
                                        until nothing is left, or too many run

The owner of the pool keeps the queue. A queue is empty most of the time: a hundred tasks that wait
for their first item cost every process a hundred starts and as many cancellations, and tasks that
wait for one event all wake up for an item that one of them takes.

A worker takes its first item in the next turn of the loop, as a task that had waited would. A
worker or a side task that fails ends `run`, and with it all the others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class WorkerPool(Generic[Item]):
    """The workers of one queue, and the tasks that wait beside them."""

    def __init__(
        self,
        limit: int,
        take: Callable[[], Item | None],
        do: Callable[[Item], Awaitable[None]],
    ) -> None:
        """Run up to `limit` workers at a time; `take` returns None when there is nothing to do."""
        self.limit = limit
        self._take = take
        self._do = do
        self._working = 0
        # Notifications from before `run`.
        self._notified = 0
        self._group: asyncio.TaskGroup | None = None

    def notify(self) -> None:
        if self._group is None:
            self._notified += 1
        elif self._working < self.limit:
            self._working += 1
            self._group.create_task(self._work())

    def start(self, side_task: Callable[[], Awaitable[None]]) -> None:
        """Run something beside the workers, such as a wait; not if the pool does not run."""
        if self._group is not None:
            self._group.create_task(self._run_beside(side_task))

    def resize(self, limit: int) -> None:
        more, self.limit = limit - self.limit, limit
        for _ in range(more):
            self.notify()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for _ in range(min(self._notified, self.limit)):
                    self.notify()
                await asyncio.get_running_loop().create_future()
            finally:
                # A group that is being ended refuses new tasks.
                self._group = None

    async def _work(self) -> None:
        try:
            while self._working <= self.limit and (item := self._take()) is not None:
                await self._do(item)
        except BaseException:
            self._group = None
            raise
        finally:
            self._working -= 1

    async def _run_beside(self, side_task: Callable[[], Awaitable[None]]) -> None:
        try:
            await side_task()
        except BaseException:
            self._group = None
            raise
