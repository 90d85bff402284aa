"""The client-side rate limit of `clientConnection.qps` and `burst`.

A write about pods asks for admission first and only then whether it may write: the wait is
unbounded and outside every deadline, and a write never starts on an old answer. Lease renewals,
which must not wait behind other writes, and lists and watches do not ask.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from k8s_scheduler.lib.token_bucket import TokenBucket

Admit: TypeAlias = Callable[[], Awaitable[None]]


async def unlimited() -> None:
    """Let everything pass at once."""


def gated(admit: Admit, may_begin: Admit) -> Admit:
    """Return an admission that also waits for another: both are asked before each request."""

    async def both() -> None:
        if admit is not unlimited:
            await admit()
        await may_begin()

    return both


def rate_limit(*, qps: float, burst: int) -> Admit:
    """Return what to await before each request; `qps <= 0` is no limit."""
    if qps <= 0:
        return unlimited
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(qps, max(burst, 1), loop.time())

    async def admit() -> None:
        wait_seconds = bucket.reserve(loop.time(), longest_seconds=float("inf"))
        if wait_seconds:
            await asyncio.sleep(wait_seconds)

    return admit
