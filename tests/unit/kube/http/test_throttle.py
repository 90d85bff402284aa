"""The client-side rate limit."""

import asyncio

import pytest

from k8s_scheduler.kube.http.throttle import rate_limit
from tests.fakes.clock import virtual_time


async def seconds_for(admit, count: int) -> float:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(admit() for _ in range(count)))
    return loop.time() - started


@virtual_time
async def test_a_burst_passes_and_then_the_rate_holds() -> None:
    assert await seconds_for(rate_limit(qps=10, burst=5), 25) == pytest.approx(2.0)


@virtual_time
async def test_nobody_is_turned_away_however_long_it_takes() -> None:
    assert await seconds_for(rate_limit(qps=0.5, burst=1), 101) == pytest.approx(200.0)


@virtual_time
async def test_tokens_do_not_pile_up_beyond_the_burst() -> None:
    admit = rate_limit(qps=10, burst=2)
    await asyncio.sleep(100)
    assert await seconds_for(admit, 4) == pytest.approx(0.2)


@virtual_time
async def test_zero_is_no_limit() -> None:
    assert await seconds_for(rate_limit(qps=0, burst=0), 1000) == 0
