"""The write lane: tries, refusals, and exactly one outcome for every request."""

import asyncio
import logging

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.resources import resource_of
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.write.write_lane import WriteLane
from k8s_scheduler.kube.write.write_machine import TRIES
from k8s_scheduler.kube.write.write_requests import (
    WriteOutcome,
    WriteRequest,
    eviction_calls,
    nomination_calls,
    object_calls,
)
from tests.fakes.clock import FakeClock, settle, virtual_time
from tests.fakes.transport import FakeTransport, Late, status
from tests.unit.kube.write_fakes import running

POD = "/api/v1/namespaces/a/pods/v"
STATUS = f"{POD}/status"
VOLUME = "/api/v1/persistentvolumes/x"
OK = Response(200)
ANOTHER_UID = (
    'Operation cannot be fulfilled on pods "v": Precondition failed: UID in precondition: u, '
    "UID in object meta: w"
)
MODIFIED = (
    'Operation cannot be fulfilled on pods "v": the object has been modified; please apply '
    "your changes to the latest version and try again"
)


class Desk:
    """A lane on a scripted server, with everything it reports kept."""

    def __init__(self, *, workers=2, api=None, timing=None):
        self.api = api or FakeTransport()
        self.leading = True
        self.outcomes = []
        self.clock = FakeClock()
        self.admitted = 0
        self.lane = WriteLane(
            Caller(
                transport=self.api,
                may_write=lambda: self.leading,
                admit=self.admit,
                timeout_seconds=4.0,
                timing=timing or self.clock.timing(uniform=lambda: 0.0),
            ),
            on_outcome=self.outcomes.append,
            workers=workers,
        )

    async def admit(self):
        self.admitted += 1

    async def settled(self):
        async with running(self.lane.run()):
            await settle(200)
        return self.outcomes

    def evict(self, number=1):
        calls = eviction_calls(
            namespace="a",
            name="v",
            uid=PodUid("u"),
            scheduler_name="s",
            observed_generation=1,
            wall_ns=0,
        )
        self.submit(calls, number)

    def clear(self, number=1):
        self.submit(nomination_calls(namespace="a", name="v", uid=PodUid("u")), number)

    def patch(self, number=1, name="x"):
        volumes = resource_of(Kind.PERSISTENT_VOLUME)
        self.submit(object_calls(volumes, namespace="", name=name, patch={"a": 1}), number, "")

    def submit(self, calls, number, namespace="a"):
        self.lane.submit(WriteRequest(PodUid("p"), 3, number, namespace, calls))


def outcome(number=1, **parts):
    return WriteOutcome(PodUid("p"), 3, number, **parts)


DONE = outcome(done=True)
GONE = outcome(done=True, gone=True)


@pytest.fixture
def desk():
    return Desk()


class TestDone:
    async def test_one_call_after_the_other(self, desk):
        desk.api.script("PATCH", STATUS, OK)
        desk.api.script("DELETE", POD, OK)
        desk.evict()
        assert await desk.settled() == [DONE]
        assert [r.method for r in desk.api.requests] == ["PATCH", "DELETE"]
        assert {r.timeout_seconds for r in desk.api.requests} == {4.0}
        assert desk.admitted == 2

    async def test_bodies_go_out_as_they_are(self, desk):
        desk.api.script("PATCH", VOLUME, OK)
        desk.patch()
        assert await desk.settled() == [DONE]
        [request] = desk.api.requests
        assert (request.json(), request.content_type) == ({"a": 1}, "application/merge-patch+json")

    async def test_each_request_has_one_outcome(self, desk):
        desk.api.script("PATCH", VOLUME, *[OK] * 5)
        for number in range(5):
            desk.patch(number)
        found = await desk.settled()
        assert sorted(o.request for o in found) == [0, 1, 2, 3, 4]
        assert all(o.done for o in found)


