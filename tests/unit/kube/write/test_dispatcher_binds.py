"""What becomes of a bind, by what the API server answers."""

import asyncio
import logging
from typing import Any

import pytest

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.kube.errors import CredentialsError, KubeError, NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome, BindRequest
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, Request, encode, status
from tests.unit.kube.write_fakes import (
    Desk,
    bind,
    binding_path,
    loop_clock,
    pod_path,
    running,
)

BOUND = BindOutcome(PodUid("uid-p"), 1, NodeName("n1"), bound=True)


def failure(outcomes: list[BindOutcome]) -> BindFailure | None:
    [outcome] = outcomes
    assert not outcome.bound
    return outcome.reason


class TestAnswered:
    """The server said what it did."""

    @virtual_time
    async def test_created_is_bound(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        assert desk.node_of() == "n1"
        assert desk.api.asked("GET") == []
        assert desk.metric("bind_attempts_total", result="success") == 1
        assert desk.metric("bind_duration_seconds_count") == 1

    @virtual_time
    async def test_body_names_uid_node_and_annotations(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_bind(
            BindRequest(PodUid("uid-p"), "a", "p", NodeName("n1"), 1, {"k8s-scheduler.io/x": "y"})
        )
        await desk.settled()
        [request] = desk.api.asked("POST", binding_path())
        assert request.json() == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "p",
                "namespace": "a",
                "uid": "uid-p",
                "annotations": {"k8s-scheduler.io/x": "y"},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
        assert request.timeout_seconds == 4.0

    @virtual_time
    async def test_a_server_that_just_started_may_refuse_everybody(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script(
            "POST",
            binding_path(),
            NotSent("refused"),
            status(403, "Forbidden", 'User "u" cannot create resource "pods/binding"'),
            status(403, "Forbidden", 'User "u" cannot create resource "pods/binding"'),
        )
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]

    @pytest.mark.parametrize(
        ("code", "requests"),
        # Whether a pod that was not found is really gone is looked at.
        [(400, 1), (401, 1), (403, 1), (404, 2), (422, 1)],
    )
    @virtual_time
    async def test_refusal_is_a_failure_with_the_servers_message(
        self, code: int, requests: int
    ) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), status(code, "Reason", "because of this"))
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.REFUSED
        assert desk.outcomes[0].message == "because of this"
        assert len(desk.api.requests) == requests
        assert desk.metric("bind_attempts_total", result="failure") == 1

    @virtual_time
    async def test_throttled_is_sent_again_after_what_the_server_asks_for(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), status(429, "TooManyRequests", Retry_After="3"))
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        assert loop_clock()() >= 3.0
        assert desk.api.asked("GET") == []

    @pytest.mark.parametrize("header", ["", "soon", "nan", "inf", "-4"])
    @virtual_time
    async def test_odd_retry_after_still_waits_and_ends(self, header: str) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), status(429, "TooManyRequests", Retry_After=header))
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        assert 0.1 <= loop_clock()() <= 30.0


