"""What an informer promises to whoever uses it."""

import asyncio
import logging

import pytest

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.resources import NODES, PODS, has_reached
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.slices import SliceMeter, silent_meter
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.harness import (
    NODES_PATH,
    PODS_PATH,
    bad_pod,
    node,
    pod,
    pod_path,
    watched,
)
from tests.fakes.transport import WATCH, status
from tests.fakes.watch import line


class TestHandlers:
    """Handlers see every change once, in order, as (old, new)."""

    @virtual_time
    async def test_an_object_that_was_there_is_told_as_an_add_before_synced(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            assert running.told() == ["add a/p"]
            assert set(running.informer.store) == {"a/p"}

    @virtual_time
    async def test_add_update_and_delete_are_told_with_old_and_new(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.create(PODS_PATH, pod("p"))
            api.update(pod_path("p"), pod("p", node="n1"))
            api.delete(pod_path("p"))
            await settle()
            (_, added), (before, bound), (last, nothing) = running.calls
            assert added is before
            assert bound is last
            assert bound is not None
            assert bound.spec.node_name == "n1"
            assert nothing is None

    @virtual_time
    async def test_a_finished_pod_is_told_as_a_delete_of_what_was_stored(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p", node="n1"))
        async with watched(api, PODS) as running:
            api.update(pod_path("p"), pod("p", phase="Succeeded"))
            await settle()
            last, nothing = running.calls[-1]
            assert nothing is None
            assert last is not None
            assert last.spec.node_name == "n1"
            assert last.status.phase == "Pending"

    @virtual_time
    async def test_an_object_made_again_under_its_key_is_a_delete_and_an_add(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            # The delete event itself got lost; only the new object's event arrives.
            again = api.create(PODS_PATH, pod("other"))
            again["metadata"] |= {"name": "p", "uid": "another"}
            api.watches[0].feed(_line("MODIFIED", again))
            await settle()
            assert running.told()[-2:] == ["delete a/p", "add a/p"]
            assert running.informer.store["a/p"].metadata.uid == "another"

    @virtual_time
    async def test_an_event_of_an_unchanged_version_is_not_told(self) -> None:
        api = FakeApi()
        created = api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            api.watches[0].feed(_line("MODIFIED", created))
            await settle()
            assert running.told() == ["add a/p"]

    @virtual_time
    async def test_a_handler_that_raises_is_logged_with_the_key_and_stops_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        informer = _informer(api)

        def broken(_old: Pod | None, _new: Pod | None) -> None:
            raise ValueError("no")

        seen: list[object] = []
        informer.add_handler(broken)
        informer.add_handler(lambda _old, new: seen.append(new))
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        api.create(PODS_PATH, pod("q"))
        await settle()
        task.cancel()
        assert len(seen) == 2
        failed = [r for r in caplog.records if r.message == "handler failed"]
        assert [r.__dict__["fields"]["key"] for r in failed] == ["a/p", "a/q"]

    @virtual_time
    async def test_a_handler_cannot_be_added_too_late(self) -> None:
        async with watched(FakeApi(), PODS) as running:
            with pytest.raises(RuntimeError, match="pods runs already"):
                running.informer.add_handler(lambda _old, _new: None)

    @virtual_time
    async def test_an_informer_runs_once(self) -> None:
        async with watched(FakeApi(), PODS) as running:
            with pytest.raises(RuntimeError, match="pods runs already"):
                await running.informer.run()

    @virtual_time
    async def test_cluster_scoped_objects_are_kept_by_name(self) -> None:
        api = FakeApi()
        api.create(NODES_PATH, node("n1"))
        async with watched(api, NODES) as running:
            assert set(running.informer.store) == {"n1"}


class TestUndecodable:
    """One unreadable object costs nobody else anything."""

    @virtual_time
    async def test_it_is_counted_named_once_and_left_out(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = FakeApi()
        api.create(PODS_PATH, bad_pod("bad"))
        api.create(PODS_PATH, pod("good"))
        async with watched(api, PODS) as running:
            api.update(pod_path("bad"), bad_pod("bad"))
            await settle()
            assert set(running.informer.store) == {"a/good"}
            total = "k8s_scheduler_undecodable_objects_total"
            assert running.count(total, resource="pods") == 2
        named = [r for r in caplog.records if "cannot be decoded" in r.message]
        assert [r.__dict__["fields"]["key"] for r in named] == ["a/bad"]
        assert "priority" in named[0].__dict__["fields"]["problem"]

    @virtual_time
    async def test_the_older_version_stays_when_an_object_becomes_unreadable(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p", node="n1"))
        async with watched(api, PODS) as running:
            api.update(pod_path("p"), bad_pod("p"))
            await settle()
            assert running.told() == ["add a/p"]
            assert running.informer.store["a/p"].spec.node_name == "n1"
            assert running.informer.resource_version == str(api.version)

    @pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
    def test_the_older_version_also_survives_a_list(self, *, streaming: bool) -> None:
        @virtual_time
        async def case() -> None:
            api = FakeApi(streaming_lists=streaming)
            api.create(PODS_PATH, pod("p", node="n1"))
            async with watched(api, PODS) as running:
                api.update(pod_path("p"), bad_pod("p"))
                await running.informer.catch_up()
                assert running.told() == ["add a/p"]

        case()

    @virtual_time
    async def test_an_unreadable_delete_deletes_by_key(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            api.update(pod_path("p"), bad_pod("p"))
            api.delete(pod_path("p"))
            await settle()
            assert running.told() == ["add a/p", "delete a/p"]

    @virtual_time
    async def test_the_older_version_goes_when_the_unreadable_one_is_another_object(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            # Deleted and made again while the watch was away.
            api.stalled = True
            api.delete(pod_path("p"))
            api.create(PODS_PATH, bad_pod("p"))
            await settle()
            api.stalled = False
            await running.informer.catch_up()
            assert running.told() == ["add a/p", "delete a/p"]


class TestCatchUp:
    """The take-over barrier."""

    @virtual_time
    async def test_it_returns_at_once_when_the_version_was_seen(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            await running.informer.catch_up()
            assert len(api.asked(WATCH)) == 1

    @virtual_time
    async def test_a_bookmark_counts_as_seen(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.create(NODES_PATH, node("n1"))
            api.send_bookmarks()
            await settle()
            await running.informer.catch_up()
            assert len(api.asked(WATCH)) == 1

    @pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
    def test_it_lists_at_once_when_the_watch_is_behind(self, *, streaming: bool) -> None:
        @virtual_time
        async def case() -> None:
            api = FakeApi(streaming_lists=streaming)
            api.create(PODS_PATH, pod("gone"))
            async with watched(api, PODS) as running:
                api.stalled = True
                api.create(PODS_PATH, pod("new"))
                api.delete(pod_path("gone"))
                await settle()
                assert running.told() == ["add a/gone"]
                api.stalled = False
                before = asyncio.get_running_loop().time()
                await running.informer.catch_up()
                assert asyncio.get_running_loop().time() < before + 0.001
                assert running.told() == ["add a/gone", "add a/new", "delete a/gone"]
                assert has_reached(running.informer.resource_version, str(api.version))

        case()

    @virtual_time
    async def test_what_the_watch_shows_within_the_time_of_a_list_is_not_listed(self) -> None:
        api = FakeApi()
        for i in range(400):
            api.create(PODS_PATH, pod(f"p{i}"))
        async with watched(api, PODS) as running:
            api.create(NODES_PATH, node("n1"))
            barrier = asyncio.create_task(running.informer.catch_up())
            await asyncio.sleep(0.015)
            assert not barrier.done()
            api.create(PODS_PATH, pod("after"))
            await barrier
            assert running.told()[-1] == "add a/after"
            assert len(api.asked(WATCH)) == 1

    @virtual_time
    async def test_a_server_that_does_not_say_how_far_it_is_is_listed(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.script("GET", PODS_PATH, status(503, "ServiceUnavailable"))
            await running.informer.catch_up()
            assert len(api.asked(WATCH)) == 2

    @virtual_time
    async def test_it_waits_for_the_first_list(self) -> None:
        api = FakeApi()
        api.refusing = True
        async with watched(api, PODS, wait=False) as running:
            barrier = asyncio.create_task(running.informer.catch_up())
            await settle()
            assert not barrier.done()
            api.refusing = False
            await barrier
            assert running.informer.synced.is_set()

    @virtual_time
    async def test_it_survives_a_server_that_fails_in_the_middle(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.stalled = True
            api.create(PODS_PATH, pod("new"))
            await settle()
            api.stalled = False
            api.refusing = True
            barrier = asyncio.create_task(running.informer.catch_up())
            await asyncio.sleep(5)
            assert not barrier.done()
            api.refusing = False
            await barrier
            assert running.told() == ["add a/new"]

    @virtual_time
    async def test_two_at_a_time_are_served_by_one_list(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.create(NODES_PATH, node("n1"))
            await asyncio.gather(*(running.informer.catch_up() for _ in range(5)))
            assert len(api.asked(WATCH)) == 2


class TestSlices:
    """Bursts let the loop run."""

    @virtual_time
    async def test_a_burst_is_worked_off_in_slices_of_its_owner(self) -> None:
        ticks = iter(range(10**6))
        reported: list[tuple[str, float]] = []
        # Each look at the clock costs a millisecond, so that ten looks fill a slice.
        meter = SliceMeter(
            lambda owner, seconds: reported.append((owner, seconds)),
            clock=lambda: next(ticks) / 1000,
        )
        api = FakeApi()
        for index in range(400):
            api.create(PODS_PATH, pod(f"p{index}"))
        async with watched(api, PODS, meter=meter) as running:
            assert len(running.informer.store) == 400
        assert {owner for owner, _ in reported} == {"reflector/pods"}
        assert len(reported) > 4
        assert max(seconds for _, seconds in reported) <= 0.020


def test_versions_are_compared_as_numbers() -> None:
    assert has_reached("100", "99")
    assert has_reached("99", "99")
    assert not has_reached("99", "100")
    assert not has_reached("9" * 5000, "99")
    assert not has_reached("", "1")
    assert not has_reached("5", "")
    assert not has_reached("x5", "1")


def test_quiet_logs_in_the_good_case(caplog: pytest.LogCaptureFixture) -> None:
    @virtual_time
    async def case() -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS):
            await asyncio.sleep(3600)

    caplog.set_level(logging.INFO)
    case()
    assert caplog.records == []


def _informer(api: FakeApi) -> Informer[Pod]:
    return Informer(api, PODS, metrics=Metrics().kube, meter=silent_meter())


def _line(kind: str, content: dict[str, object]) -> bytes:
    return line({"type": kind, "object": content})
