"""Background tasks that can't die unnoticed.

A task that ends while it should run for ever is a failure of the process; `died` says which one
and why, and the process waits for it.
"""

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any


class TaskDiedError(Exception):
    """A background task ended although it should not have."""


class Supervisor:
    """Starts tasks, and reports the first that ends."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self.died: asyncio.Future[TaskDiedError] = asyncio.get_running_loop().create_future()

    def start(self, name: str, work: Coroutine[Any, Any, Any], *, may_end: bool = False) -> None:
        """Run `work` until `stop`; one that `may_end` may return, but not raise."""
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(functools.partial(self._ended, may_end=may_end))

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    async def until(self, *events: asyncio.Event, at_most_seconds: float | None = None) -> None:
        """Wait until one of the events is set, a task died, or the time is over."""
        waiting = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            ends: list[asyncio.Future[Any]] = [*waiting, self.died]
            await asyncio.wait(ends, timeout=at_most_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def stop(self, *names: str) -> None:
        """Cancel the named tasks, or all, and wait for them to end."""
        stopping = [self._tasks.pop(name) for name in names or list(self._tasks)]
        for task in stopping:
            task.cancel()
        await asyncio.gather(*stopping, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any], *, may_end: bool) -> None:
        if task.cancelled() or self._tasks.get(task.get_name()) is not task:
            return
        error = task.exception()
        if (error is not None or not may_end) and not self.died.done():
            died = TaskDiedError(f"{task.get_name()} ended: {error!r}")
            died.__cause__ = error
            self.died.set_result(died)