class TestConflict:
    """409: nothing was executed, and the pod says why."""

    @virtual_time
    async def test_pod_on_our_node_is_bound(self) -> None:
        desk = Desk()
        desk.add_pod(nodeName="n1")
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]

    @virtual_time
    async def test_pod_on_another_node_is_a_failure_that_names_it(self) -> None:
        desk = Desk()
        desk.add_pod(nodeName="n2")
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.ASSIGNED_ELSEWHERE
        assert desk.outcomes[0].message == 'pod p is already assigned to node "n2"'

    @virtual_time
    async def test_namesake_of_another_uid_is_a_failure(self) -> None:
        desk = Desk()
        desk.api.create("/api/v1/pods", {"metadata": {"namespace": "a", "name": "p"}, "spec": {}})
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.GONE

    @virtual_time
    async def test_pod_being_deleted_is_a_failure(self) -> None:
        desk = Desk()
        deleted = {"metadata": {"uid": "uid-p", "deletionTimestamp": "x"}, "spec": {}}
        desk.api.script("POST", binding_path(), status(409, "Conflict"))
        desk.api.script("GET", pod_path(), Response(200, encode(deleted)))
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.BEING_DELETED

    @virtual_time
    async def test_gated_pod_is_a_failure(self) -> None:
        desk = Desk()
        desk.add_pod(schedulingGates=[{"name": "wait"}])
        desk.api.script("POST", binding_path(), status(409, "Conflict", "has gates"))
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.GATED
        assert desk.outcomes[0].message == "has gates"

    @virtual_time
    async def test_unbound_without_a_reason_is_a_failure_with_the_servers_message(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), status(409, "Conflict", "try again"))
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.CONFLICT
        assert desk.outcomes[0].message == "try again"

    @virtual_time
    async def test_reading_goes_on_until_it_is_answered(self) -> None:
        desk = Desk()
        desk.add_pod(nodeName="n1")
        desk.api.script(
            "GET",
            pod_path(),
            NotSent("refused"),
            OutcomeUnknown("reset"),
            status(500, "InternalError"),
            Response(200, b"not a pod"),
            # A proxy with no server behind it; a pod that was believed gone would be let go of.
            Response(404, b"default backend - 404"),
        )
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        assert len(desk.api.asked("GET")) == 6

    @virtual_time
    async def test_forbidden_reading_is_a_failure_as_nothing_was_executed(self) -> None:
        desk = Desk()
        desk.add_pod(nodeName="n2")
        desk.api.script("GET", pod_path(), status(403, "Forbidden"))
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.CONFLICT


class TestUnknown:
    """No answer: the pod is read, and never given back while a request may still be executed."""

    @pytest.mark.parametrize(
        "answer",
        [Lost(executed=True), Late(30.0)],
        ids=["reset after execution", "timeout after execution"],
    )
    @virtual_time
    async def test_executed_is_found_by_reading(self, answer: Any) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), answer)
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        assert len(desk.api.asked("POST")) == 1
        assert desk.metric("bind_attempts_total", result="unknown") == 1
        assert desk.metric("bind_attempts_total", result="success") == 1

    @pytest.mark.parametrize(
        "answer",
        [
            Lost(executed=False),
            status(500, "InternalError"),
            status(503, "ServiceUnavailable"),
            Response(408),
            Response(202),
        ],
        ids=["reset", "500", "503", "408", "202"],
    )
    @virtual_time
    async def test_unbound_is_sent_again_to_the_same_node(self, answer: Any) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), answer)
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        nodes = [request.json()["target"]["name"] for request in desk.api.asked("POST")]
        assert nodes == ["n1", "n1"]

    @virtual_time
    async def test_never_fails_while_the_server_is_away(self) -> None:
        desk = Desk()
        async with desk.left_in_doubt():
            assert await desk.dispatcher.drain(3600.0) == 1
            assert desk.outcomes == []
            # Once per ten seconds at most, after the first few tries.
            assert len(desk.api.requests) < 500
            desk.api.refusing = False
            assert await desk.dispatcher.drain(60.0) == 0
        assert desk.outcomes == [BOUND]

    @virtual_time
    async def test_late_execution_during_the_second_try_is_bound(self) -> None:
        desk = Desk()
        desk.add_pod()

        def late(request: Request) -> Response:
            desk.api.answer(request)  # the first request arrives just before the second
            return desk.api.answer(request)

        desk.api.script("POST", binding_path(), Lost(executed=False), late)
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]

    @virtual_time
    async def test_other_node_or_gone_after_an_unknown_is_a_failure(self) -> None:
        desk = Desk()
        desk.add_pod("p", nodeName="n2")
        for name in ("p", "q"):
            desk.api.script("POST", binding_path(name), Lost(executed=False))
            desk.dispatcher.submit_bind(bind(name))
        await desk.settled()
        assert {(outcome.uid, outcome.reason) for outcome in desk.outcomes} == {
            ("uid-p", BindFailure.ASSIGNED_ELSEWHERE),
            ("uid-q", BindFailure.GONE),
        }

    @virtual_time
    async def test_refused_repetition_is_a_failure_only_when_no_request_can_be_under_way(
        self,
    ) -> None:
        desk = Desk()
        desk.add_pod()
        denied = [status(403, "Forbidden", "admission says no") for _ in range(100)]
        desk.api.script("POST", binding_path(), Lost(executed=False), *denied)
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.REFUSED
        assert desk.outcomes[0].message == "admission says no"
        assert loop_clock()() >= 120.0

    @virtual_time
    async def test_gated_pod_in_doubt_is_bound_once_its_gates_are_gone(self) -> None:
        desk = Desk()
        desk.add_pod(schedulingGates=[{"name": "wait"}])
        answers = [status(409, "Conflict", "has gates") for _ in range(3)]
        desk.api.script("POST", binding_path(), Lost(executed=False), *answers)
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]


