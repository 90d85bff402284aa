"""A victim's DELETE without an answer: its fate is read before anybody is told."""

import asyncio

import pytest

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.write.write_machine import SETTLE_SECONDS, TRIES
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import encode, status
from tests.unit.kube.write.test_write_lane import DONE, GONE, OK, POD, STATUS, Desk, outcome
from tests.unit.kube.write_fakes import loop_clock, running

LOST = OutcomeUnknown("reset")


def victim(uid="u", **metadata):
    return Response(200, encode({"metadata": {"name": "v", "uid": uid, **metadata}}))


LEAVING = victim(deletionTimestamp="2026-01-01T00:00:00Z")
STAYING = victim()


class Scene(Desk):
    """A lane on virtual time."""

    def __init__(self, *, workers=2):
        timing = Timing(clock=loop_clock(), uniform=lambda: 0.0)
        super().__init__(workers=workers, timing=timing)
        self.api.script("PATCH", "*", *[OK] * 50)

    async def ended(self, seconds=600.0):
        async with running(self.lane.run()):
            await self.lane.drain(seconds)
        return self.outcomes


@pytest.mark.parametrize(
    "seen",
    [LEAVING, status(404, "NotFound"), victim(uid="w")],
    ids=["on its way out", "gone", "another pod"],
)
@virtual_time
async def test_a_victim_that_leaves_was_evicted(seen):
    scene = Scene()
    scene.api.script("DELETE", POD, *[LOST] * TRIES)
    scene.api.script("GET", POD, seen)
    scene.evict()
    assert await scene.ended() == [DONE]
    assert len(scene.api.asked("DELETE")) == TRIES
    assert loop_clock()() < 10.0


@pytest.mark.parametrize(
    "lost", [LOST, status(500, "InternalError", "reset")], ids=["no answer", "500"]
)
@virtual_time
async def test_a_victim_that_stays_is_a_failure_only_when_no_request_can_be_under_way(lost):
    scene = Scene()
    scene.api.script("DELETE", POD, *[lost] * TRIES)
    scene.api.script("GET", POD, *[STAYING] * 100)
    scene.evict()
    async with running(scene.lane.run()):
        await asyncio.sleep(SETTLE_SECONDS)
        assert scene.outcomes == []
        assert await scene.lane.drain(20.0) == 0
    assert scene.outcomes == [outcome(done=False, message="reset")]
    assert len(scene.api.asked("DELETE")) == TRIES
    assert len(scene.api.asked("GET")) < 15


@virtual_time
async def test_a_delete_that_lands_late_is_found():
    scene = Scene()
    scene.api.script("DELETE", POD, *[LOST] * TRIES)
    scene.api.script("GET", POD, *[STAYING] * 4, LEAVING)
    scene.evict()
    assert await scene.ended() == [DONE]


@virtual_time
async def test_nobody_is_told_while_nothing_is_known():
    scene = Scene()
    scene.api.script("DELETE", POD, *[LOST] * TRIES)
    unknown = (NotSent("refused"), LOST, status(503, "Unavailable"), Response(200, b"{"))
    scene.api.script("GET", POD, *unknown * 100)
    scene.evict()
    async with running(scene.lane.run()):
        assert await scene.lane.drain(3600.0) == 1
        assert scene.outcomes == []
        # Ever less often.
        assert len(scene.api.asked("GET")) < 200


@pytest.mark.parametrize(
    "then",
    [[status(403, "Forbidden", "no")], [NotSent("no")] * TRIES],
    ids=["refused", "not sent"],
)
@virtual_time
async def test_a_refusal_after_a_lost_one_settles_nothing(then):
    scene = Scene()
    scene.api.script("DELETE", POD, LOST, *then)
    scene.api.script("GET", POD, *[STAYING] * 100)
    scene.evict()
    assert await scene.ended() == [outcome(done=False, message="no")]
    assert loop_clock()() >= SETTLE_SECONDS


@virtual_time
async def test_what_was_never_sent_needs_no_settling():
    scene = Scene()
    scene.api.script("DELETE", POD, *[NotSent("refused")] * TRIES)
    scene.evict()
    assert await scene.ended() == [outcome(done=False, message="refused")]
    assert scene.api.asked("GET") == []


@virtual_time
async def test_a_condition_without_an_answer_evicts_nobody():
    scene = Scene()
    scene.api._scripts.clear()
    scene.api.script("PATCH", STATUS, *[LOST] * TRIES)
    scene.evict()
    assert await scene.ended() == [outcome(done=False, message="reset")]
    assert scene.api.asked("DELETE") == []


@virtual_time
async def test_those_that_wait_hold_no_worker():
    scene = Scene(workers=1)
    scene.api.script("DELETE", POD, *[LOST] * TRIES * 10)
    scene.api.script("GET", POD, *[STAYING] * 500)
    for number in range(10):
        scene.evict(number)
    async with running(scene.lane.run()):
        await asyncio.sleep(30.0)
        assert scene.outcomes == []
        scene.patch(99)
        await settle()
        assert [o.request for o in scene.outcomes] == [99]


@virtual_time
async def test_who_may_not_write_any_more_looks_no_longer():
    scene = Scene()
    scene.api.script("DELETE", POD, *[LOST] * TRIES)
    scene.api.script("GET", POD, *[STAYING] * 100)
    scene.evict()
    async with running(scene.lane.run()):
        await asyncio.sleep(20.0)
        scene.leading = False
        assert await scene.lane.drain(60.0) == 0
    assert scene.outcomes == []


@virtual_time
async def test_a_victim_that_was_gone_before_the_first_delete_was_not_ours():
    scene = Scene()
    scene.api.script("DELETE", POD, status(404, "NotFound"))
    scene.evict()
    assert await scene.ended() == [GONE]