class TestGone:
    @pytest.mark.parametrize(
        "answer",
        [
            status(404, "NotFound", 'pods "v" not found'),
            status(409, "Conflict", ANOTHER_UID),
            status(422, "Invalid", 'Pod "v" is invalid: metadata.uid: field is immutable'),
        ],
        ids=["404", "409", "422"],
    )
    @pytest.mark.parametrize("call", ["PATCH", "DELETE"])
    async def test_a_victim_that_is_gone_or_another_pod_now(self, desk, call, answer):
        desk.api.script("PATCH", STATUS, answer if call == "PATCH" else OK)
        desk.api.script("DELETE", POD, answer)
        desk.evict()
        assert await desk.settled() == [GONE]
        assert len(desk.api.requests) == (1 if call == "PATCH" else 2)

    async def test_a_404_of_a_proxy_is_not_the_servers(self, desk):
        desk.api.script("PATCH", STATUS, Response(404, b"default backend - 404"), OK)
        desk.api.script("DELETE", POD, Response(404, b"default backend - 404"), OK)
        desk.evict()
        assert await desk.settled() == [DONE]

    async def test_a_pod_without_a_promise_any_more(self, desk):
        desk.api.script("PATCH", STATUS, status(404, "NotFound"))
        desk.clear()
        assert await desk.settled() == [GONE]

    @pytest.mark.parametrize("code", [404, 409, 422])
    async def test_an_object_that_is_gone_is_a_failure(self, desk, code):
        desk.api.script("PATCH", VOLUME, status(code, "Reason", "metadata.uid is another"))
        desk.patch()
        [found] = await desk.settled()
        assert (found.done, found.gone) == (False, False)

    async def test_another_complaint_about_the_content_is_no_excuse(self, desk):
        desk.api.script("PATCH", STATUS, status(422, "Invalid", "status.conditions: too many"))
        desk.evict()
        [found] = await desk.settled()
        assert not found.done

    async def test_a_pod_that_others_write_to_is_not_gone(self, desk):
        """Nothing was done: the call is repeated, and the victim is evicted after all."""
        desk.api.script("PATCH", STATUS, status(409, "Conflict", MODIFIED), OK)
        desk.api.script("DELETE", POD, OK)
        desk.evict()
        assert await desk.settled() == [DONE]
        assert [r.method for r in desk.api.requests] == ["PATCH", "PATCH", "DELETE"]

    @pytest.mark.parametrize(
        "lost",
        [OutcomeUnknown("reset"), *(status(code, "Timeout") for code in (408, 500, 503, 504))],
        ids=["reset", "408", "500", "503", "504"],
    )
    async def test_a_pod_that_is_gone_because_an_answer_was_lost_was_evicted(self, desk, lost):
        """The first try did it: whoever is told about victims has to know."""
        desk.api.script("PATCH", STATUS, OK)
        desk.api.script("DELETE", POD, lost, status(404, "NotFound"))
        desk.evict()
        assert await desk.settled() == [DONE]

    @pytest.mark.parametrize(
        "refused",
        [NotSent("refused"), status(429, "TooManyRequests")],
        ids=["not sent", "429"],
    )
    async def test_a_pod_that_nobody_was_asked_to_delete_was_gone_already(self, desk, refused):
        desk.api.script("PATCH", STATUS, OK)
        desk.api.script("DELETE", POD, refused, status(404, "NotFound"))
        desk.evict()
        assert await desk.settled() == [GONE]

    async def test_a_pod_that_is_gone_before_it_has_its_condition_was_gone_already(self, desk):
        desk.api.script("PATCH", STATUS, OutcomeUnknown("reset"), status(404, "NotFound"))
        desk.evict()
        assert await desk.settled() == [GONE]


