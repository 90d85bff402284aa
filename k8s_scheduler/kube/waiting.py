"""Waits with an upper bound, on the clock and the sleep that the caller passes in."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Clocks, sleep and randomness of one process; a test or a simulation passes its own."""

    clock: Callable[[], float] = time.monotonic
    wall_clock_ns: Callable[[], int] = time.time_ns
    sleep: Sleep = asyncio.sleep
    uniform: Callable[[], float] = random.random


async def wait_within(event: asyncio.Event, timeout_seconds: float, *, sleep: Sleep) -> bool:
    if event.is_set():
        return True
    await first_of(event.wait(), sleep(timeout_seconds))
    return event.is_set()


async def first_of(*awaited: Awaitable[object]) -> None:
    """Return when the first one has ended, raise if it failed; the others are cancelled."""
    waiters = {asyncio.ensure_future(each) for each in awaited}
    try:
        ended, _ = await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        for waiter in ended:
            waiter.result()
    finally:
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)


def bounded_wait(asked_seconds: float | None, maximum_seconds: float) -> float:
    """Return the wait that a Retry-After asks for, bounded: any proxy can write that header."""
    if asked_seconds is None or not math.isfinite(asked_seconds):
        return 0.0
    return min(max(asked_seconds, 0.0), maximum_seconds)
