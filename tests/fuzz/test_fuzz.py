"""A little of `make fuzz`, and everything it ever found."""

import asyncio
import json
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from k8s_scheduler.api.extras import SchedulerExtras
from tests.fuzz import configs, objects, trying, worlds
from tests.fuzz.at_limits import api_rules, cases, judging, runs
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


def test_objects_at_the_limits_cost_others_little():
    """Judged by placements and memory; CPU is for `make fuzz`."""
    tracemalloc.start()
    try:
        figures = runs.run(3, 2, keep=without_cpu, size=lambda _: 12)
    finally:
        tracemalloc.stop()
    assert figures["at_the_limits"] == 2
    assert figures["worst_cpu_seconds"] > 0


def test_objects_at_the_limits_are_as_large_as_the_api_takes_and_no_larger():
    for number in range(12):
        case = cases.make_case(5, number, nodes=20)
        sizes = [len(thing.text) for thing in case.things]
        assert max(sizes) <= api_rules.MAX_BYTES
        assert len({thing.text for thing in case.things}) == len(sizes)
    large = [
        c for c in (cases.make_case(5, n, nodes=20) for n in range(12)) if c.sort == "one large"
    ]
    assert sum(len(c.things[0].text) > 0.8 * api_rules.MAX_BYTES for c in large) > len(large) / 2


def test_the_yardstick_notices_what_others_pay(monkeypatch):
    """What a core would look like that keeps something of each change."""
    case = next(c for c in cases.cases(3, 9, nodes=lambda _: 12) if ", pending" in c.title)
    kept = []
    tracemalloc.start()
    try:
        hold = worlds.Scheduler._pod_changed
        monkeypatch.setattr(
            worlds.Scheduler,
            "_pod_changed",
            lambda self, message: (kept.append(bytearray(100_000)), *hold(self, message))[1:],
        )
        found = asyncio.run(judged(case))
    finally:
        tracemalloc.stop()
    assert any("memory after it is gone" in problem for problem in found.problems)


async def judged(case):
    """Return what is found of a case in a small cluster."""
    street = judging.Street(12)
    await street.settle()
    return await street.judge(case)


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
