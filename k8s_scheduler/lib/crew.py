"""Workers that come when there is work, so many at a time, and leave when nothing is left.

    call() ──► room for one more? ──► takes and does, piece by piece ──► leaves
                                      until nothing is left, or too many are here

What there is to do is kept by whoever calls. A lane is idle most of the time, and a hundred tasks
that wait there for their first piece cost each process a hundred starts and as many cancellations;
those that wait for one event all wake up for a piece that one of them takes.

A worker that is called does its first piece in the next turn of the loop, as one that had waited
would have. One that fails ends `run`, and with it all the others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Piece = TypeVar("Piece")


class Crew(Generic[Piece]):
    """The workers of one lane."""

    def __init__(
        self,
        most: int,
        take: Callable[[], Piece | None],
        do: Callable[[Piece], Awaitable[None]],
    ) -> None:
        """Have up to `most` workers at a time; `take` returns None when there is nothing to do."""
        self.most = most
        self._take = take
        self._do = do
        self._present = 0
        # Calls from before `run`.
        self._called = 0
        self._group: asyncio.TaskGroup | None = None

    def call(self) -> None:
        """Say that there is something more to do."""
        if self._group is None:
            self._called += 1
        elif self._present < self.most:
            self._present += 1
            self._group.create_task(self._work())

    def resize(self, most: int) -> None:
        """Have up to so many from now on; a piece that is begun is finished."""
        more, self.most = most - self.most, most
        for _ in range(more):
            self.call()

    async def run(self) -> None:
        """Let workers come until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for _ in range(min(self._called, self.most)):
                    self.call()
                await asyncio.get_running_loop().create_future()
            finally:
                # Nobody joins a group that is being broken up.
                self._group = None

    async def _work(self) -> None:
        try:
            while self._present <= self.most and (piece := self._take()) is not None:
                await self._do(piece)
        except BaseException:
            self._group = None
            raise
        finally:
            self._present -= 1
