"""How long a reflector waits after failures: long if refused, and not if nobody is there."""

import asyncio
import itertools
from typing import Any

import pytest

from k8s_scheduler.kube.resources import PODS
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.fakes.harness import watched
from tests.fakes.transport import status


def now() -> float:
    return asyncio.get_running_loop().time()


class TestDelays:
    """After one failure after the other."""

    @virtual_time
    async def test_delays_grow_to_their_limit(self) -> None:
        api = FakeApi()
        api.script("WATCH", PODS.list_path, *[status(403, "Forbidden")] * 99)
        times = await self._times(api)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert 0.3 <= gaps[0] <= 2.2
        assert all(gap <= 30.5 for gap in gaps)
        assert gaps[-1] >= 29.5
        assert 8 <= len(times) <= 20

    @pytest.mark.parametrize("answer", [None, status(503, "ServiceUnavailable")])
    @virtual_time
    async def test_a_server_that_is_away_is_asked_every_few_seconds(self, answer: Any) -> None:
        api = FakeApi()
        if answer is None:
            api.refusing = True
        else:
            api.script("WATCH", PODS.list_path, *[answer] * 99)
        times = await self._times(api)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert 0.3 <= gaps[0] <= 2.2
        assert all(gap <= 4.5 for gap in gaps)
        assert gaps[-1] >= 3.5
        assert 45 <= len(times) <= 60

    @virtual_time
    async def test_a_server_that_starts_is_not_kept_waiting_for_how_long_it_was_away(self) -> None:
        """The first refusals after an outage (roles that are not read yet) wait shortly."""
        api = FakeApi()
        api.refusing = True
        async with watched(api, PODS, wait=False):
            await asyncio.sleep(300)
            api.script("WATCH", PODS.list_path, status(403, "Forbidden"))
            api.refusing = False
            await asyncio.sleep(4.0 + 1.6)
            assert api.streams

    @pytest.mark.parametrize("header", ["nan", "inf", "-inf", "-5", "soon"])
    @virtual_time
    async def test_an_odd_retry_after_counts_as_none(self, header: str) -> None:
        """No event loop can wait for what is not a number: the process would end."""
        api = FakeApi()
        refusal = status(429, "TooManyRequests", Retry_After=header)
        api.script("WATCH", PODS.list_path, refusal)
        async with watched(api, PODS) as watching:
            assert watching.informer.synced.is_set()
            assert 0.8 <= now() <= 1.6

    async def _times(self, api: FakeApi) -> list[float]:
        """Return when something was asked for in 200 seconds."""
        times: list[float] = []
        async with watched(api, PODS, wait=False):
            for _ in range(400):
                await asyncio.sleep(0.5)
                while len(times) < len(api.requests):
                    times.append(now())
        return times
