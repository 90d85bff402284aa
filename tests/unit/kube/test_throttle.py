"""The client-side rate limit."""

import asyncio

import pytest

from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.throttle import throttled
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.fakes.harness import PODS_PATH


@virtual_time
async def test_a_burst_passes_and_then_the_rate_holds() -> None:
    api = FakeApi()
    transport = throttled(api, qps=10, burst=5)
    started = asyncio.get_running_loop().time()
    await asyncio.gather(*(transport.request("GET", PODS_PATH) for _ in range(25)))
    assert asyncio.get_running_loop().time() - started == pytest.approx(2.0)
    assert len(api.requests) == 25


@virtual_time
async def test_the_wait_counts_against_the_deadline() -> None:
    api = FakeApi()
    transport = throttled(api, qps=1, burst=1)
    await transport.request("GET", PODS_PATH)
    await transport.request("GET", PODS_PATH, timeout_seconds=5)
    assert api.requests[-1].timeout_seconds == pytest.approx(4)


@virtual_time
async def test_what_cannot_be_sent_in_time_is_not_sent_and_takes_no_token() -> None:
    api = FakeApi()
    transport = throttled(api, qps=1, burst=1)
    await transport.request("GET", PODS_PATH)
    for _ in range(3):
        with pytest.raises(NotSent, match="rate limit"):
            await transport.request("GET", PODS_PATH, timeout_seconds=0.5)
    await transport.request("GET", PODS_PATH, timeout_seconds=1.1)
    assert len(api.requests) == 2


@virtual_time
async def test_tokens_do_not_pile_up_beyond_the_burst() -> None:
    api = FakeApi()
    transport = throttled(api, qps=10, burst=2)
    await asyncio.sleep(100)
    started = asyncio.get_running_loop().time()
    for _ in range(4):
        await transport.request("GET", PODS_PATH)
    assert asyncio.get_running_loop().time() - started == pytest.approx(0.2)


@virtual_time
async def test_watches_go_past_it() -> None:
    api = FakeApi()
    transport = throttled(api, qps=0.001, burst=1)
    await transport.request("GET", PODS_PATH)
    async with transport.stream(PODS_PATH) as stream:
        assert stream.status == 200


@pytest.mark.parametrize("qps", [0, -1])
def test_without_a_rate_there_is_no_limit(qps: float) -> None:
    api = FakeApi()
    assert throttled(api, qps=qps, burst=1) is api
