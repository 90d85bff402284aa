"""Whoever brings other surroundings along has a daemon that never looks past them."""

import asyncio
import random

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.environment import Environment
from k8s_scheduler.app.wiring import wire
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.watch.reflector_limits import Pace
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import FakeClock, virtual_time


def around(*, sleep=None, **more) -> Environment:
    clock = FakeClock()
    return Environment(
        clock=clock,
        boot_clock=clock,
        wall_clock_ns=lambda: 7_000_000_000,
        cpu_clock=lambda: 0.0,
        perf=lambda: 0.0,
        sleep=sleep or clock.sleep,
        rng=random.Random(1),
        hostname="here",
        instance="me",
        pace=Pace(page_limit=3),
        warm_up=lambda _setup: None,
        **more,
    )


def options() -> RunOptions:
    return RunOptions(configuration=default_configuration(known_plugins()))


async def test_clocks_sleep_and_chance_reach_every_part_that_waits():
    mine = around()
    graph = wire(options(), FakeApi(), Metrics(), surroundings=mine)
    writers = (graph.dispatcher, graph.dispatcher._conditions, graph.recorder._writer, graph.writes)
    for part in (*writers, graph.reader, graph.rejections):
        assert part._caller.timing == mine.timing()
    assert mine.timing() == Timing(
        clock=mine.clock,
        wall_clock_ns=mine.wall_clock_ns,
        sleep=mine.sleep,
        uniform=mine.rng.random,
    )
    assert graph.elector._clock is mine.boot_clock
    assert graph.dispatcher._clock is mine.clock
    assert graph.recorder._wall_clock_ns is mine.wall_clock_ns
    assert graph.pump._clock() == 7.0
    for informer in graph.informers():
        assert informer._reflector._parts.pace == mine.pace
        assert informer._reflector._parts.pace.rng is mine.rng


async def test_the_identity_is_made_of_the_hosts_name_and_the_instance():
    graph = wire(options(), FakeApi(), Metrics(), surroundings=around())
    assert graph.elector._config.identity == "here_me"


async def test_two_processes_on_one_host_differ():
    one, other = Environment(), Environment()
    assert one.hostname == other.hostname
    assert one.instance != other.instance


@virtual_time
async def test_the_daemon_asks_its_surroundings_to_watch_it_and_to_keep_its_memory():
    asked = []
    remembered = asyncio.Event()

    async def watchdog(_hang_seconds):
        asked.append("watchdog")
        await asyncio.Event().wait()

    async def sentinel(work, kubeconfig):
        asked.append(("sentinel", work, kubeconfig))
        await asyncio.Event().wait()

    mine = around(
        sleep=asyncio.sleep, keep_memory=remembered.set, watchdog=watchdog, sentinel=sentinel
    )
    api = FakeApi()
    graph = wire(options(), api, Metrics(), surroundings=mine)
    stop = asyncio.Event()
    running = asyncio.create_task(Daemon(graph, options(), surroundings=mine).run(stop))
    await remembered.wait()
    stop.set()
    assert await running == 0
    assert asked == ["watchdog", ("sentinel", graph.sentinel.run, "")]
    assert "here_me" in str(api.asked("POST", "*/leases")[0].body)
