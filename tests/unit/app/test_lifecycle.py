"""Who leads decides, after having caught up; who loses the lease ends."""

import asyncio

import pytest

from k8s_scheduler.app.process.exit_codes import ExitCode
from tests.unit.app.lifecycle_scene import Scene


async def test_nodes_are_read_before_pods_and_both_before_anything_is_decided():
    scene = Scene(elect=False)
    await scene.turn()
    assert scene.log == ["nodes start"]
    scene.nodes.synced.set()
    await scene.turn()
    assert scene.log == ["nodes start", "pods start"]
    scene.pods.synced.set()
    await scene.turn()
    assert scene.log[-1] == "allow"
    scene.stop.set()
    assert await scene.running == ExitCode.OK


async def test_other_kinds_are_read_beside_nodes_and_before_pods():
    scene = Scene(elect=False, others=("claims", "volumes"))
    await scene.turn()
    assert scene.log == ["nodes start", "claims start", "volumes start"]
    scene.nodes.synced.set()
    scene.others[1].synced.set()
    await scene.turn()
    assert len(scene.log) == 3
    scene.others[0].synced.set()
    await scene.turn()
    assert scene.log[3:] == ["pods start"]
    scene.pods.synced.set()
    await scene.turn()
    assert scene.log[-1] == "allow"
    scene.stop.set()
    assert await scene.running == ExitCode.OK


async def test_a_kind_that_is_dropped_before_it_was_read_is_waited_for_no_longer():
    scene = Scene(others=("claims", "volumes"))
    claims, volumes = scene.others
    scene.elector.acquired.set()
    await scene.turn()
    scene.nodes.synced.set()
    await scene.turn()
    await scene.drop(claims)
    # Who is dropped is not taken for one that is complete: the other one is still waited for.
    assert "pods start" not in scene.log
    assert not claims.synced.is_set()
    volumes.synced.set()
    await scene.turn()
    assert scene.log[-1] == "pods start"
    for informer in (scene.nodes, scene.pods):
        informer.caught_up.set()
    scene.pods.synced.set()
    await scene.turn()
    assert scene.log[-1] == "allow"
    assert "claims" not in scene.daemon._tasks
    scene.stop.set()
    assert await scene.running == ExitCode.OK


async def test_how_much_was_read_of_each_kind_is_said(caplog):
    caplog.set_level("INFO")
    scene = Scene(elect=False, others=("claims",))
    scene.nodes.store = {"n": 1}
    scene.others[0].store = {"a": 1, "b": 2}
    await scene.sync()
    (said,) = [r for r in caplog.records if r.message == "Caches are synced, scheduling"]
    assert said.fields == {"nodes": 1, "claims": 2, "pods": 0}
    scene.stop.set()
    await scene.running


async def test_a_new_leader_catches_up_with_what_schedulers_write_and_with_nothing_else():
    scene = Scene(others=("claims",))
    await scene.sync()
    scene.elector.acquired.set()
    await scene.turn()
    assert sorted(line for line in scene.log if "catch up" in line) == [
        "nodes catch up",
        "pods catch up",
    ]
    scene.stop.set()
    await scene.running


async def test_a_hung_loop_is_watched_for_and_the_collector_leaves_the_caches_alone(monkeypatch):
    frozen = []
    monkeypatch.setattr("gc.freeze", lambda: frozen.append(True))
    scene = Scene(elect=False)
    await scene.turn()
    assert "watchdog" in scene.daemon._tasks
    assert not frozen
    await scene.sync()
    assert frozen
    scene.stop.set()
    await scene.running


async def test_a_standby_fills_its_caches_and_a_new_leader_catches_up_before_it_decides():
    scene = Scene()
    await scene.sync()
    assert scene.log == ["nodes start", "pods start"]
    scene.elector.acquired.set()
    await scene.turn()
    assert scene.log[2:] == ["nodes catch up", "pods catch up"]
    scene.nodes.caught_up.set()
    await scene.turn()
    assert "allow" not in scene.log
    scene.pods.caught_up.set()
    await scene.turn()
    assert scene.log[-1] == "allow"
    scene.stop.set()
    await scene.running


async def test_a_standby_has_the_collector_leave_its_caches_alone_before_it_leads(monkeypatch):
    frozen = []
    monkeypatch.setattr("gc.freeze", lambda: frozen.append(True))
    scene = Scene()
    await scene.sync()
    assert frozen
    assert "allow" not in scene.log
    scene.stop.set()
    await scene.running


async def test_caches_may_wait_for_leadership():
    scene = Scene(delay=True)
    await scene.turn()
    assert scene.log == []
    scene.elector.acquired.set()
    await scene.turn()
    assert scene.log == ["nodes start"]
    scene.stop.set()
    await scene.running


async def test_stopping_drains_while_the_lease_is_held_and_then_gives_it_back():
    scene = Scene()
    await scene.lead()
    assert scene.log[-1] == "allow"
    scene.stop.set()
    assert await scene.running == ExitCode.OK
    assert scene.log[scene.log.index("allow") + 1 :] == [
        "forbid",
        "dispatcher stop accepting",
        "dispatcher drain",
        "writes drain",
        "last good drain",
        "writes drain",
        "release",
        "recorder drain",
        "forbid",
    ]


async def test_a_standby_that_stops_has_nothing_to_give_back():
    scene = Scene()
    await scene.sync()
    scene.stop.set()
    assert await scene.running == ExitCode.OK
    assert "release" not in scene.log


