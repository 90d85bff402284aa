"""A storage that was set back is noticed wherever a version is read, and listed anew."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from k8s_scheduler.kube.errors import OutcomeUnknown
from k8s_scheduler.kube.resources import PODS
from k8s_scheduler.kube.watch.reflector_limits import DEFAULT_PACE
from k8s_scheduler.kube.watch.set_back import SetBack, Signals, Source
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.harness import PODS_PATH, pod, pod_path, watched
from tests.fakes.transport import WATCH


class Ear:
    """Hears what a reflector signals."""

    def __init__(self) -> None:
        self.heard: list[SetBack] = []
        self.returned: list[str] = []

    @property
    def signals(self) -> Signals:
        return Signals(self.heard.append, self.returned.append)

    def sources(self) -> list[Source]:
        return [news.source for news in self.heard]


Snapshot = tuple[dict[str, dict[str, Any]], int]


def history(api: FakeApi) -> Snapshot:
    """Let something happen that the restore of the returned snapshot undoes."""
    snapshot = api.snapshot()
    api.create(PODS_PATH, pod("ghost"))
    api.delete(pod_path("deleted"))
    api.update(pod_path("changed"), pod("changed", node="n1"))
    return snapshot


def cluster(*, streaming: bool = True) -> FakeApi:
    api = FakeApi(streaming_lists=streaming)
    for name in ("deleted", "changed"):
        api.create(PODS_PATH, pod(name))
    return api


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
def test_a_watch_is_not_resumed_where_the_server_has_not_come_that_far(*, streaming: bool) -> None:
    @virtual_time
    async def case() -> None:
        api, ear = cluster(streaming=streaming), Ear()
        async with watched(api, PODS, signals=ear.signals) as running:
            saved = history(api)
            await settle()
            api.restore(saved)
            api.break_watches(OutcomeUnknown("reset"))
            await asyncio.sleep(2)
            assert set(running.informer.store) == {"a/deleted", "a/changed"}
            assert running.informer.store["a/changed"].spec.node_name == ""
            assert ear.sources() == [Source.CURRENT]
            # From here on it is watched as ever.
            api.create(PODS_PATH, pod("new"))
            await settle()
            assert "a/new" in running.informer.store

    case()


@virtual_time
async def test_a_bookmark_of_a_lower_version_leads_to_a_list_at_once() -> None:
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals) as running:
        saved = history(api)
        await settle()
        api.restore(saved)
        api.send_bookmarks()
        await settle()
        assert set(running.informer.store) == {"a/deleted", "a/changed"}
        assert ear.sources() == [Source.WATCH]
        assert len(api.asked(WATCH)) == 2


@virtual_time
async def test_an_event_of_a_lower_version_is_not_applied_to_what_is_of_another_history() -> None:
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals) as running:
        saved = history(api)
        await settle()
        running.calls.clear()
        api.restore(saved)
        api.delete(pod_path("deleted"))
        await settle()
        assert set(running.informer.store) == {"a/changed"}
        assert ear.heard == [SetBack("pods", Source.WATCH, known="105", seen="103")]
        assert running.told() == ["update a/changed", "delete a/ghost"]


@virtual_time
async def test_the_same_version_of_the_same_object_with_other_content_is_a_change() -> None:
    api = cluster()
    async with watched(api, PODS) as running:
        saved = api.snapshot()
        api.update(pod_path("changed"), pod("changed", node="n1"))
        await settle()
        api.restore(saved)
        api.update(pod_path("changed"), pod("changed", node="n2"))
        await running.informer.relist()
        assert running.informer.store["a/changed"].spec.node_name == "n2"


@virtual_time
async def test_an_object_that_a_list_shows_older_tells_of_a_restore_with_bumped_versions() -> None:
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals) as running:
        saved = history(api)
        await settle()
        api.restore(saved, bumped_by=1000)
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(2)
        assert set(running.informer.store) == {"a/deleted", "a/changed"}
        news = SetBack("pods", Source.OBJECT, known="105", seen="102", listed=True)
        assert ear.heard == [news]


@virtual_time
async def test_an_ordinary_relist_and_resumed_watches_are_no_such_news() -> None:
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals) as running:
        history(api)
        await running.informer.relist()
        api.compact()
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(2)
        api.update(pod_path("changed"), pod("changed"))
        await running.informer.catch_up()
        assert ear.heard == []


@virtual_time
async def test_the_barrier_of_a_take_over_notices_it_as_well() -> None:
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals) as running:
        saved = history(api)
        await settle()
        api.restore(saved)
        await running.informer.catch_up()
        assert set(running.informer.store) == {"a/deleted", "a/changed"}
        assert ear.sources() == [Source.CURRENT]


@virtual_time
async def test_a_server_that_was_away_for_long_is_said_to_be_back_and_after_a_moment_is_not() -> (
    None
):
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals):
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(2)
        assert ear.returned == []
        api.refusing = True
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(5)
        api.refusing = False
        await asyncio.sleep(9)
        assert ear.returned == ["pods"]


@virtual_time
async def test_a_connection_that_breaks_late_was_away_since_it_was_last_heard() -> None:
    api, ear = cluster(), Ear()
    async with watched(api, PODS, signals=ear.signals):
        await asyncio.sleep(3)
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(2)
        assert ear.returned == ["pods"]


# A watch that is shorter than the patience with silence.
SHORT_WATCHES = replace(DEFAULT_PACE, watch_min_seconds=60.0, watch_max_seconds=60.0)


@pytest.mark.parametrize(
    ("after_seconds", "returned"),
    [(60.0, []), (59.5, []), (30.0, ["pods"]), (64.0, ["pods"])],
    ids=["as agreed", "as agreed, the answer took a while", "early", "late"],
)
def test_a_quiet_watch_was_away_unless_it_ends_when_it_was_to_end(
    after_seconds: float, returned: list[str]
) -> None:
    @virtual_time
    async def case() -> None:
        api, ear = cluster(), Ear()
        api.ends_late_by_seconds = 5.0
        async with watched(api, PODS, signals=ear.signals, pace=SHORT_WATCHES):
            await asyncio.sleep(after_seconds)
            api.drop_watches()
            await asyncio.sleep(1)
            assert len(api.asked(WATCH)) == 2
            assert ear.returned == returned

    case()
