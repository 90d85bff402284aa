"""A core that fails on a change is not used any further: a new one takes its place."""

import asyncio
from dataclasses import replace
from unittest.mock import patch

import pytest

from k8s_scheduler.api.config.extras import BatchSettings
from k8s_scheduler.api.config.limits import PodLimits
from k8s_scheduler.app.driver.marks import PodMark, encode
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.amounts.amounts import Amounts
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from k8s_scheduler.core.state.pods.pod_index import PodIndex
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.fakes.transport import status
from tests.inside import inside
from tests.unit.app.daemon_scene import NODES, PODS, daemon, node, nodes_of, pod

POISON = "poison"


def planted(owner, name, *, times=10_000, after=True):
    """Let a function of the core fail on what is called poison, half way through its work."""
    original, left = getattr(owner, name), [times]

    def fail(self, *args, **kwargs):
        result = original(self, *args, **kwargs) if after else None
        if left[0] and POISON in repr(args):
            left[0] -= 1
            raise ZeroDivisionError("planted")
        return result if after else original(self, *args, **kwargs)

    return patch.object(owner, name, fail)


def count(graph, name):
    return getattr(graph.rebuilding, name)


POINTS = [
    pytest.param(PodIndex, "add", pod(POISON, node_name="n1"), id="a bound pod, half counted"),
    pytest.param(Cache, "put_bound", pod(POISON, node_name="n1"), id="a bound pod, counted"),
    pytest.param(SchedulingQueue, "add", pod(POISON), id="a pod that waits"),
    pytest.param(NodeTable, "put_node", node(POISON), id="a node"),
]


@pytest.mark.parametrize(("owner", "name", "poison"), POINTS)
def test_what_it_fails_on_is_left_out_and_the_others_go_on(owner, name, poison, caplog):
    @virtual_time
    async def case():
        api = FakeApi()
        api.create(NODES, node("n1"))
        async with daemon(api) as (graph, running):
            await asyncio.sleep(1)
            first = graph.pump.core
            with planted(owner, name):
                api.create(NODES if "allocatable" in poison["status"] else PODS, poison)
                api.create(PODS, pod("good"))
                await asyncio.sleep(30)
                assert not running.done()
                assert graph.pump.core is not first
                assert graph.pump.is_whole
                assert nodes_of(api)["good"] == "n1"
                assert sum(graph.pump.left_out.counts().values()) == 1
                # Nothing of the failure is left: what is counted is what there is.
                await graph.check.compare()
                rows = graph.pump.core.holdings.row_count
                assert graph.pump.recount(0, rows) == 0

    case()
    assert "The core has failed on a change" in caplog.text


