"""Waiting for the first of several things."""

import asyncio

import pytest

from k8s_scheduler.kube.waiting import first_of


class TestFirstOf:
    """Returns with the first, gives up the rest, hides no failure."""

    async def test_gives_up_the_others(self) -> None:
        never = asyncio.ensure_future(asyncio.Event().wait())
        await first_of(asyncio.sleep(0), never)
        await asyncio.sleep(0)
        assert never.cancelled()

    async def test_tells_of_a_failure(self) -> None:
        async def fails() -> None:
            raise ValueError("no list")

        with pytest.raises(ValueError, match="no list"):
            await first_of(fails(), asyncio.Event().wait())