async def test_a_standby_writes_events_as_well_and_to_the_last():
    # Of what it refuses, each replica tells itself.
    scene = Scene(delay=True)
    await scene.turn()
    assert scene.graph.recorder.runs
    scene.stop.set()
    assert await scene.running == ExitCode.OK
    assert "recorder drain" in scene.log


async def test_a_drain_that_leaves_binds_in_doubt_says_so():
    scene = Scene(elect=False, left=2)
    await scene.sync()
    scene.stop.set()
    assert await scene.running == ExitCode.DRAIN_TIMED_OUT


async def test_a_lease_under_which_a_write_may_still_arrive_is_left_to_run_out():
    scene = Scene(left=2)
    await scene.lead()
    scene.stop.set()
    assert await scene.running == ExitCode.DRAIN_TIMED_OUT
    assert "release" not in scene.log
    assert not scene.elector.is_leading


async def test_a_lease_under_which_the_last_good_configuration_may_arrive_is_left_to_run_out():
    scene = Scene(unkept=1)
    scene.elector.acquired.set()
    await scene.sync()
    scene.stop.set()
    assert await scene.running == ExitCode.DRAIN_TIMED_OUT
    assert "release" not in scene.log


async def test_a_drain_that_leaves_evictions_or_volumes_unwritten_says_so(caplog):
    scene = Scene(elect=False, unwritten=3)
    await scene.sync()
    scene.stop.set()
    assert await scene.running == ExitCode.DRAIN_TIMED_OUT
    [record] = [r for r in caplog.records if "have not come to their end" in r.message]
    assert record.fields == {"writes": 3}


async def test_bindings_and_other_writes_are_drained_in_the_same_time():
    scene = Scene(elect=False)
    graph = scene.daemon._graph
    meet, given = asyncio.Event(), []

    async def first(seconds):
        given.append(seconds)
        await meet.wait()
        return 0

    async def second(seconds):
        given.append(seconds)
        meet.set()
        return 0

    graph.dispatcher.drain, graph.writes.drain = first, second
    await scene.sync()
    scene.stop.set()
    assert await scene.running == ExitCode.OK
    assert given[0] == given[1]


async def test_what_comes_to_be_written_while_binds_end_is_under_the_lease_too():
    scene = Scene()
    scene.elector.acquired.set()
    await scene.sync()

    async def while_a_write_comes(_seconds):
        await scene.turn()
        scene.graph.writes.left = 1
        return 0

    scene.graph.dispatcher.drain = while_a_write_comes
    scene.stop.set()
    assert await scene.running == ExitCode.DRAIN_TIMED_OUT
    assert "release" not in scene.log


async def test_what_comes_to_be_written_meanwhile_has_what_is_left_of_the_time():
    scene = Scene(elect=False)
    given = []

    async def note(seconds):
        given.append(seconds)
        return 0

    scene.graph.writes.drain = note
    await scene.sync()
    scene.stop.set()
    assert await scene.running == ExitCode.OK
    assert 0 < given[1] <= given[0]


async def test_a_lost_lease_ends_the_process_without_a_drain():
    scene = Scene()
    scene.elector.acquired.set()
    await scene.sync()
    scene.elector.lost.set()
    assert await scene.running == ExitCode.FAILURE
    assert "dispatcher drain" not in scene.log
    assert "allow" not in scene.log


async def test_a_lease_lost_while_deciding_stops_the_decisions_first():
    scene = Scene()
    await scene.lead()
    scene.elector.lost.set()
    assert await scene.running == ExitCode.FAILURE
    assert scene.log[-2:] == ["forbid", "forbid"]


async def test_a_part_that_dies_while_the_process_drains_is_told_and_ends_it(caplog):
    scene = Scene()
    await scene.lead()
    gate, forever = asyncio.Event(), asyncio.Event()

    async def drain(_seconds):
        await forever.wait()

    async def dies():
        await gate.wait()
        raise RuntimeError("a bug in a lane")

    scene.graph.dispatcher.drain = drain
    scene.daemon._tasks.start("victim", dies())
    scene.stop.set()
    await scene.turn()
    assert not scene.running.done()
    gate.set()
    assert await scene.running == ExitCode.FAILURE
    [record] = [r for r in caplog.records if r.message == "Internal failure"]
    assert "a bug in a lane" in str(record.exc_info[1])
    # It may have been about to write: the lease runs out.
    assert "release" not in scene.log


async def test_a_drain_that_fails_by_itself_is_not_hidden():
    scene = Scene(elect=False)
    await scene.sync()

    async def fails(_seconds):
        raise RuntimeError("a bug in the drain")

    scene.graph.dispatcher.drain = fails
    scene.stop.set()
    with pytest.raises(RuntimeError, match="a bug in the drain"):
        await scene.running


async def test_a_lease_is_given_back_for_as_long_as_a_rival_is_in_the_way():
    scene = Scene(elect=True)
    scene.graph.rivals.met = 2
    await scene.lead()
    assert [entry for entry in scene.log if entry in {"a rival", "release", "allow"}] == [
        *("a rival", "release", "a rival", "release"),
        "allow",
    ]
    scene.stop.set()
    assert await scene.running == 0


async def test_without_an_election_a_rival_is_waited_for_before_anything_is_decided():
    scene = Scene(elect=False)
    scene.graph.rivals.met = 2
    await scene.sync()
    assert [entry for entry in scene.log if entry in {"a rival", "allow"}] == [
        *("a rival", "a rival"),
        "allow",
    ]
    scene.stop.set()
    assert await scene.running == 0
