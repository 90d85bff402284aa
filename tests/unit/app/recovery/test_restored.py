"""A restored storage, seen by a whole daemon: what was undone is done anew, and nothing twice."""

import asyncio

from k8s_scheduler.kube.errors import OutcomeUnknown
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.fakes.transport import Lost
from tests.unit.app.daemon_scene import NODES, PODS, daemon, node, nodes_of, pod


def bindings(api):
    return [request.path.split("/")[-2] for request in api.asked("POST", "*/binding")]


@virtual_time
async def test_a_binding_that_was_undone_is_made_anew_where_there_is_room_now():
    api = FakeApi()
    api.create(NODES, node("n1", cpu="1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        api.create(PODS, pod("p"))
        saved = api.snapshot()
        await asyncio.sleep(2)
        assert nodes_of(api) == {"p": "n1"}
        api.create(PODS, pod("ghost"))
        await asyncio.sleep(1)
        api.restore(saved)
        # Its node was smaller then, and another is there now.
        api.delete("/api/v1/nodes/n1")
        api.create(NODES, node("n2", cpu="2"))
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(10)
        assert nodes_of(api) == {"p": "n2"}
        # The ghost may have been tried once before the restore was noticed; it is refused then.
        assert [name for name in bindings(api) if name != "ghost"] == ["p", "p"]
        assert set(graph.pods.store) == {"a/p"}
        assert graph.pump.recount(0, graph.pump.core.holdings.row_count) == 0


@virtual_time
async def test_the_lease_tells_of_it_where_every_watch_is_silent():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api, elect=True) as (graph, _):
        await asyncio.sleep(5)
        saved = api.snapshot()
        for index in range(5):
            api.create(PODS, pod(f"ghost{index}"))
        await asyncio.sleep(5)
        api.restore(saved)
        await asyncio.sleep(4)
        assert set(graph.pods.store) == set()
        api.create(PODS, pod("p"))
        await asyncio.sleep(1)
        assert nodes_of(api) == {"p": "n1"}


@virtual_time
async def test_nothing_is_decided_between_the_notice_and_the_lists():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        saved = api.snapshot()
        api.create(PODS, pod("ghost", node_name="n1"))
        await asyncio.sleep(1)
        api.restore(saved)
        api.send_bookmarks()
        api.refusing = True
        await asyncio.sleep(3)
        assert graph.pump.is_set_back
        api.refusing = False
        api.create(PODS, pod("p"))
        await asyncio.sleep(8)
        assert not graph.pump.is_set_back
        assert nodes_of(api) == {"p": "n1"}


@virtual_time
async def test_versions_that_have_overtaken_ours_do_not_hide_it():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        saved = api.snapshot()
        api.create(PODS, pod("ghost"))
        await asyncio.sleep(1)
        api.refusing = True
        api.break_watches(OutcomeUnknown("reset"))
        api.restore(saved)
        api._compacted_version = 0
        for index in range(20):
            api.create(PODS, pod(f"p{index}", cpu="100m"))
        await asyncio.sleep(5)
        api.refusing = False
        await asyncio.sleep(15)
        assert set(graph.pods.store) == set(api.objects(PODS))
        assert all(nodes_of(api).values())


@virtual_time
async def test_a_binding_of_which_a_request_may_yet_land_is_not_made_elsewhere_meanwhile():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        api.create(PODS, pod("p"))
        saved = api.snapshot()
        # One of its two requests may be on its way still.
        api.script("POST", "*/p/binding", Lost(executed=False))
        await asyncio.sleep(3)
        assert bindings(api) == ["p", "p"]
        assert nodes_of(api) == {"p": "n1"}
        api.create(PODS, pod("ghost"))
        await asyncio.sleep(1)
        api.restore(saved)
        api.update("/api/v1/nodes/n1", {**node("n1"), "spec": {"unschedulable": True}})
        api.create(NODES, node("n2"))
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(100)
        assert nodes_of(api) == {"p": ""}
        assert graph.pump.core.holdings.is_bound(graph.pods.store["a/p"].metadata.uid)
        await asyncio.sleep(30)
        assert nodes_of(api) == {"p": "n2"}
        assert graph.pump.recount(0, graph.pump.core.holdings.row_count) == 0
