"""Waiting, but never for ever: for an event on an injected sleep, for as long as a server asks."""

import asyncio
import math
from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]


async def wait_within(event: asyncio.Event, timeout_seconds: float, *, sleep: Sleep) -> bool:
    """Return whether the event was set within the time."""
    if event.is_set():
        return True
    await first_of(event.wait(), sleep(timeout_seconds))
    return event.is_set()


async def first_of(*awaited: Awaitable[object]) -> None:
    """Return when the first of them has ended, raise if it failed; the others are given up."""
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
    """Return what a Retry-After asks for, within reason: the header is only text from outside."""
    if asked_seconds is None or not math.isfinite(asked_seconds):
        return 0.0
    return min(max(asked_seconds, 0.0), maximum_seconds)
