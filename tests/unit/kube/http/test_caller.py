"""The one loop of requests that are repeated: who is asked when, and how it ends."""

from collections.abc import Callable
from typing import Any

import pytest

from k8s_scheduler.kube.errors import CredentialsError, NotSent, OutcomeUnknown, TransportError
from k8s_scheduler.kube.http.caller import Caller, RetryPolicy, Tries
from k8s_scheduler.kube.http.protocol import JSON, MERGE_PATCH, Response
from tests.fakes.clock import FakeClock
from tests.fakes.transport import FakeTransport, status

PATH = "/api/v1/namespaces/a/pods/p/status"
OK = Response(200)
BUSY = status(503, "ServiceUnavailable")
POLICY = RetryPolicy(tries=3)


class Scene:
    """A caller on a scripted server; `steps` is everything that happens, in order."""

    def __init__(self, *answers: Any) -> None:
        self.api = FakeTransport()
        self.clock = FakeClock()
        self.steps: list[str] = []
        self.leading = True
        self.api.script("PATCH", PATH, *(self.noted(answer) for answer in answers))
        self.caller = Caller(
            transport=self.api,
            may_write=self.may_write,
            admit=self.admit,
            timeout_seconds=4.0,
            timing=self.clock.timing(uniform=lambda: 0.0),
        )

    def noted(self, answer: Any) -> Callable[[object], Response]:
        def act(_request: object) -> Response:
            self.steps.append("sent")
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, Response)
            return answer

        return act

    def may_write(self) -> bool:
        self.steps.append("may write?")
        return self.leading

    async def admit(self) -> None:
        self.steps.append("admitted")

    async def settle(self, tries: Tries) -> Response | None:
        async for _ in tries:
            answer = await tries.send("PATCH", PATH, body=b"{}", content_type=MERGE_PATCH)
            if answer is not None:
                return answer
        return None


async def test_admission_comes_first_and_leadership_is_asked_once_more_when_bytes_leave():
    scene = Scene(OK)
    tries = scene.caller.tries(POLICY)
    assert await scene.settle(tries) is OK
    assert scene.steps == ["admitted", "may write?", "may write?", "sent"]
    assert scene.clock.slept == []


async def test_every_try_is_admitted():
    scene = Scene(BUSY, OutcomeUnknown("reset"), OK)
    assert await scene.settle(scene.caller.tries(POLICY)) is OK
    assert scene.steps.count("admitted") == scene.steps.count("sent") == 3
    assert scene.clock.slept == [0.2, 0.4]


@pytest.mark.parametrize("last", [BUSY, NotSent("refused")], ids=["busy", "away"])
async def test_tries_that_are_used_up_leave_their_problem(last):
    scene = Scene(BUSY, BUSY, last)
    tries = scene.caller.tries(POLICY)
    assert await scene.settle(tries) is None
    assert not tries.was_stopped
    assert str(tries.problem) == str(last.error() if isinstance(last, Response) else last)


async def test_a_definite_answer_is_returned_whatever_it_says():
    refused = status(403, "Forbidden")
    scene = Scene(refused)
    assert await scene.settle(scene.caller.tries(POLICY)) is refused


async def test_the_policy_says_which_answers_are_retried():
    conflict = status(409, "Conflict")
    scene = Scene(conflict, BUSY)
    policy = RetryPolicy(tries=3, is_retried=lambda answer: answer.status == 409)
    assert await scene.settle(scene.caller.tries(policy)) is BUSY


async def test_an_error_that_is_not_retried_is_raised():
    scene = Scene(CredentialsError("no token"))
    policy = RetryPolicy(tries=3, retried_errors=TransportError)
    with pytest.raises(CredentialsError):
        await scene.settle(scene.caller.tries(policy))


async def test_nothing_begins_without_leadership():
    scene = Scene(OK)
    scene.leading = False
    tries = scene.caller.tries(POLICY)
    assert await scene.settle(tries) is None
    assert tries.was_stopped
    assert scene.api.requests == []


async def test_leadership_that_ends_during_the_wait_ends_the_tries():
    scene = Scene(BUSY, OK)
    tries = scene.caller.tries(POLICY)
    async for _ in tries:
        assert await tries.send("PATCH", PATH) is None
        scene.leading = False
    assert tries.was_stopped
    assert len(scene.api.requests) == 1
    assert scene.clock.slept == [0.2]


async def test_what_may_not_be_repeated_is_stopped_before_the_wait():
    scene = Scene(BUSY, OK)
    tries = scene.caller.tries(POLICY, may_repeat=lambda: False)
    assert await scene.settle(tries) is None
    assert tries.was_stopped
    assert scene.clock.slept == []


async def test_that_holds_for_the_last_try_too():
    scene = Scene(BUSY)
    tries = scene.caller.tries(RetryPolicy(tries=1), may_repeat=lambda: False)
    assert await scene.settle(tries) is None
    assert tries.was_stopped


async def test_a_retry_after_holds_for_the_next_wait_alone():
    scene = Scene(status(429, "TooManyRequests", Retry_After="7"), BUSY, OK)
    assert await scene.settle(scene.caller.tries(POLICY)) is OK
    assert scene.clock.slept == [7.0, 0.4]


async def test_one_request_carries_the_time_limit():
    scene = Scene(OK)
    await scene.caller.send("PATCH", PATH, body=b"{}", content_type=MERGE_PATCH)
    (request,) = scene.api.requests
    assert (request.timeout_seconds, request.content_type) == (4.0, MERGE_PATCH)


async def test_reads_need_no_leadership():
    scene = Scene()
    scene.leading = False
    scene.api.script("GET", PATH, OK)
    assert await scene.caller.send("GET", PATH) is OK
    (request,) = scene.api.requests
    assert request.content_type == JSON
    assert scene.steps == []
