"""Time that only moves when a test says so.

`FakeClock` is for code that takes a clock and a sleep. `virtual_time` is for code that uses the
event loop's own time (`asyncio.sleep`, `asyncio.timeout`, `loop.time()`): the test runs on a loop
that jumps to the next timer whenever nothing else is ready. Neither ever waits for real. Do not
mix the virtual loop with threads: it would jump over the time they take.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from k8s_scheduler.kube.waiting import Timing

P = ParamSpec("P")
R = TypeVar("R")

_THREAD_GRACE_SECONDS = 5.0


class FakeClock:
    """Call it for the time; sleeping on it moves it and is written down in `slept`."""

    def __init__(self, start: float = 1000.0) -> None:
        self.now = start
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def timing(self, uniform: Callable[[], float]) -> Timing:
        return Timing(clock=self, sleep=self.sleep, uniform=uniform)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that skips idle time and complains when nothing can ever happen again."""

    def __init__(self) -> None:
        self.virtual_seconds = 0.0
        super().__init__(_SkippingSelector(self))

    def time(self) -> float:
        return self.virtual_seconds


class _SkippingSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(_THREAD_GRACE_SECONDS)
            if not ready:
                raise RuntimeError("deadlock: every task waits and no timer is set")
            return ready
        self._loop.virtual_seconds += timeout
        return []


def run_virtual(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


def virtual_time(test: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Make a test (or hypothesis case) that is a coroutine run on virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_virtual(test(*args, **kwargs))

    return run


async def settle(turns: int = 50) -> None:
    """Let everything that is ready run, without moving time."""
    for _ in range(turns):
        await asyncio.sleep(0)
