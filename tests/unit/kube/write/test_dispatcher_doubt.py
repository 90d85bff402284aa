"""Binds in doubt: they end, they cost a namespace its own share, and others go on."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.bind_shares import (
    IN_ALL,
    PER_NAMESPACE,
    RATE_PER_SECOND,
    WORKERS_IN_ALL,
    WORKERS_PER_NAMESPACE,
)
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome, BindRequest
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import Late, Lost, Request, status
from tests.unit.kube.write_fakes import Desk, bind, binding_path, loop_clock, running

WEBHOOK = (
    'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: '
    'Post "https://127.0.0.1:9/": dial tcp 127.0.0.1:9: connect: connection refused'
)
DOWN = status(500, "InternalError", WEBHOOK)
OPAQUE = status(500, "InternalError", "etcdserver: leader changed")


class SickApi(FakeApi):
    """Answers every Binding in some namespaces with one and the same error."""

    def __init__(self, *namespaces: str, answer: Response = DOWN) -> None:
        super().__init__()
        self.sick = set(namespaces)
        self.error = answer

    def answer(self, request: Request) -> Response:
        parts = request.path.split("/")
        if request.method == "POST" and parts[-1] == "binding" and parts[4] in self.sick:
            return self.error
        return super().answer(request)


class Ward(Desk):
    """A dispatcher on such a server, with many pods."""

    def __init__(
        self,
        *namespaces: str,
        answer: Response = DOWN,
        api: SickApi | None = None,
        **config: int,
    ) -> None:
        self.sick_api = api or SickApi(*namespaces, answer=answer)
        super().__init__(api=self.sick_api, **config)

    def submit(self, namespace: str, count: int, first: int = 0) -> None:
        for number in range(first, first + count):
            name = f"{namespace}{number}"
            self.add_pod(name, namespace=namespace)
            self.dispatcher.submit_bind(
                BindRequest(PodUid(f"uid-{name}"), namespace, name, NodeName("n1"), 1)
            )

    def ends(self, namespace: str) -> Counter[BindFailure | None]:
        return Counter(o.reason for o in self.outcomes if o.uid.startswith(f"uid-{namespace}"))


class BusyApi(SickApi):
    """Serves a request in 5 ms, two at a time: what one namespace asks for, others wait for."""

    def __init__(self, *namespaces: str) -> None:
        super().__init__(*namespaces)
        self._places = asyncio.Semaphore(2)

    async def _arrive(self, request: Request) -> Any:
        async with self._places:
            await asyncio.sleep(0.005)
            return await super()._arrive(request)


class TestEnd:
    """A bind that is answered 5xx for ever ends, and never while a request may be under way."""

    @pytest.mark.parametrize("answer", [DOWN, OPAQUE], ids=["webhook", "anything"])
    @virtual_time
    async def test_it_fails_once_it_was_read_unbound_a_settling_time_later(
        self, answer: Response
    ) -> None:
        ward = Ward("a", answer=answer)
        ward.add_pod()
        ward.dispatcher.submit_bind(bind())
        [outcome] = await ward.settled()
        assert (outcome.bound, outcome.reason) == (False, BindFailure.NOT_EXECUTED)
        assert outcome.message == answer.error().message
        assert len(ward.api.asked("POST")) == 8
        assert loop_clock()() >= 120.0
        assert ward.api.requests[-1].method == "GET"
        assert ward.metric("doubtful_binds_ended_total", outcome="not_executed") == 1
        assert ward.metric("bind_failures_total", reason="not_executed") == 1
        assert ward.metric("doubtful_binds") == 0

    @virtual_time
    async def test_a_request_that_is_executed_while_it_settles_makes_it_bound(self) -> None:
        ward = Ward("a", answer=OPAQUE)
        ward.add_pod()
        ward.dispatcher.submit_bind(bind())
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(100.0)
            assert len(ward.api.asked("POST")) == 8
            ward.sick_api.sick.clear()
            ward.api.answer(ward.api.asked("POST")[-1])  # one of them arrives at last
            assert await ward.dispatcher.drain(100.0) == 0
        assert ward.outcomes == [BindOutcome(PodUid("uid-p"), 1, NodeName("n1"), bound=True)]
        assert ward.metric("doubtful_binds_ended_total", outcome="bound") == 1

    @virtual_time
    async def test_after_its_end_a_request_of_before_may_land_for_a_settling_time(self) -> None:
        desk = Desk()
        for name in ("p", "healthy"):
            desk.add_pod(name)
            assert not desk.dispatcher.may_land(PodUid(f"uid-{name}"))
            desk.dispatcher.submit_bind(bind(name))
            assert desk.dispatcher.may_land(PodUid(f"uid-{name}"))
        desk.api.script("POST", binding_path(), Lost(executed=False))
        async with running(desk.dispatcher.run()):
            assert await desk.dispatcher.drain(100.0) == 0
            assert [outcome.bound for outcome in desk.outcomes] == [True, True]
            assert not desk.dispatcher.may_land(PodUid("uid-healthy"))
            await asyncio.sleep(100.0)
            assert desk.dispatcher.may_land(PodUid("uid-p"))
            await asyncio.sleep(21.0)
            assert not desk.dispatcher.may_land(PodUid("uid-p"))

    @virtual_time
    async def test_a_webhook_that_is_back_within_seconds_delays_no_more_than_that(self) -> None:
        ward = Ward("a")
        ward.add_pod()
        ward.dispatcher.submit_bind(bind())
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(5.0)
            ward.sick_api.sick.clear()
            assert await ward.dispatcher.drain(10.0) == 0
        assert [outcome.bound for outcome in ward.outcomes] == [True]

    @virtual_time
    async def test_an_outage_does_not_count_as_posts_that_came_to_nothing(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.script("POST", binding_path(), *[Lost(executed=False)] * 3)
        desk.api.script("GET", "*", *[Lost(executed=False)] * 200)
        desk.dispatcher.submit_bind(bind())
        assert [outcome.bound for outcome in await desk.settled(3600.0)] == [True]
        assert loop_clock()() > 120.0


class TestShare:
    """One namespace in trouble takes its share and no more."""

    @virtual_time
    async def test_a_thousand_binds_of_one_namespace_leave_room_for_others(self) -> None:
        ward = Ward("sick")
        ward.submit("sick", 1000)
        assert ward.dispatcher.bind_room() == 0
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(2.0)
            assert ward.dispatcher.bind_room() == 1000
            assert ward.metric("doubtful_binds") == PER_NAMESPACE
            assert ward.ends("sick") == {BindFailure.HELD_BACK: 1000 - PER_NAMESPACE}
            assert ward.rooms
            ward.submit("well", 1000)
            await asyncio.sleep(2.0)
            assert ward.ends("well") == {None: 1000}
            await asyncio.sleep(400.0)
        assert ward.ends("sick") == {
            BindFailure.HELD_BACK: 1000 - PER_NAMESPACE,
            BindFailure.NOT_EXECUTED: PER_NAMESPACE,
        }

    @pytest.mark.parametrize(
        ("seconds", "share"), [(30.0, 0.9), (0.0, 0.75)], ids=["settled in", "at once"]
    )
    @virtual_time
    async def test_others_are_bound_nearly_as_fast_as_without(
        self, seconds: float, share: float
    ) -> None:
        took = []
        for sick in ((), ("sick",)):
            ward = Ward(api=BusyApi(*sick))
            async with running(ward.dispatcher.run()):
                for namespace in sick:
                    ward.submit(namespace, 1000)
                await asyncio.sleep(seconds)
                began = loop_clock()()
                ward.submit("well", 1000)
                while ward.ends("well")[None] < 1000:
                    await settle(1)
                    await asyncio.sleep(0.05)
                took.append(loop_clock()() - began)
        without, beside = took
        assert without >= share * beside

    @virtual_time
    async def test_the_message_says_why_and_until_when(self) -> None:
        ward = Ward("sick")
        ward.submit("sick", PER_NAMESPACE + 1)
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(2.0)
        [outcome] = ward.outcomes
        assert outcome.message == (
            "binding held back: 100 bindings in namespace sick are without a known outcome, which "
            "is as many as one namespace may have; it is tried again when some of them have ended"
        )

    @virtual_time
    async def test_the_namespace_is_held_back_until_half_of_its_binds_have_ended(self) -> None:
        ward = Ward("sick")
        ward.submit("sick", PER_NAMESPACE - 1)
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(2.0)
            assert ward.held == []
            ward.submit("sick", 1, first=PER_NAMESPACE)
            assert ward.held == [("sick",)]
            assert ward.metric("namespaces_held_back") == 1
            await asyncio.sleep(500.0)
            assert ward.held[1:] == [()]
            assert ward.held_at == [0, PER_NAMESPACE // 2 - 1]
            assert ward.metric("namespaces_held_back") == 0

    @virtual_time
    async def test_a_namespace_without_doubt_is_never_held_back(self) -> None:
        ward = Ward("sick")
        ward.submit("well", 900)
        await ward.settled()
        assert ward.held == []
        assert ward.ends("well") == {None: 900}

    @virtual_time
    async def test_repetitions_are_limited_by_namespace(self) -> None:
        ward = Ward("sick")
        ward.submit("sick", PER_NAMESPACE)
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(5.0)
            before = len(ward.api.asked("POST"))
            await asyncio.sleep(30.0)
            assert len(ward.api.asked("POST")) - before <= 30 * RATE_PER_SECOND + 1
            await asyncio.sleep(36 * 60.0)
        assert len(ward.api.asked("POST")) == 8 * PER_NAMESPACE

    @virtual_time
    async def test_slow_answers_in_many_namespaces_leave_most_workers_to_others(self) -> None:
        desk = Desk()
        names = [f"s{number}" for number in range(10)]
        calls, most = Counter[str](), Counter[str]()
        request = desk.api.request

        async def counting(method: str, path: str, **rest: object) -> Response:
            namespace = path.split("/")[4]
            calls[namespace] += 1
            calls["all"] += namespace.startswith("s")
            for each in (namespace, "all"):
                most[each] = max(most[each], calls[each])
            try:
                return await request(method, path, **rest)  # type: ignore[arg-type]
            finally:
                calls[namespace] -= 1
                calls["all"] -= namespace.startswith("s")

        desk.api.request = counting  # type: ignore[assignment,method-assign]
        desk.api.script("POST", "/api/v1/namespaces/s*", *[Late(100.0)] * 5000)
        desk.api.script("GET", "/api/v1/namespaces/s*", *[status(503, "Unavailable")] * 5000)
        ward = [BindRequest(PodUid(n), n, "first", NodeName("n1"), 1) for n in names]
        for each in ward:
            desk.dispatcher.submit_bind(each)
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(10.0)  # now all of them are suspect
            most.clear()
            for name in names:
                for number in range(50):
                    pod = f"{name}-{number}"
                    request_ = BindRequest(PodUid(pod), name, pod, NodeName("n1"), 1)
                    desk.dispatcher.submit_bind(request_)
            await asyncio.sleep(3.0)
            assert most["all"] <= WORKERS_IN_ALL
            assert max(most[name] for name in names) <= WORKERS_PER_NAMESPACE
            for number in range(200):
                desk.add_pod(f"w{number}")
                desk.dispatcher.submit_bind(bind(f"w{number}"))
            await settle(200)
            assert [outcome.bound for outcome in desk.outcomes] == [True] * 200

    @virtual_time
    async def test_too_many_in_all_stop_the_deciding(self) -> None:
        count = IN_ALL // PER_NAMESPACE
        names = [f"s{number}" for number in range(count)]
        ward = Ward(*names)
        async with running(ward.dispatcher.run()):
            for name in names:
                assert ward.dispatcher.bind_room() > 0
                ward.submit(name, PER_NAMESPACE)
                await asyncio.sleep(1.0)
            assert ward.metric("doubtful_binds") == IN_ALL
            assert ward.dispatcher.bind_room() == 0
            ward.sick_api.sick.clear()
            await asyncio.sleep(20.0)
            assert {outcome.bound for outcome in ward.outcomes} == {True}
            assert ward.dispatcher.bind_room() > 0

    @virtual_time
    async def test_a_missing_right_is_told_at_once_although_a_webhook_is_down_elsewhere(
        self,
    ) -> None:
        ward = Ward("sick")
        ward.submit("sick", 1)
        ward.api.script("POST", binding_path("p"), status(403, "Forbidden", "no"))
        ward.add_pod()
        async with running(ward.dispatcher.run()):
            await settle()
            ward.dispatcher.submit_bind(bind())
            await settle()
            assert [outcome.reason for outcome in ward.outcomes] == [BindFailure.REFUSED]


class TestStopping:
    """Binds in doubt hold up the end only while something of them may land."""

    @virtual_time
    async def test_what_admission_gave_up_ends_with_one_read(self) -> None:
        ward = Ward("sick")
        ward.submit("sick", PER_NAMESPACE)
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(60.0)
            assert ward.outcomes == []
            ward.dispatcher.stop_accepting()
            posts = len(ward.api.asked("POST"))
            assert await ward.dispatcher.drain(5.0) == 0
        assert ward.ends("sick") == {BindFailure.NOT_EXECUTED: PER_NAMESPACE}
        assert len(ward.api.asked("POST")) == posts
        assert ward.outcomes[0].message == WEBHOOK

    @virtual_time
    async def test_what_may_land_is_not_ended_by_it(self) -> None:
        ward = Ward("sick", answer=OPAQUE)
        ward.submit("sick", 3)
        async with running(ward.dispatcher.run()):
            await asyncio.sleep(60.0)
            ward.dispatcher.stop_accepting()
            assert await ward.dispatcher.drain(30.0) == 3
        assert ward.outcomes == []