class TestRefused:
    async def test_the_servers_message_is_what_is_told(self, desk):
        desk.api.script("PATCH", VOLUME, status(409, "Conflict", "it has been modified"))
        desk.patch()
        assert await desk.settled() == [outcome(done=False, message="it has been modified")]
        assert len(desk.api.requests) == 1

    async def test_nothing_is_deleted_without_the_reason(self, desk):
        desk.api.script("PATCH", STATUS, status(400, "BadRequest", "no"))
        desk.evict()
        assert await desk.settled() == [outcome(done=False, message="no")]
        assert desk.api.asked("DELETE") == []

    @pytest.mark.parametrize(
        ("call", "verb", "resource"),
        [("PATCH", "patch", "pods/status"), ("DELETE", "delete", "pods")],
    )
    async def test_a_missing_right_is_named(self, desk, caplog, call, verb, resource):
        no = status(403, "Forbidden", f'User "u" cannot {verb} resource "{resource}"')
        desk.api.script("PATCH", STATUS, no if call == "PATCH" else OK)
        desk.api.script("DELETE", POD, no)
        desk.evict()
        with caplog.at_level(logging.WARNING):
            [found] = await desk.settled()
        assert not found.done
        [line] = caplog.messages
        assert line.startswith(f"missing permission: {verb} {resource} in namespace a: ")

    async def test_a_missing_right_on_objects_without_a_namespace(self, desk, caplog):
        no = status(403, "Forbidden", 'User "u" cannot patch resource "persistentvolumes"')
        desk.api.script("PATCH", VOLUME, no)
        desk.patch()
        with caplog.at_level(logging.WARNING):
            await desk.settled()
        [line] = caplog.messages
        assert line.startswith("missing permission: patch persistentvolumes")
        assert "in namespace :" not in line


class TestTries:
    @pytest.mark.parametrize(
        "trouble",
        [
            NotSent("refused"),
            OutcomeUnknown("reset"),
            status(408, "Timeout"),
            status(429, "TooManyRequests"),
            status(500, "InternalError"),
            status(503, "ServiceUnavailable"),
            status(504, "Timeout"),
        ],
        ids=["not sent", "unknown", "408", "429", "500", "503", "504"],
    )
    async def test_trouble_passes(self, desk, trouble):
        desk.api.script("PATCH", VOLUME, trouble, trouble, OK)
        desk.patch()
        assert await desk.settled() == [DONE]
        assert desk.clock.slept == [0.2, 0.4]
        assert desk.admitted == 3

    async def test_not_for_ever(self, desk):
        desk.api.script("PATCH", VOLUME, *[NotSent("refused")] * 9)
        desk.patch()
        assert await desk.settled() == [outcome(done=False, message="refused")]
        assert len(desk.api.requests) == TRIES == 5
        assert desk.clock.slept == pytest.approx([0.2, 0.4, 0.8, 1.6])

    async def test_each_call_has_its_own_tries(self, desk):
        desk.api.script("PATCH", STATUS, *[NotSent("refused")] * 4, OK)
        desk.api.script("DELETE", POD, *[NotSent("refused")] * 4, OK)
        desk.evict()
        assert await desk.settled() == [DONE]
        assert len(desk.api.requests) == 10

    async def test_as_long_as_the_server_asks_for(self, desk):
        desk.api.script("PATCH", VOLUME, status(429, "TooManyRequests", Retry_After="3"), OK)
        desk.patch()
        assert await desk.settled() == [DONE]
        assert sum(desk.clock.slept) >= 3.0


class TestLeave:
    async def test_who_may_not_write_sends_nothing_and_tells_nobody(self, desk):
        desk.leading = False
        desk.evict()
        assert await desk.settled() == []
        assert desk.api.requests == []

    async def test_leave_that_ends_between_two_calls(self, desk):
        def patched(_request):
            desk.leading = False
            return OK

        desk.api.script("PATCH", STATUS, patched)
        desk.evict()
        assert await desk.settled() == []
        assert desk.api.asked("DELETE") == []

    async def test_leave_that_ends_while_trouble_lasts(self, desk):
        def broken(_request):
            desk.leading = False
            return status(503, "ServiceUnavailable")

        desk.api.script("PATCH", VOLUME, broken, OK)
        desk.patch()
        assert await desk.settled() == []
        assert len(desk.api.requests) == 1


