"""PodScheduled=False on its way to the API server."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.conditions import ConditionPatch
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, status
from tests.unit.kube.write_fakes import (
    Desk,
    bind,
    binding_path,
    condition,
    loop_clock,
    pod_path,
    running,
)

STATUS = pod_path() + "/status"
MODIFIED = (
    'Operation cannot be fulfilled on pods "p": the object has been modified; please apply '
    "your changes to the latest version and try again"
)
ANOTHER_UID = (
    status(
        422,
        "Invalid",
        'Pod "p" is invalid: metadata.uid: Invalid value: "uid-p": field is immutable',
    ),
    status(
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods "p": Precondition failed: UID in precondition: '
        "uid-p, UID in object meta: uid-q",
    ),
)


def messages(desk: Desk) -> list[str]:
    return [
        request.json()["status"]["conditions"][0]["message"] for request in desk.api.asked("PATCH")
    ]


def nomination(node: str) -> ConditionPatch:
    return ConditionPatch(uid=condition().uid, namespace="a", name="p", nominated_node_name=node)


def failure(message: str, node: str) -> ConditionPatch:
    return replace(condition(message=message), nominated_node_name=node)


def slow_desk(*, pods: int, answered_after_seconds: float) -> Desk:
    """Return a desk with as many conditions to be written, one after the other."""
    desk = Desk(condition_workers=1)
    desk.api.script("PATCH", "*", *[Late(answered_after_seconds)] * pods)
    for number in range(pods):
        desk.add_pod(f"p{number}")
        desk.dispatcher.submit_condition(condition(f"p{number}"))
    return desk


class TestPatch:
    """What is written."""

    @virtual_time
    async def test_is_a_strategic_merge_patch_of_the_status_with_the_uid(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        [request] = desk.api.asked("PATCH", STATUS)
        assert request.content_type == "application/strategic-merge-patch+json"
        assert request.json() == {
            "metadata": {"uid": "uid-p"},
            "status": {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "no node",
                        "lastProbeTime": None,
                        "lastTransitionTime": "2026-01-02T03:04:05Z",
                        "observedGeneration": 3,
                    }
                ]
            },
        }

    @virtual_time
    async def test_keeps_the_transition_time_it_is_given(self) -> None:
        desk = Desk()
        desk.add_pod()
        kept = "2025-12-31T00:00:00Z"
        desk.dispatcher.submit_condition(replace(condition(), last_transition_time=kept))
        await desk.settled()
        [request] = desk.api.asked("PATCH", STATUS)
        assert request.json()["status"]["conditions"][0]["lastTransitionTime"] == kept

    @pytest.mark.parametrize(("nominated", "written"), [("n1", "n1"), ("", None)])
    @virtual_time
    async def test_sets_or_clears_the_nomination(self, nominated: str, written: str | None) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_condition(replace(condition(), nominated_node_name=nominated))
        await desk.settled()
        [request] = desk.api.asked("PATCH", STATUS)
        assert request.json()["status"]["nominatedNodeName"] == written

    @virtual_time
    async def test_leaves_the_condition_alone_if_there_is_nothing_to_say(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_condition(nomination("n1"))
        await desk.settled()
        [request] = desk.api.asked("PATCH", STATUS)
        assert request.json() == {
            "metadata": {"uid": "uid-p"},
            "status": {"nominatedNodeName": "n1"},
        }


class TestBoth:
    """A condition and a nomination of one pod: neither is lost to the other."""

    @pytest.mark.parametrize(
        ("patches", "says", "node"),
        [
            ((condition(message="no"), nomination("n1")), "no", "n1"),
            ((nomination("n1"), condition(message="no")), "no", "n1"),
            ((nomination("n1"), failure("no", "")), "no", None),
            ((failure("first", ""), condition(message="no")), "no", None),
            ((failure("no", ""), nomination("n1")), "no", "n1"),
        ],
    )
    @virtual_time
    async def test_while_they_wait(self, patches: Any, says: str, node: str | None) -> None:
        desk = Desk()
        desk.add_pod()
        for patch in patches:
            desk.dispatcher.submit_condition(patch)
        await desk.settled()
        [request] = desk.api.asked("PATCH", STATUS)
        assert messages(desk) == [says]
        assert request.json()["status"]["nominatedNodeName"] == node

    @virtual_time
    async def test_while_one_of_them_does_not_get_through(self) -> None:
        """It is given up for the newer one, which says what it would have said."""
        desk = Desk()
        desk.add_pod()
        desk.api.script("PATCH", STATUS, NotSent("refused"))
        desk.dispatcher.submit_condition(condition(message="no"))
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.submit_condition(nomination("n1"))
            assert await desk.dispatcher.drain(10.0) == 0
        assert messages(desk) == ["no", "no"]
        last = desk.api.asked("PATCH", STATUS)[-1].json()
        assert last["status"]["nominatedNodeName"] == "n1"

    @virtual_time
    async def test_a_bind_goes_before_a_nomination_that_waits(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_condition(nomination("n1"))
        desk.dispatcher.submit_bind(bind())
        await desk.settled()
        assert desk.api.asked("PATCH") == []
        assert len(desk.api.asked("POST", binding_path())) == 1

    @virtual_time
    async def test_a_bind_follows_a_nomination_that_is_being_written(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("PATCH", STATUS, Late(2.0))
        desk.dispatcher.submit_condition(nomination("n1"))
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.submit_bind(bind())
            await asyncio.sleep(1.0)
            assert desk.api.asked("POST") == []
            assert await desk.dispatcher.drain(10.0) == 0
        assert [r.method for r in desk.api.requests] == ["PATCH", "POST"]


class TestQueue:
    """Who waits, who goes."""

    @virtual_time
    async def test_latest_per_pod_wins_while_waiting(self) -> None:
        desk = Desk()
        desk.add_pod()
        for message in ("first", "second", "third"):
            desk.dispatcher.submit_condition(condition(message=message))
        assert desk.metric("pending_writes", kind="condition") == 1
        await desk.settled()
        assert messages(desk) == ["third"]

    @virtual_time
    async def test_newer_one_follows_the_one_being_written(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("PATCH", STATUS, Late(2.0))
        desk.dispatcher.submit_condition(condition(message="first"))
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.submit_condition(condition(message="second"))
            await asyncio.sleep(1.0)
            assert messages(desk) == ["first"]
            assert await desk.dispatcher.drain(10.0) == 0
        assert messages(desk) == ["first", "second"]

    @virtual_time
    async def test_overflow_drops_the_oldest_and_counts(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk = Desk(condition_limit=2)
        for name in "pqr":
            desk.add_pod(name)
            desk.dispatcher.submit_condition(condition(name, message=name))
        await desk.settled()
        assert messages(desk) == ["q", "r"]
        assert desk.metric("conditions_dropped_total") == 1
        assert "the oldest is dropped: a/p" in caplog.text

    @virtual_time
    async def test_slow_conditions_do_not_keep_binds_waiting(self) -> None:
        desk = Desk(condition_workers=1)
        for name in "pqr":
            desk.add_pod(name)
        desk.api.script("PATCH", "*", Late(3.0), Late(3.0))
        desk.dispatcher.submit_condition(condition("q"))
        desk.dispatcher.submit_condition(condition("r"))
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.submit_bind(bind("p"))
            await settle()
            assert [outcome.bound for outcome in desk.outcomes] == [True]
            assert loop_clock()() == 0.0


class TestBindFirst:
    """PodScheduled=False never lands on a pod after its binding."""

    @virtual_time
    async def test_bind_takes_the_place_of_a_waiting_condition(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_condition(condition())
        desk.dispatcher.submit_bind(bind())
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        assert desk.api.asked("PATCH") == []
        assert desk.node_of() == "n1"

    @virtual_time
    async def test_bind_waits_for_a_condition_being_written_but_not_for_its_retries(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("PATCH", STATUS, Lost(executed=False, after_seconds=2.0))
        desk.dispatcher.submit_condition(condition())
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.submit_bind(bind())
            await asyncio.sleep(1.0)
            assert desk.api.asked("POST", binding_path()) == []
            assert await desk.dispatcher.drain(10.0) == 0
        assert loop_clock()() == 2.0
        assert [request.method for request in desk.api.requests] == ["PATCH", "POST"]
        assert desk.outcomes[0].bound

    @virtual_time
    async def test_condition_after_a_failed_bind_is_written(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), status(403, "Forbidden"))
        desk.dispatcher.submit_bind(bind())
        async with running(desk.dispatcher.run()):
            await desk.dispatcher.drain(1.0)
            desk.dispatcher.submit_condition(condition())
            await desk.dispatcher.drain(1.0)
        assert messages(desk) == ["no node"]


class TestTheEnd:
    """What is under way is seen to its end; what waits is not worth the lease."""

    @virtual_time
    async def test_those_that_wait_are_dropped_in_time_for_the_last_call_to_end(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk = slow_desk(pods=100, answered_after_seconds=3.0)
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.stop_accepting()
            assert await desk.dispatcher.drain(30.0) == 0
            # The last one begins at 24: from 26 on, what takes four seconds could be too late.
            assert loop_clock()() == 27.0
        assert len(desk.api.asked("PATCH")) == 9
        assert desk.metric("conditions_dropped_total") == 91
        assert "91 conditions were not written" in caplog.text

    @virtual_time
    async def test_those_that_are_never_answered_are_given_up_in_time(self) -> None:
        desk = slow_desk(pods=100, answered_after_seconds=3600.0)
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(1.3)
            desk.dispatcher.stop_accepting()
            assert await desk.dispatcher.drain(30.0) == 0

    @virtual_time
    async def test_one_that_is_under_way_at_the_end_counts(self) -> None:
        desk = slow_desk(pods=1, answered_after_seconds=3.0)
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.stop_accepting()
            assert await desk.dispatcher.drain(2.0) == 1

    @virtual_time
    async def test_one_that_waits_for_another_try_is_not_under_way_and_has_none(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.refusing = True
        desk.dispatcher.submit_condition(condition())
        async with running(desk.dispatcher.run()):
            await settle()
            desk.dispatcher.stop_accepting()
            # The second try would come at 0.3.
            assert await desk.dispatcher.drain(0.2) == 0
            await asyncio.sleep(60.0)
        assert len(desk.api.asked("PATCH")) == 1
        assert desk.metric("conditions_dropped_total") == 1

    @virtual_time
    async def test_who_takes_more_waits_for_all_of_them(self) -> None:
        desk = slow_desk(pods=3, answered_after_seconds=3.0)
        async with running(desk.dispatcher.run()):
            await settle()
            assert await desk.dispatcher.drain(5.0) == 1
            assert await desk.dispatcher.drain(60.0) == 0
        assert len(desk.api.asked("PATCH")) == 3


class TestTrouble:
    """A condition is worth a few tries."""

    @virtual_time
    async def test_is_tried_a_few_times_then_dropped(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.refusing = True
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        assert len(desk.api.asked("PATCH")) == 4
        assert desk.metric("conditions_dropped_total") == 1

    @pytest.mark.parametrize(
        "answer",
        [NotSent("x"), status(429, "x"), status(500, "x"), status(409, "Conflict", MODIFIED)],
        ids=["not sent", "429", "500", "written by somebody else too"],
    )
    @virtual_time
    async def test_passing_trouble_is_overcome(self, answer: Any) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("PATCH", STATUS, answer)
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        assert len(desk.api.asked("PATCH")) == 2
        assert desk.metric("conditions_dropped_total") == 0

    @virtual_time
    async def test_conflicts_without_an_end_are_counted(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("PATCH", STATUS, *[status(409, "Conflict", MODIFIED)] * 9)
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        assert len(desk.api.asked("PATCH")) == 4
        assert desk.metric("conditions_dropped_total") == 1

    @pytest.mark.parametrize(("code", "dropped"), [(404, 0), (403, 1), (422, 1)])
    @virtual_time
    async def test_refusal_is_not_tried_again(self, code: int, dropped: int) -> None:
        desk = Desk()
        desk.api.script("PATCH", STATUS, status(code, "x"))
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        assert len(desk.api.asked("PATCH")) == 1
        assert desk.metric("conditions_dropped_total") == dropped

    @pytest.mark.parametrize("answer", ANOTHER_UID, ids=["422", "409"])
    @virtual_time
    async def test_pod_of_another_uid_is_no_trouble(
        self, answer: Response, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk = Desk()
        desk.api.script("PATCH", STATUS, answer)
        desk.dispatcher.submit_condition(condition())
        await desk.settled()
        assert len(desk.api.asked("PATCH")) == 1
        assert desk.metric("conditions_dropped_total") == 0
        assert caplog.text == ""

    @virtual_time
    async def test_missing_permission_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        desk = Desk()
        refusal = status(403, "Forbidden", 'User "u" cannot patch resource "pods/status"')
        desk.api.script("PATCH", STATUS, refusal)
        desk.dispatcher.submit_condition(condition())
        with caplog.at_level(logging.WARNING):
            await desk.settled()
        assert "missing permission: patch pods/status in namespace a" in caplog.text

    @virtual_time
    async def test_nothing_is_written_when_not_leading_or_stopped(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.leading = False
        desk.dispatcher.submit_condition(condition())
        desk.dispatcher.stop_accepting()
        desk.dispatcher.submit_condition(condition("q"))
        await desk.settled()
        assert desk.api.requests == []