@virtual_time
async def test_a_bound_pod_that_it_fails_on_keeps_its_room():
    api = FakeApi()
    api.create(NODES, node("n1", cpu="4"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        labelled = pod(POISON, cpu="3", node_name="n1", labels={"app": POISON})
        original = PodIndex.add

        def fail(self, placed):
            original(self, placed)
            if placed.pod.metadata.labels:
                raise ZeroDivisionError("planted")

        with patch.object(PodIndex, "add", fail):
            api.create(PODS, labelled)
            await asyncio.sleep(20)
            for name in ("one", "two"):
                api.create(PODS, pod(name, cpu="1"))
            await asyncio.sleep(20)
            assert sorted(map(bool, nodes_of(api).values())) == [False, True, True]
            assert graph.pump.left_out.counts() == {"pods": 1}


@virtual_time
async def test_one_that_it_fails_on_once_is_taken_in_with_the_new_core():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        with planted(Amounts, "take", times=0), planted(SchedulingQueue, "add", times=1):
            api.create(PODS, pod(POISON))
            await asyncio.sleep(10)
        assert nodes_of(api) == {POISON: "n1"}
        assert graph.pump.left_out.counts() == {}


@virtual_time
async def test_binds_under_way_are_ended_and_counted_before_anything_is_decided_anew():
    api = FakeApi()
    api.create(NODES, node("n1", cpu="2"))
    async with daemon(api) as (_, _):
        await asyncio.sleep(1)
        with planted(SchedulingQueue, "add"):
            for name in ("one", "two"):
                api.create(PODS, pod(name))
            api.create(PODS, pod(POISON))
            api.create(PODS, pod("three"))
            await asyncio.sleep(40)
        placed = [name for name, on in nodes_of(api).items() if on]
        assert sorted(placed) == ["one", "two"]
        assert len(api.asked("POST", "*/binding")) == 2


@virtual_time
async def test_a_new_core_is_told_again_which_namespaces_are_held_back():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        first = graph.pump.core
        graph.pump.hold_back(("a",))
        with planted(SchedulingQueue, "add"):
            api.create(PODS, pod(POISON))
            await asyncio.sleep(10)
            api.create(PODS, pod("held"))
            await asyncio.sleep(10)
            assert graph.pump.core is not first
            assert graph.pump.is_whole
            assert nodes_of(api)["held"] == ""
        graph.pump.hold_back(())
        await asyncio.sleep(10)
        assert nodes_of(api)["held"] == "n1"


@virtual_time
async def test_namespaces_held_back_while_the_core_is_broken_are_told_to_the_new_one():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        graph.pump.broken.set()
        graph.pump.hold_back(("a",))
        await asyncio.sleep(10)
        api.create(PODS, pod("held"))
        await asyncio.sleep(10)
        assert graph.pump.is_whole
        assert nodes_of(api)["held"] == ""


@virtual_time
async def test_pods_in_quarantine_are_so_with_the_new_core_too():
    api = FakeApi()
    async with daemon(api, elect=True) as (graph, _):
        await asyncio.sleep(1)
        api.create(PODS, pod("deadly", uid="deadly"))
        await asyncio.sleep(1)
        left_behind = encode({"deadly": PodMark("a/deadly", 3, "another")})
        graph.pump.quarantine(graph.marks.take_over(left_behind))
        first = graph.pump.core
        with planted(SchedulingQueue, "add"):
            api.create(PODS, pod(POISON))
            await asyncio.sleep(10)
        assert graph.pump.core is not first
        assert graph.pump.is_whole
        assert graph.pump.core.holdings.quarantined == ("deadly",)
        assert graph.marks.deaths == {"deadly": 4}


@virtual_time
async def test_a_new_core_is_made_from_what_is_in_force_and_tells_the_marks_of_its_decisions():
    api = FakeApi()
    async with daemon(api, elect=True) as (graph, _):
        await asyncio.sleep(1)
        limits = PodLimits(affinity_terms=7)
        setup = replace(graph.pump.core.setup, pod_limits=limits, max_victims_per_minute=5)
        graph.pump.reconfigure(setup, BatchSettings())
        with planted(SchedulingQueue, "add"):
            api.create(PODS, pod(POISON))
            await asyncio.sleep(10)
        setup = graph.pump.core.setup
        assert (setup.pod_limits, setup.max_victims_per_minute) == (limits, 5)
        begun = []
        with patch.object(graph.marks, "_clock", lambda: begun.append(1) or 0.0):
            api.create(NODES, node("n1"))
            api.create(PODS, pod("good"))
            await asyncio.sleep(5)
        assert nodes_of(api)["good"] == "n1"
        assert begun


@virtual_time
async def test_gauges_count_pods_that_wait_once_although_two_cores_were_told_of_them():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api) as (graph, _):
        await asyncio.sleep(1)
        metrics = inside(graph.pump.core).state.meter.metrics
        by_plugin = metrics.unschedulable_pods.labels("NodeResourcesFit", "default-scheduler")
        over = metrics.pods_over_limit.labels("affinityTerms", "pending")
        api.create(PODS, pod("large", cpu="99"))
        await asyncio.sleep(2)
        assert by_plugin.shown() == 1
        # Past a limit that nothing is past any more.
        over.set(1)
        with planted(SchedulingQueue, "add"):
            api.create(PODS, pod(POISON))
            await asyncio.sleep(30)
        assert graph.pump.is_whole
        assert by_plugin.shown() == 1
        assert over.shown() == 0


@virtual_time
async def test_a_core_that_fails_on_everything_ends_the_process():
    api = FakeApi()
    async with daemon(api) as (_, running):
        await asyncio.sleep(1)

        def fail(self, *args):
            raise ZeroDivisionError("planted")

        with patch.object(NodeTable, "put_node", fail):
            for index in range(30):
                api.create(NODES, node(f"n{index}"))
            await asyncio.sleep(60)
            assert running.done()
            assert running.result() == 1


@virtual_time
async def test_a_bind_in_doubt_comes_to_its_end_before_anything_is_decided_anew():
    """No answer of a bind is lost to a core that has failed, however long it takes."""
    api = FakeApi()
    api.create(NODES, node("n1", cpu="4"))
    async with daemon(api) as (graph, running):
        await asyncio.sleep(1)
        for _ in range(8):
            api.script(
                "POST", "/api/v1/namespaces/a/pods/doubtful/binding", status(500, "InternalError")
            )
        api.create(PODS, pod("doubtful", cpu="3"))
        await asyncio.sleep(5)
        with planted(SchedulingQueue, "add"):
            api.create(PODS, pod(POISON))
            api.create(PODS, pod("next", cpu="3"))
            await asyncio.sleep(60)
            # It may still land: neither is its room given away, nor does the process end.
            assert not running.done()
            assert not graph.pump.is_whole
            assert set(nodes_of(api).values()) == {""}
            await asyncio.sleep(240)
        assert not running.done()
        assert graph.pump.is_whole
        found = nodes_of(api)
        assert sorted([found["doubtful"], found["next"]]) == ["", "n1"]
