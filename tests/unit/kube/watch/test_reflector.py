"""How a reflector lists and watches, and what it does when that fails."""

import asyncio

import pytest

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.resources import NODES, PODS
from k8s_scheduler.kube.watch.reflector_limits import DEFAULT_PACE, Pace
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.harness import NODES_PATH, PODS_PATH, node, pod, pod_path, watched
from tests.fakes.transport import WATCH, Answer, Request, status, status_object
from tests.fakes.watch import gone_event, line

SELECTOR = "status.phase!=Succeeded,status.phase!=Failed"
LISTS = "k8s_scheduler_reflector_lists_total"
FAILURES = "k8s_scheduler_reflector_failures_total"


def now() -> float:
    return asyncio.get_running_loop().time()


def error_event(code: int, reason: str, message: str = "") -> bytes:
    return line({"type": "ERROR", "object": status_object(code, reason, message)})


class TestListing:
    """Streaming lists where the server has them, pages where it has not."""

    @virtual_time
    async def test_it_asks_for_a_streaming_list_first(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            (request,) = api.requests
            timeout_seconds = int(request.query["timeoutSeconds"])
            assert request.query == {
                "watch": "1",
                "fieldSelector": SELECTOR,
                "resourceVersion": "",
                "allowWatchBookmarks": "true",
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
                "timeoutSeconds": str(timeout_seconds),
            }
            assert 300 <= timeout_seconds <= 600
            assert running.informer.resource_version == str(api.version)
            assert running.count(LISTS, resource="pods", mode="streaming") == 1

    @virtual_time
    async def test_it_is_not_synced_before_the_annotated_bookmark(self) -> None:
        api = FakeApi()
        opened = line({"type": "ADDED", "object": api.create(PODS_PATH, pod("p"))})
        plain = line({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}})
        api.script(WATCH, PODS_PATH, [opened, plain])
        async with watched(api, PODS, wait=False) as running:
            await settle()
            assert set(running.informer.store) == {"a/p"}
            assert not running.informer.synced.is_set()
            assert running.informer.resource_version == ""

    @pytest.mark.parametrize("code", [400, 422])
    def test_a_refusal_leads_to_pages_at_once_and_is_remembered(self, code: int) -> None:
        @virtual_time
        async def case() -> None:
            api = FakeApi()
            api.script(WATCH, PODS_PATH, status(code, "Invalid"))
            api.create(PODS_PATH, pod("p"))
            async with watched(api, PODS) as running:
                assert now() == 0
                await asyncio.sleep(2)
                api.compact()
                api.drop_watches()
                await settle()
                lists = api.asked("GET", PODS_PATH)
                # In between it was asked how far the server has come.
                assert [r.query.get("limit") for r in lists] == ["500", "1", "500"]
                streaming = [r for r in api.asked(WATCH) if "sendInitialEvents" in r.query]
                assert len(streaming) == 1
                assert running.count(LISTS, resource="pods", mode="paged") == 2

        case()

    @virtual_time
    async def test_pages_are_turned_and_the_watch_starts_where_they_end(self) -> None:
        api = FakeApi(streaming_lists=False)
        for index in range(7):
            api.create(PODS_PATH, pod(f"p{index}"))
        async with watched(api, PODS, pace=Pace(page_limit=3)) as running:
            assert len(running.informer.store) == 7
            asked = [r.query.get("continue", "") for r in api.asked("GET")]
            assert asked == ["", f"{api.version}.3", f"{api.version}.6"]
            assert all(r.query["fieldSelector"] == SELECTOR for r in api.requests)
            assert api.asked(WATCH)[-1].query["resourceVersion"] == str(api.version)

    @virtual_time
    async def test_an_expired_continue_token_starts_over_as_one_full_list(self) -> None:
        api = FakeApi(streaming_lists=False)
        for index in range(7):
            api.create(PODS_PATH, pod(f"p{index}"))
        first_page = api.answer(Request("GET", PODS_PATH, {"limit": "3"}))

        def page_then_compaction(_request: Request) -> Response:
            api.delete(pod_path("p0"))
            api.compact()
            return first_page

        api.script("GET", PODS_PATH, page_then_compaction)
        async with watched(api, PODS, pace=Pace(page_limit=3)) as running:
            assert now() == 0
            queries = [(r.query.get("limit"), "continue" in r.query) for r in api.asked("GET")]
            assert queries == [("3", False), ("3", True), (None, False)]
            assert set(running.informer.store) == {f"a/p{index}" for index in range(1, 7)}
            assert running.told()[-1] == "delete a/p0"
            assert running.count(LISTS, resource="pods", mode="full") == 1

    @virtual_time
    async def test_a_streaming_list_that_never_completes_gives_way_to_pages(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        api.script(WATCH, PODS_PATH, [], [], [])
        async with watched(api, PODS) as running:
            assert set(running.informer.store) == {"a/p"}
            assert len(api.asked("GET", PODS_PATH)) == 1
            assert running.count(FAILURES, resource="pods", reason="incomplete") == 3

    @virtual_time
    async def test_a_delete_during_a_streaming_list_is_applied(self) -> None:
        api = FakeApi()
        content = api.create(PODS_PATH, pod("p"))
        end = {
            "metadata": {
                "resourceVersion": "200",
                "annotations": {"k8s.io/initial-events-end": "true"},
            }
        }
        api.script(
            WATCH,
            PODS_PATH,
            [
                line({"type": "ADDED", "object": content}),
                line({"type": "DELETED", "object": content}),
                line({"type": "BOOKMARK", "object": end}),
            ],
        )
        async with watched(api, PODS) as running:
            assert running.told() == ["add a/p", "delete a/p"]

    @virtual_time
    async def test_a_list_without_a_version_is_a_failure(self) -> None:
        api = FakeApi(streaming_lists=False)
        api.script("GET", PODS_PATH, lambda _request: status(200, ""))
        async with watched(api, PODS) as running:
            assert running.count(FAILURES, resource="pods", reason="malformed") == 1


class TestRelist:
    """A relist is a diff."""

    @pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
    def test_it_tells_what_changed_adds_and_updates_before_deletes(
        self, *, streaming: bool
    ) -> None:
        @virtual_time
        async def case() -> None:
            api = FakeApi(streaming_lists=streaming)
            for name in ("changed", "gone", "same", "swapped"):
                api.create(PODS_PATH, pod(name))
            async with watched(api, PODS) as running:
                running.calls.clear()
                # While nobody looks, and then history is forgotten.
                api.stalled = True
                api.delete(pod_path("gone"))
                api.update(pod_path("changed"), pod("changed", node="n1"))
                api.delete(pod_path("swapped"))
                api.create(PODS_PATH, pod("swapped"))
                api.create(PODS_PATH, pod("new"))
                await settle()
                api.compact()
                api.stalled = False
                api.drop_watches()
                api.break_watches(OutcomeUnknown("reset"))
                await asyncio.sleep(150)
                assert sorted(running.told()[:-1]) == [
                    "add a/new",
                    "add a/swapped",
                    "delete a/swapped",
                    "update a/changed",
                ]
                assert running.told()[-1] == "delete a/gone"
                assert running.informer.store == running.copy

        case()

    @virtual_time
    async def test_nothing_is_told_when_nothing_changed(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            await running.informer.relist()
            assert running.told() == ["add a/p"]

    @virtual_time
    async def test_a_list_that_fails_half_way_deletes_nothing(self) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("old"))
        async with watched(api, PODS) as running:
            added = line({"type": "ADDED", "object": api.create(PODS_PATH, pod("new"))})
            await settle()
            api.delete(pod_path("new"))
            await settle()
            running.calls.clear()
            api.script(WATCH, PODS_PATH, [added, OutcomeUnknown("reset")])
            barrier = asyncio.create_task(running.informer.relist())
            await settle()
            # It was shown, so it is taken; what was not shown yet stays.
            assert running.told() == ["add a/new"]
            assert set(running.informer.store) == {"a/old", "a/new"}
            await barrier
            assert running.told() == ["add a/new", "delete a/new"]


class TestWatching:
    """Watches resume where they ended."""

    @virtual_time
    async def test_a_watch_that_ends_as_agreed_is_resumed_at_once_without_a_list(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.create(PODS_PATH, pod("p"))
            await asyncio.sleep(2)
            api.drop_watches()
            await settle()
            api.create(PODS_PATH, pod("q"))
            await settle()
            assert now() == 2
            first, second = api.asked(WATCH)
            assert "sendInitialEvents" not in second.query
            assert int(second.query["resourceVersion"]) == api.version - 1
            assert second.query["allowWatchBookmarks"] == "true"
            assert set(running.informer.store) == {"a/p", "a/q"}
            assert running.count(LISTS, resource="pods", mode="streaming") == 1
            assert first is not second

    @virtual_time
    async def test_it_resumes_from_a_bookmark_after_compaction(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.create(NODES_PATH, node("n1"))
            api.compact()
            await asyncio.sleep(90)
            api.drop_watches()
            await settle()
            assert running.count(LISTS, resource="pods", mode="streaming") == 1
            assert api.asked(WATCH)[-1].query["resourceVersion"] == str(api.version)

    @virtual_time
    async def test_a_broken_watch_is_resumed_after_a_pause(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.break_watches(OutcomeUnknown("connection reset"))
            await settle()
            assert len(api.asked(WATCH)) == 1
            await asyncio.sleep(2)
            assert len(api.asked(WATCH)) == 2
            assert "sendInitialEvents" not in api.asked(WATCH)[-1].query
            assert running.count(FAILURES, resource="pods", reason="connection_lost") == 1

    @pytest.mark.parametrize("as_event", [True, False], ids=["ERROR event", "HTTP status"])
    def test_gone_leads_to_a_list_at_once(self, *, as_event: bool) -> None:
        @virtual_time
        async def case() -> None:
            api = FakeApi()
            api.gone_as_event = as_event
            api.create(PODS_PATH, pod("p"))
            async with watched(api, PODS) as running:
                api.stalled = True
                api.delete(pod_path("p"))
                await settle()
                api.compact()
                api.stalled = False
                api.break_watches(OutcomeUnknown("reset"))
                await asyncio.sleep(150)
                assert running.told() == ["add a/p", "delete a/p"]
                assert running.count(FAILURES, resource="pods", reason="410") == 1
                assert running.count(LISTS, resource="pods", mode="streaming") == 2

        case()

    @virtual_time
    async def test_a_server_that_keeps_saying_gone_is_given_time(self) -> None:
        api = FakeApi()
        async with watched(api, PODS):
            api.script(WATCH, PODS_PATH, *([[line(gone_event())]] * 1000))
            api.drop_watches()
            await asyncio.sleep(60)
            assert len(api.asked(WATCH)) < 12

    @virtual_time
    async def test_an_error_event_of_a_failing_server_is_waited_out_and_resumed(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.watches[0].feed(error_event(500, "InternalError"))
            await asyncio.sleep(2)
            assert "sendInitialEvents" not in api.asked(WATCH)[-1].query
            assert running.count(FAILURES, resource="pods", reason="500") == 1

    @pytest.mark.parametrize(
        "answer",
        [
            status(400, "BadRequest", "invalid resource version"),
            status(504, "Timeout", "Too large resource version: 9, current: 5"),
        ],
        ids=["refused version", "version from the future"],
    )
    def test_a_version_the_server_does_not_take_leads_to_a_list(self, answer: Response) -> None:
        @virtual_time
        async def case() -> None:
            api = FakeApi()
            async with watched(api, PODS) as running:
                await asyncio.sleep(2)
                api.script(WATCH, PODS_PATH, answer)
                api.drop_watches()
                await asyncio.sleep(2)
                assert running.count(LISTS, resource="pods", mode="streaming") == 2

        case()

    @virtual_time
    async def test_a_silent_watch_is_given_up_and_nothing_is_missed(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.stalled = True
            api.create(PODS_PATH, pod("p"))
            await asyncio.sleep(99)
            assert running.told() == []
            api.stalled = False
            await asyncio.sleep(3)
            assert running.told() == ["add a/p"]
            assert running.count(FAILURES, resource="pods", reason="stalled") == 1

    @virtual_time
    async def test_bookmarks_keep_a_quiet_watch_alive(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            await asyncio.sleep(299)
            assert len(api.asked(WATCH)) == 1
            assert running.count(FAILURES, resource="pods", reason="stalled") == 0

    @virtual_time
    async def test_a_watch_that_ends_at_once_counts_as_failed(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.script(WATCH, PODS_PATH, *([[]] * 1000))
            api.drop_watches()
            await asyncio.sleep(60)
            assert 3 < len(api.asked(WATCH)) < 12
            assert running.count(FAILURES, resource="pods", reason="short") > 2

    @virtual_time
    async def test_what_is_not_json_ends_the_watch_and_is_resumed(self) -> None:
        api = FakeApi()
        async with watched(api, PODS) as running:
            api.watches[0].feed(b"<html>bad gateway</html>\n")
            api.create(PODS_PATH, pod("p"))
            await asyncio.sleep(2)
            assert running.told() == ["add a/p"]
            assert running.count(FAILURES, resource="pods", reason="malformed") == 1

    @virtual_time
    async def test_events_are_put_together_from_any_chunks(self) -> None:
        api = FakeApi()
        api.chunker = lambda data: (data[i : i + 1] for i in range(len(data)))
        api.create(PODS_PATH, pod("p"))
        async with watched(api, PODS) as running:
            api.create(PODS_PATH, pod("q"))
            await settle(5000)
            assert running.told() == ["add a/p", "add a/q"]


class TestPatience:
    """Failures are met with growing, jittered delays and few words."""

    @virtual_time
    async def test_delays_start_over_after_a_good_stretch(self) -> None:
        api = FakeApi()
        async with watched(api, PODS):
            api.refusing = True
            api.break_watches(OutcomeUnknown("reset"))
            await asyncio.sleep(120)
            api.refusing = False
            await asyncio.sleep(120)
            before = len(api.asked(WATCH))
            api.break_watches(OutcomeUnknown("reset"))
            await asyncio.sleep(1.7)
            assert len(api.asked(WATCH)) == before + 1

    @virtual_time
    async def test_retry_after_is_honoured(self) -> None:
        api = FakeApi()
        api.script(WATCH, PODS_PATH, status(429, "TooManyRequests", "slow", Retry_After="40"))
        async with watched(api, PODS):
            assert now() == 40

    @virtual_time
    async def test_a_nonsensical_retry_after_is_bounded(self) -> None:
        api = FakeApi()
        api.script(WATCH, PODS_PATH, status(429, "TooManyRequests", Retry_After="86400"))
        async with watched(api, PODS):
            assert now() == DEFAULT_PACE.retry_after_maximum_seconds

    @virtual_time
    async def test_a_server_that_is_down_at_the_start_is_waited_for_with_few_words(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        api = FakeApi()
        api.refusing = True
        async with watched(api, PODS, wait=False) as running:
            await asyncio.sleep(150)
            said = [r for r in caplog.records if "cannot be reached" in r.message]
            assert 2 <= len(said) <= 3
            assert all(r.exc_info is None for r in caplog.records)
            assert said[0].__dict__["fields"]["error"] == "connection refused"
            api.refusing = False
            await running.informer.synced.wait()
            assert caplog.records[-1].message == "list and watch work again"

    @pytest.mark.parametrize("streaming", [True, False], ids=["watch", "list"])
    def test_a_refusal_by_rbac_names_verb_resource_and_user(
        self, caplog: pytest.LogCaptureFixture, *, streaming: bool
    ) -> None:
        verb = "watch" if streaming else "list"
        message = (
            f'pods is forbidden: User "system:serviceaccount:kube-system:k8s-scheduler" '
            f'cannot {verb} resource "pods" in API group "" at the cluster scope'
        )

        @virtual_time
        async def case() -> None:
            api = FakeApi(streaming_lists=streaming)
            method = WATCH if streaming else "GET"
            api.script(method, PODS_PATH, *([status(403, "Forbidden", message)] * 4))
            async with watched(api, PODS) as running:
                assert running.count(FAILURES, resource="pods", reason="403") == 4

        case()
        (said,) = [r for r in caplog.records if "missing permission" in r.message]
        assert said.message == f"missing permission: {verb} pods"
        fields = said.__dict__["fields"]
        assert fields["verb"] == verb
        assert fields["resource"] == "pods"
        assert fields["user"] == "system:serviceaccount:kube-system:k8s-scheduler"

    @virtual_time
    async def test_a_mistake_of_our_own_is_not_retried(self) -> None:
        api = FakeApi()
        api.script(WATCH, NODES_PATH, ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            async with watched(api, NODES, wait=False):
                await asyncio.sleep(1)

    @virtual_time
    async def test_a_failing_list_in_pages_is_retried_with_pauses(self) -> None:
        api = FakeApi(streaming_lists=False)
        failing: list[Answer] = [NotSent("refused"), status(500, "Internal"), status(400, "Bad")]
        api.script("GET", PODS_PATH, *failing)
        async with watched(api, PODS):
            assert len(api.asked("GET")) == 4
            assert now() > 3 * 0.8
