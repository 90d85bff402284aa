"""Everybody who may send at the same time has a connection."""

import asyncio

from k8s_scheduler.api.config.types import MOST_PARALLELISM
from k8s_scheduler.kube import workers
from k8s_scheduler.kube.http import sessions
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.write.write_lane import WriteLane
from tests.fakes.api import FakeApi
from tests.unit.kube.write_fakes import running


def test_a_bind_never_waits_for_an_events_connection():
    busy = (
        workers.BINDING_WORKERS
        + workers.CONDITION_WORKERS
        + workers.EVENT_WORKERS
        + MOST_PARALLELISM
        + workers.POD_READING_WORKERS
    )
    # The lease has to be renewed as well.
    assert busy < sessions.REQUEST_CONNECTIONS


async def test_no_lane_has_more_workers_than_it_has_connections():
    lane = WriteLane(
        Caller(transport=FakeApi(), timeout_seconds=1.0),
        on_outcome=lambda _: None,
        workers=MOST_PARALLELISM + 1,
    )
    assert lane._pool.limit == MOST_PARALLELISM
    async with running(lane.run()):
        await asyncio.sleep(0)
        lane.resize(10_000)
        assert lane._pool.limit == MOST_PARALLELISM
        lane.resize(3)
        assert lane._pool.limit == 3