class TestTheEnd:
    """What was taken is brought to its end, and what follows from it."""

    @pytest.fixture
    def desk(self):
        return Desk(workers=1, api=Slow(2.0), timing=Timing(uniform=lambda: 0.0))

    async def test_with_nothing_to_do_it_is_there(self, desk):
        assert await desk.lane.drain(60.0) == 0

    @virtual_time
    async def test_both_calls_are_made_and_whoever_waits_gets_its_turn(self, desk):
        desk.evict(1)
        desk.evict(2)
        async with running(desk.lane.run()):
            await settle()
            assert await desk.lane.drain(60.0) == 0
        assert [o.request for o in desk.outcomes] == [1, 2]
        assert [method for method, _ in desk.api.answered] == ["PATCH", "DELETE"] * 2

    @virtual_time
    async def test_what_an_outcome_leads_to_is_written_too(self, desk):
        """The last victim is asked for when the others are answered."""
        told = desk.outcomes.append

        def go_on(outcome):
            told(outcome)
            if outcome.request == 1:
                desk.patch(2)

        desk.lane._on_outcome = go_on
        desk.patch(1)
        async with running(desk.lane.run()):
            assert await desk.lane.drain(60.0) == 0
        assert [o.request for o in desk.outcomes] == [1, 2]

    @virtual_time
    async def test_the_time_is_bounded_and_what_is_left_is_counted(self, desk):
        desk.api.seconds = 3600.0
        desk.patch(1)
        desk.patch(2)
        async with running(desk.lane.run()):
            await settle()
            assert await desk.lane.drain(30.0) == 2
        assert desk.outcomes == []

    @virtual_time
    async def test_what_may_not_be_written_any_more_is_not_waited_for(self, desk):
        desk.leading = False
        desk.evict()
        async with running(desk.lane.run()):
            assert await desk.lane.drain(60.0) == 0
        assert desk.api.answered == []


class Slow:
    """A server that says yes, in its own time."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.answered = []

    async def request(self, method, path, **_parts):
        await asyncio.sleep(self.seconds)
        self.answered.append((method, path))
        return OK


class Counting(FakeTransport):
    """Knows how many requests were under way at once."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0

    async def request(self, *args, **kwargs):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(1)
            return OK
        finally:
            self.now -= 1


@pytest.mark.parametrize("workers", [1, 3])
@virtual_time
async def test_no_more_at_once_than_there_are_workers(workers):
    counting = Counting()
    desk = Desk(workers=workers, api=counting)
    for number in range(9):
        desk.patch(number)
    async with running(desk.lane.run()):
        await asyncio.sleep(9 / workers + 0.5)
    assert counting.most == workers
    assert sorted(o.request for o in desk.outcomes) == list(range(9))


@virtual_time
async def test_a_slow_write_holds_up_no_other():
    desk = Desk(workers=2)
    desk.api.script("PATCH", "/api/v1/persistentvolumes/slow", Late(3.0))
    desk.api.script("PATCH", VOLUME, OK, OK)
    desk.patch(1, name="slow")
    desk.patch(2)
    desk.patch(3)
    async with running(desk.lane.run()):
        await asyncio.sleep(1)
        assert [o.request for o in desk.outcomes] == [2, 3]


class TestSize:
    """How many requests are sent at a time can change while it runs."""

    @pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
    async def test_as_many_at_a_time_as_was_said_last(self, before, after):
        desk = Desk(workers=before)
        gate = asyncio.Event()
        busy = []

        async def slow(*_call, **_parts):
            busy.append(1)
            await gate.wait()
            return OK

        desk.api.request = slow
        async with running(desk.lane.run()):
            await settle()
            desk.lane.resize(after)
            for number in range(5):
                desk.patch(number)
            await settle()
            assert len(busy) == after
            gate.set()
            await settle()
        assert len(desk.outcomes) == 5

    async def test_before_it_runs_it_is_only_a_number(self, desk):
        desk.lane.resize(5)
        desk.api.script("PATCH", VOLUME, OK)
        desk.patch()
        assert await desk.settled() == [DONE]


class TestDeadline:
    @virtual_time
    async def test_what_waited_for_a_connection_is_not_sent_after_the_deadline(self):
        desk = Desk()
        desk.api.connecting_seconds = 3.0
        desk.evict()
        async with running(desk.lane.run()):
            await asyncio.sleep(2.0)
            desk.leading = False
            await asyncio.sleep(10.0)
            await settle(50)
        assert desk.api.requests == []
        assert desk.outcomes == []
