"""A little of `make fuzz`, and everything it ever found."""

import asyncio
import itertools
import json
from pathlib import Path

import msgspec
import pytest

from k8s_scheduler.api.config.extras import SchedulerExtras
from k8s_scheduler.core.engine.checks.judging import Judgement
from tests.fuzz import configs, objects, trying, worlds
from tests.fuzz.at_limits import api_rules, cases, judging
from tests.fuzz.at_limits.shared_world import SharedWorld
from tests.fuzz.trying import tried

FOUND = Path(__file__).parent / "found"


def broken(name, _data, problem):
    """Be told of a broken promise."""
    pytest.fail(f"{name}: {problem}")


def without_cpu(name, data, problem):
    """Be told of a broken promise; how long something takes on a busy machine is none."""
    if not problem.endswith(("s of CPU", "times the CPU")):
        broken(name, data, problem)


def test_configurations_load_or_say_why():
    figures = configs.run(20, 60, keep=without_cpu)
    assert figures["tried"] == 60
    assert 0 < figures["loaded"] < 60
    assert figures["started_with_last_good"] > 0


def test_no_field_of_our_own_document_is_left_out():
    assert list(configs.EXTRAS) == [f.encode_name for f in msgspec.structs.fields(SchedulerExtras)]
    for field in msgspec.structs.fields(SchedulerExtras):
        if isinstance(field.default, msgspec.Struct):
            inner = [f.encode_name for f in msgspec.structs.fields(field.default)]
            assert list(configs.EXTRAS[field.encode_name]) == inner


def test_right_extras_are_part_of_what_is_tried(tmp_path):
    both = "\n---\n".join(map(json.dumps, (configs.HEAD, configs.EXTRAS)))
    assert tried(both, tmp_path / "config.yaml").loaded
    spoiled = tried(f"nonsense: [\n---\n{json.dumps(configs.EXTRAS)}", tmp_path / "config.yaml")
    assert not spoiled.problem
    assert spoiled.started_with_last_good


def test_loading_and_starting_that_disagree_are_noticed(monkeypatch, tmp_path):
    """A daemon that refuses what can be loaded, or does not find its extras in a broken file."""
    path = tmp_path / "config.yaml"
    both = "\n---\n".join(map(json.dumps, (configs.HEAD, configs.EXTRAS)))
    monkeypatch.setattr(trying, "kept_in", lambda _: "")
    assert "and read alone" in tried(both, path).problem
    monkeypatch.setattr(trying, "load_start", refuse)
    assert tried(both, path).problem == "loads, and can't be started with: no"


def refuse(*_, **__):
    """Have nothing to start with."""
    raise trying.StartError("no")


def test_hostile_objects_harm_nobody_else():
    figures = objects.run(20, 200, keep=without_cpu)
    assert figures["tried"] == 200
    assert figures["bound"] > 0
    assert figures["attempts_failed"] > 0


async def placements(seed, numbers, nodes=12):
    """Return what is wrong while some cases are there; CPU and memory are for `make fuzz`."""
    world = SharedWorld()
    await world.settle(nodes)
    found = []
    for number in numbers:
        case = cases.make_case(seed, number, nodes=nodes)
        await world.tell(thing.come() for thing in case.things)
        found += [world.broken(), await judging.placed_wrong(world)]
        await world.tell(thing.go() for thing in case.things)
        await world.put_residents_back()
        found += [world.broken(), await judging.placed_wrong(world)]
    return found


def test_objects_at_the_limits_do_not_change_where_pods_of_others_go():
    assert set(asyncio.run(placements(3, range(4)))) == {""}


def test_pods_of_others_that_are_placed_wrong_are_noticed(monkeypatch):
    nowhere = Judgement(None, {}, (), {}, {}, None)
    monkeypatch.setattr(judging.Scheduler, "judge", lambda *_, **__: nowhere)
    assert "which must not take it" in asyncio.run(placements(3, range(1)))[1]


def test_pods_of_others_that_preempt_are_placed_right():
    """In case 272 a placed pod refuses all of `shop`: those who find no node send it away."""
    assert set(asyncio.run(placements(401, [272], nodes=50))) == {""}


def test_pods_of_others_that_preempt_although_there_is_room_are_noticed(monkeypatch):
    everywhere = [f"node-{i}" for i in range(12)]
    said = itertools.cycle((["elsewhere"], everywhere))
    monkeypatch.setattr(judging.FreshCore, "judge", lambda *_: next(said))
    monkeypatch.setattr(judging.FreshCore, "follow", lambda *_: (0, 1))
    assert "elsewhere would take it as it is" in asyncio.run(placements(3, range(1)))[1]


def test_objects_at_the_limits_are_as_large_as_the_api_takes_and_no_larger():
    made = [cases.make_case(5, number, nodes=20) for number in range(6)]
    for case in made:
        texts = [thing.text for thing in case.things]
        assert max(map(len, texts)) <= api_rules.MAX_BYTES
        assert len(set(texts)) == len(texts)
    large = [case.things[0].text for case in made if case.sort == cases.LARGE]
    assert max(map(len, large)) > 0.8 * api_rules.MAX_BYTES


def test_a_seed_gives_the_same_again():
    assert list(configs.configurations(7, 20)) == list(configs.configurations(7, 20))
    assert list(objects.objects(7, 50)) == list(objects.objects(7, 50))
    assert cases.make_case(7, 4, nodes=9) == cases.make_case(7, 4, nodes=9)


@pytest.mark.parametrize("path", sorted(FOUND.glob("config-*")), ids=lambda p: p.stem)
def test_configurations_that_were_found(path, tmp_path):
    outcome = tried(path.read_bytes(), tmp_path / "config.yaml")
    assert not outcome.loaded
    if outcome.problem:
        without_cpu(path.name, b"", outcome.problem)


@pytest.mark.parametrize("path", sorted(FOUND.glob("objects-*")), ids=lambda p: p.stem)
def test_objects_that_were_found(path):
    sent = [tuple(line.split(" ", 2)) for line in path.read_text().splitlines()]
    outcome = asyncio.run(objects.episode(sent, nodes=5, every=1))
    if outcome.problem:
        without_cpu(path.name, b"", outcome.problem)
    assert outcome.bound >= len(sent)


def test_the_world_notices_what_is_wrong(monkeypatch):
    """What a core that raises, or a pod that suffers for another, would look like."""
    sent = list(objects.objects(20, 8))
    monkeypatch.setattr(worlds.Scheduler, "_tick", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in asyncio.run(objects.episode(sent, nodes=1)).problem
    monkeypatch.undo()
    monkeypatch.setattr(
        "k8s_scheduler.core.plugins.node_unschedulable.NodeUnschedulable.filter", lambda *_: 1 / 0
    )
    problem = asyncio.run(objects.episode(sent, nodes=1)).problem
    assert problem.startswith("canary-1, with which nothing is wrong: running Filter plugin")
