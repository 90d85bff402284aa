"""An informer held against the API server: what is lost is found, and what only lags is not."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from k8s_scheduler.kube.errors import ServerError
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.resources import PODS
from k8s_scheduler.kube.watch import comparing
from k8s_scheduler.kube.watch.comparing import Comparer, Discrepancy, NotComparableError
from k8s_scheduler.lib.slices import silent_meter
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.harness import PODS_PATH, Watched, pod, pod_path, watched
from tests.fakes.transport import Request, status


def comparer(api: FakeApi, running: Watched[Any]) -> Comparer[Any]:
    return Comparer(api, running.informer, meter=silent_meter())


async def world(count: int = 3) -> FakeApi:
    api = FakeApi()
    for i in range(count):
        api.create(PODS_PATH, pod(f"p{i}"))
    return api


class Departure:
    """Lets pods leave while the first list is on its way: a job ends, a namespace is deleted."""

    def __init__(self, api: FakeApi, count: int) -> None:
        self._api = api
        self._leaving = [pod_path(f"p{i}") for i in range(count)]

    async def request(self, *arguments: Any, **named: Any) -> Response:
        answer = await self._api.request(*arguments, **named)
        while self._leaving:
            self._api.delete(self._leaving.pop())
        await settle()
        return answer

    def stream(self, path: str, *, query: Any = None) -> Any:
        return self._api.stream(path, query=query)


@contextmanager
def silent_watches(api: FakeApi) -> Iterator[None]:
    """Have watches show what happens meanwhile only at the end of it."""
    held_back: list[Any] = []
    publish, api._publish = api._publish, held_back.append  # type: ignore[method-assign]
    try:
        yield
    finally:
        api._publish = publish  # type: ignore[method-assign]
        for change in held_back:
            publish(change)


@virtual_time
async def test_equal_worlds_do_not_differ() -> None:
    api = await world(1200)
    async with watched(api, PODS) as running:
        assert await comparer(api, running).compare() == []
        # In pages.
        assert len(api.asked("GET", PODS_PATH)) == 3


class TestLost:
    """What the watch never showed."""

    @virtual_time
    async def test_a_deletion(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            held = running.informer.store["a/p1"]
            api.delete(pod_path("p1"))
            await settle()
            running.informer._store._objects["a/p1"] = held
            found = await comparer(api, running).compare()
            assert found == [Discrepancy("a/p1", "its deletion was not seen")]
            await running.informer.relist()
            assert "a/p1" not in running.informer.store
            assert await comparer(api, running).compare() == []

    @virtual_time
    async def test_an_object(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            del running.informer._store._objects["a/p1"]
            found = await comparer(api, running).compare()
            assert found == [Discrepancy("a/p1", "it was not seen")]
            running.copy.pop("a/p1")
            await running.informer.relist()
            assert "a/p1" in running.informer.store

    @virtual_time
    async def test_a_change(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            old = running.informer.store["a/p1"]
            changed = api.object(pod_path("p1"))
            assert changed is not None
            changed["metadata"]["labels"] = {"a": "b"}
            api.update(pod_path("p1"), changed)
            await settle()
            running.informer._store._objects["a/p1"] = running.copy["a/p1"] = old
            found = await comparer(api, running).compare()
            assert found == [Discrepancy("a/p1", "a change of it was not seen")]
            await running.informer.relist()
            assert running.informer.store["a/p1"].metadata.labels == {"a": "b"}


class TestLag:
    """What differs now and will not, or does no more."""

    @virtual_time
    async def test_a_watch_that_is_behind_is_waited_for(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            held = running.informer.resource_version
            question = comparer(api, running)
            running.informer._progress.resource_version = "1"
            missing = running.informer._store._objects.pop("a/p1")
            task = asyncio.create_task(question.compare())
            await asyncio.sleep(20.0)
            assert not task.done()
            running.informer._store._objects["a/p1"] = missing
            running.informer._progress.resource_version = held
            await asyncio.sleep(1.0)
            assert await task == []

    @virtual_time
    async def test_a_watch_that_does_not_come_leaves_the_question_open(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(comparing, "REACH_SECONDS", 20.0)
        api = await world()
        async with watched(api, PODS) as running:
            running.informer._progress.resource_version = "1"
            running.informer._store._objects.pop("a/p1")
            with pytest.raises(NotComparableError, match="pods"):
                await comparer(api, running).compare()

    @virtual_time
    async def test_what_happens_after_the_list_is_no_difference(self) -> None:
        api = await world()

        def meanwhile(request: Request) -> Any:
            answer = api.answer(request)
            api.delete(pod_path("p0"))
            api.create(PODS_PATH, pod("new"))
            changed = api.object(pod_path("p2"))
            assert changed is not None
            api.update(pod_path("p2"), changed)
            api.delete(pod_path("p1"))
            api.create(PODS_PATH, pod("p1") | {"metadata": pod("p1")["metadata"] | {"uid": "x"}})
            return answer

        async with watched(api, PODS) as running:
            api.script("GET", PODS_PATH, meanwhile)
            task = asyncio.create_task(comparer(api, running).compare())
            await settle()
            assert await task == []

    @pytest.mark.parametrize("count", [50, 300])
    @virtual_time
    async def test_what_leaves_after_the_list_is_no_difference_however_much_it_is(
        self, count: int
    ) -> None:
        api = await world(count + 3)
        async with watched(api, PODS) as running:
            question = Comparer(Departure(api, count), running.informer, meter=silent_meter())
            assert await question.compare() == []

    @virtual_time
    async def test_what_is_lost_among_much_that_left_is_found(self) -> None:
        api = await world(303)
        async with watched(api, PODS) as running:
            running.informer._store._objects.pop("a/p301")
            running.copy.pop("a/p301")
            question = Comparer(Departure(api, 300), running.informer, meter=silent_meter())
            assert await question.compare() == [Discrepancy("a/p301", "it was not seen")]
            # All at once, not each by its name.
            assert len(api.asked("GET", PODS_PATH)) == 2

    @virtual_time
    async def test_many_that_cannot_be_read_are_no_difference(self) -> None:
        api = await world()
        for i in range(150):
            strange = pod(f"odd{i}")
            strange["spec"]["containers"] = "none"
            api.create(PODS_PATH, strange)
        async with watched(api, PODS) as running:
            assert await comparer(api, running).compare() == []

    @virtual_time
    async def test_what_cannot_be_read_is_no_difference(self) -> None:
        api = await world()
        strange = pod("odd")
        strange["spec"]["containers"] = "none"
        api.create(PODS_PATH, strange)
        async with watched(api, PODS) as running:
            assert "a/odd" not in running.informer.store
            assert await comparer(api, running).compare() == []

    @virtual_time
    async def test_an_item_without_a_readable_name_may_be_any_that_is_missing(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            running.informer._store._objects.pop("a/p2")

            def spoilt(request: Request) -> Response:
                answer = api.answer(request)
                body = json.loads(answer.body)
                body["items"][0]["metadata"] = {"name": 7}
                return Response(200, json.dumps(body).encode())

            api.script("GET", PODS_PATH, spoilt)
            found = await comparer(api, running).compare()
            # p0 is not missed: it may be the one that can't be read.
            assert found == [Discrepancy("a/p2", "it was not seen")]


class TestDoubt:
    """Whether content shows that storage was set back, where versions do not."""

    @virtual_time
    async def test_what_leaves_after_the_list_is_no_reason(self) -> None:
        api = await world(5)
        async with watched(api, PODS) as running:
            departing = Departure(api, 4)
            asking = Comparer(departing, running.informer, meter=silent_meter())
            assert await asking.doubtful(2.0) == ""

    @virtual_time
    async def test_a_watch_that_is_late_is_no_reason(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            with silent_watches(api):
                api.update(pod_path("p0"), pod("p0", phase="Running"))
                api.delete(pod_path("p1"))
                api.create(PODS_PATH, pod("new"))
                asked = asyncio.create_task(comparer(api, running).doubtful(4.0))
                await asyncio.sleep(3.0)
            assert await asked == ""

    @virtual_time
    async def test_an_object_that_the_watch_has_passed_and_never_shown_is_one(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            del running.informer._store._objects["a/p1"]
            version = api.objects(PODS_PATH)["a/p1"]["metadata"]["resourceVersion"]
            assert await comparer(api, running).doubtful(2.0) == version

    @virtual_time
    async def test_a_ghost_is_one_though_the_watch_is_silent(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            held = running.informer.store["a/p1"]
            with silent_watches(api):
                api.delete(pod_path("p1"))
                assert held.metadata.resource_version == await comparer(api, running).doubtful(2.0)

    @virtual_time
    async def test_other_content_under_the_same_version_is_one(self) -> None:
        api = await world()
        async with watched(api, PODS) as running:
            saved = api.snapshot()
            api.update(pod_path("p1"), pod("p1", phase="Running"))
            await settle()
            api.restore(saved)
            with silent_watches(api):
                api.update(pod_path("p1"), pod("p1", node="n1"))
                # Elsewhere things go on: versions alone tell nothing.
                api.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
                held = running.informer.store["a/p1"].metadata.resource_version
                assert held == await comparer(api, running).doubtful(2.0)


@virtual_time
async def test_a_server_that_says_no_is_an_error() -> None:
    api = await world()
    async with watched(api, PODS) as running:
        api.script("GET", PODS_PATH, status(500, "InternalError"))
        with pytest.raises(ServerError):
            await comparer(api, running).compare()
