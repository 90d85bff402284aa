"""How a shadow ends: what it leaves, and what its exit code says."""

import asyncio
import json
import os
import sys

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.shadow.options import ShadowOptions
from k8s_scheduler.app.shadow.process import Shadow, wire_shadow
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.shapes.shape_cache import DEFAULT_BYTES
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.simulate.shadowing.following import Follower
from tests.fakes.api import FakeApi
from tests.inside import inside


def shadow_of(api, **options):
    configuration = default_configuration(known_plugins())
    asked = ShadowOptions(
        run=RunOptions(configuration=configuration), following=configuration.profiles, **options
    )
    return Shadow(wire_shadow(asked, api, Metrics()), asked)


@pytest.fixture(autouse=True)
def _unfrozen(monkeypatch):
    """Let what other tests leave be collected."""
    monkeypatch.setattr("gc.freeze", lambda: None)


@pytest.fixture
def unreachable():
    api = FakeApi()
    api.refusing = True
    return api


async def follow_and_stop(**options):
    """Return the exit code of a shadow that is stopped once it follows."""
    shadow, stop = shadow_of(FakeApi(), **options), asyncio.Event()
    follower = shadow._graph.follower
    start = follower.start

    def start_and_stop():
        start()
        stop.set()

    follower.start = start_and_stop
    return await shadow.run(stop)


async def test_one_that_followed_leaves_a_table_and_a_report(tmp_path, capfd):
    out = tmp_path / "report.json"
    assert await follow_and_stop(out=out) == ExitCode.OK
    told = capfd.readouterr()
    assert "default-scheduler" in told.out
    assert told.err == ""
    assert "default-scheduler" in json.loads(out.read_text())["profiles"]


async def test_short_memory_makes_the_caches_of_its_core_smaller(monkeypatch):
    told = []
    monkeypatch.setattr(Follower, "limit_caches", lambda _, size, now: told.append(size))
    configuration = default_configuration(known_plugins())
    options = RunOptions(configuration=configuration, memory_limit_bytes=1)
    asked = ShadowOptions(run=options, following=configuration.profiles)
    graph = wire_shadow(asked, FakeApi(), Metrics())
    graph.memory.look()
    assert told == [DEFAULT_BYTES // 2]


async def test_a_limit_of_caches_reaches_the_core():
    shadow = shadow_of(FakeApi())
    core = shadow._graph.follower._core
    shadow._graph.follower.limit_caches(12345, now=1.0)
    assert inside(core).shapes._max_bytes == 12345


async def test_one_that_never_followed_does_not_end_well(unreachable, capfd):
    assert await shadow_of(unreachable, for_seconds=0.0).run(asyncio.Event()) == ExitCode.FAILURE
    said = capfd.readouterr().err
    assert said.startswith("nothing was followed: not listed in time: nodes, ")
    assert said.endswith("pods\n")


async def test_one_that_is_told_to_stop_before_it_follows_says_so_and_ends_well(unreachable, capfd):
    stop = asyncio.Event()
    stop.set()
    assert await shadow_of(unreachable).run(stop) == ExitCode.OK
    assert "nothing was followed" in capfd.readouterr().err


async def test_a_report_is_kept_also_if_nobody_reads_the_table(tmp_path, capfd, monkeypatch):
    out = tmp_path / "report.json"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert await follow_and_stop(out=out) == ExitCode.USAGE
        # As the interpreter does in the end: nothing may be left that fails.
        unread.flush()
    assert capfd.readouterr().err == "standard output: Broken pipe\n"
    assert "default-scheduler" in json.loads(out.read_text())["profiles"]


async def test_a_report_that_cannot_be_kept_is_told_and_the_table_is_printed(tmp_path, capfd):
    out = tmp_path / "gone" / "report.json"
    assert await follow_and_stop(out=out) == ExitCode.USAGE
    told = capfd.readouterr()
    assert told.err == f"{out}: No such file or directory\n"
    assert "default-scheduler" in told.out