class TestNotSent:
    """Nothing left our machine, so nothing was executed."""

    @pytest.mark.parametrize("error", [NotSent("refused"), CredentialsError("no token")])
    @virtual_time
    async def test_is_sent_again(self, error: KubeError) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), error)
        desk.dispatcher.submit_bind(bind())
        assert await desk.settled() == [BOUND]
        assert desk.api.asked("GET") == []
        assert desk.metric("bind_attempts_total", result="unknown") == 0

    @virtual_time
    async def test_is_a_failure_after_half_a_minute(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.refusing = True
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.NOT_SENT
        assert desk.outcomes[0].message == "not sent: connection refused"
        assert 30.0 <= loop_clock()() <= 45.0


class TestLeading:
    """No write starts once we may not write."""

    @virtual_time
    async def test_bind_that_was_not_sent_ends_as_not_leading(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.leading = False
        desk.dispatcher.submit_bind(bind())
        assert failure(await desk.settled()) is BindFailure.NOT_LEADING
        assert desk.api.requests == []

    @virtual_time
    async def test_throttled_bind_is_not_sent_again(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), status(429, "TooManyRequests", Retry_After="5"))
        desk.dispatcher.submit_bind(bind())
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(1.0)
            desk.leading = False
            await desk.dispatcher.drain(60.0)
        assert failure(desk.outcomes) is BindFailure.NOT_LEADING
        assert len(desk.api.asked("POST")) == 1

    @virtual_time
    async def test_bind_in_doubt_is_only_read(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), Late(60.0), Lost(executed=False))
        desk.add_pod("q")
        desk.api.script("POST", binding_path("q"), Lost(executed=False, after_seconds=1.0))
        desk.dispatcher.submit_bind(bind("p"))
        desk.dispatcher.submit_bind(bind("q"))
        async with running(desk.dispatcher.run()):
            await settle()
            desk.leading = False
            assert await desk.dispatcher.drain(60.0) == 1
            assert desk.outcomes == [BOUND]
            assert len(desk.api.asked("POST")) == 2
            assert await desk.dispatcher.drain(200.0) == 0
        assert failure(desk.outcomes[1:]) is BindFailure.NOT_LEADING
        assert len(desk.api.asked("POST")) == 2


class TestBounds:
    """Room, order, shutdown."""

    @virtual_time
    async def test_room_counts_what_waits_and_what_is_under_way(self) -> None:
        desk = Desk(bind_limit=3, bind_workers=1)
        assert desk.dispatcher.bind_room() == 3
        for name in "pqrs":
            desk.add_pod(name)
            desk.dispatcher.submit_bind(bind(name))
        assert desk.dispatcher.bind_room() == 0
        assert desk.metric("pending_writes", kind="bind") == 4
        await desk.settled()
        assert [outcome.bound for outcome in desk.outcomes] == [True] * 4
        assert desk.dispatcher.bind_room() == 3
        assert desk.metric("pending_writes", kind="bind") == 0

    @virtual_time
    async def test_waiting_bind_does_not_keep_a_worker_from_others(self) -> None:
        desk = Desk(bind_workers=1)
        for name in "pq":
            desk.add_pod(name)
        desk.api.script("POST", binding_path("p"), status(429, "x", Retry_After="20"))
        desk.dispatcher.submit_bind(bind("p"))
        desk.dispatcher.submit_bind(bind("q"))
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(1.0)
            assert [outcome.uid for outcome in desk.outcomes] == ["uid-q"]

    @virtual_time
    async def test_stopping_ends_what_was_accepted_and_fails_what_comes_later(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_bind(bind())
        desk.dispatcher.stop_accepting()
        assert desk.dispatcher.bind_room() == 0
        desk.dispatcher.submit_bind(bind("q"))
        await desk.settled()
        reasons = {outcome.uid: outcome.reason for outcome in desk.outcomes}
        assert reasons == {"uid-p": None, "uid-q": BindFailure.NOT_ACCEPTED}

    @virtual_time
    async def test_second_bind_of_a_pod_under_way_is_a_bug(self) -> None:
        desk = Desk()
        desk.dispatcher.submit_bind(bind())
        with pytest.raises(ValueError, match="under way"):
            desk.dispatcher.submit_bind(bind(attempt=2))

    @virtual_time
    async def test_bug_in_the_transport_ends_run_instead_of_losing_a_bind(self) -> None:
        desk = Desk()
        desk.api.script("POST", binding_path(), ZeroDivisionError("bug"))
        desk.dispatcher.submit_bind(bind())
        with pytest.raises(ExceptionGroup, match="unhandled errors"):
            await desk.dispatcher.run()
        assert desk.outcomes == []

    @virtual_time
    async def test_missing_permission_is_logged_by_verb_and_resource_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk = Desk()
        message = (
            'pods "p" is forbidden: User "u" cannot create resource "pods/binding" '
            'in API group "" in the namespace "a"'
        )
        for name in "pqr":
            desk.api.script("POST", binding_path(name), status(403, "Forbidden", message))
            desk.dispatcher.submit_bind(bind(name))
        with caplog.at_level(logging.WARNING):
            await desk.settled()
        assert [record.getMessage() for record in caplog.records] == [
            f"missing permission: create pods/binding in namespace a: {message}"
        ]


class TestTold:
    """What an operator reads about binds that did not go through at once."""

    @pytest.mark.parametrize(
        ("answers", "line"),
        [
            (
                [status(429, "TooManyRequests", "later", Retry_After="1")],
                "API server asks to slow down, bind of pod a/p waits: later",
            ),
            ([status(401, "Unauthorized", "who?")], "bind of pod a/p to node n1 was refused: who?"),
            (
                [status(409, "Conflict", "modified")],
                "bind of pod a/p to node n1 failed (conflict): modified",
            ),
        ],
        ids=["throttled", "refused", "conflict"],
    )
    @virtual_time
    async def test_trouble_with_a_bind_is_logged(
        self, caplog: pytest.LogCaptureFixture, answers: list[Response], line: str
    ) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), *answers)
        with caplog.at_level(logging.WARNING):
            desk.dispatcher.submit_bind(bind())
            await desk.settled()
        assert [record.getMessage() for record in caplog.records] == [line]

    @virtual_time
    async def test_a_pod_that_is_gone_is_no_trouble(self, caplog: pytest.LogCaptureFixture) -> None:
        desk = Desk()
        with caplog.at_level(logging.WARNING):
            desk.dispatcher.submit_bind(bind())
            assert failure(await desk.settled()) is BindFailure.GONE
        assert caplog.records == []
