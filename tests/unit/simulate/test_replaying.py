"""A replay decides as the recorded core did, and knows what each decision was made on."""

import asyncio
import dataclasses
from pathlib import Path

import msgspec
import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.custom_objects import CustomObject
from k8s_scheduler.api.kinds import custom_kind
from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import ObjectChanged, PodChanged, Reconfigure
from k8s_scheduler.core.messages.recording import RecordingError, read_segment
from k8s_scheduler.core.queue.backoff import BackoffPolicy
from k8s_scheduler.core.queue.policy import QueuePolicy
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.simulate.decision_records import time_text
from k8s_scheduler.simulate.evaluation import ScenarioEngine
from k8s_scheduler.simulate.profiles import profile_in_force
from k8s_scheduler.simulate.rebuilding import scenario_of
from k8s_scheduler.simulate.recorded_setup import core_of, header_of, setup_of
from k8s_scheduler.simulate.replaying import CoreFailedError, Replay
from tests.builders import make_node, make_pod
from tests.conformance.oracle.gen import FAMILIES, scenarios
from tests.fakes.extender import FakeExtender
from tests.fakes.tape import METRICS, Tape, recorded

PROFILES = default_configuration(known_plugins()).profiles
FULL = Setup(profiles=PROFILES)
EVALUATION = ScenarioEngine()


def small(path: Path, *, nodes: int = 3, pods: int = 6, cpu: str = "1") -> Tape:
    """Record a cluster of a few nodes with four cores each."""
    tape = Tape(path, FULL)
    for i in range(nodes):
        tape.put({"kind": "Node", **make_node(f"n{i}").raw})
    for i in range(pods):
        tape.put({"kind": "Pod", **make_pod(f"p{i}").request(cpu=cpu).raw})
    return tape


def replayed(path: Path):
    """Return the replay, its decisions, and the question before each."""
    questions = {}

    def look(moment):
        pod = moment.queued.pod
        questions[moment.number] = scenario_of(
            str(moment.number), moment.snapshot(), pod, profile=moment.profile
        )

    replay = Replay(onlooker=look, _metrics=METRICS.scheduler)
    decisions = list(replay.segment(path.name, read_segment(path.read_bytes())))
    return replay, decisions, questions


async def test_every_bind_is_decided_again(tmp_path):
    tape = small(tmp_path / "tape", pods=15)
    tape.settle()
    tape.recording.close()
    replay, decisions, _ = replayed(tmp_path / "tape")
    placed = {(d.uid, d.attempt, d.node) for d in decisions if d.node}
    assert placed == {(b.uid, b.attempt, b.node) for b in tape.binds}
    assert len(placed) == 12
    full = [d for d in decisions if not d.node]
    assert full[0].failure.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert [d.number for d in decisions] == list(range(len(decisions)))
    assert replay.answers > 0
    assert replay.differences == []


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_chosen_node_is_among_the_best_of_the_rebuilt_state(tmp_path, family):
    """In clusters of every kind: volumes, affinities, preemption, nominated pods, ..."""
    questions = list(scenarios(31, 1, family))
    tapes = recorded(tmp_path / "tape", questions)
    seen = 0
    for number in range(len(tapes)):
        replay, decisions, rebuilt = replayed(tmp_path / f"tape-{number}")
        assert replay.differences == []
        for decision in decisions:
            question = rebuilt[decision.number]
            (answer,) = EVALUATION.scenario(question)
            assert "error" not in answer
            seen += 1
            if decision.node is None:
                if not promises(question):
                    assert decision.failure.startswith(answer["message"])
                continue
            assert decision.node in answer["feasible"]
            if not promises(question):
                totals = {node: scores[""] for node, scores in answer["scores"].items()}
                assert totals[decision.node] == max(totals.values())
    assert seen


def promises(question):
    """Return whether pods are nominated: what they ask for is no part of a scenario."""
    return any(raw.get("status", {}).get("nominatedNodeName") for raw in question.objects)


async def test_a_recording_with_custom_objects_is_replayed_and_scenarios_leave_them_out(tmp_path):
    tape = small(tmp_path / "tape", pods=1)
    kind = custom_kind("Group", "groups.x.io", version="v1", paths=["spec.size"])
    group = CustomObject(ObjectMeta(name="g", namespace="a"), content={"spec.size": 3})
    tape.tell(ObjectChanged(tape.now, kind, "a", "g", group))
    tape.settle()
    tape.recording.close()
    told = [
        message
        for message in read_segment((tmp_path / "tape").read_bytes()).messages
        if isinstance(message, ObjectChanged)
    ]
    assert [(m.kind, m.read()) for m in told] == [(kind, group)]
    replay, decisions, rebuilt = replayed(tmp_path / "tape")
    assert replay.differences == []
    assert [d.node is None for d in decisions] == [False]
    assert {raw["kind"] for raw in rebuilt[0].objects} == {"Node", "Pod"}


async def test_decisions_of_one_message_see_those_before_them(tmp_path):
    tape = small(tmp_path / "tape", nodes=1, pods=4)
    tape.settle(limit=4)
    tape.recording.close()
    _, decisions, rebuilt = replayed(tmp_path / "tape")
    assert len({d.message for d in decisions}) == 1
    for decision in decisions:
        bound = [raw for raw in rebuilt[decision.number].objects if raw.get("kind") == "Pod"]
        on_node = [raw for raw in bound if raw["spec"].get("nodeName") == "n0"]
        assert len(on_node) == decision.number


async def test_a_pod_that_waits_for_its_volumes_has_its_node_from_the_decision_on(tmp_path):
    waiting = {}
    for number, tape in enumerate(recorded(tmp_path / "tape", scenarios(1, 3, "volumes"))):
        _, decisions, _ = replayed(tmp_path / f"tape-{number}")
        flights = tape.core.checkpoint().in_flight
        here = {f.queued.pod.metadata.uid: f.node for f in flights}
        assert here.items() <= {d.uid: d.node for d in decisions}.items()
        waiting |= here
    assert waiting


async def test_what_was_seen_is_what_was_told_or_what_informers_had_reached(tmp_path):
    tape = small(tmp_path / "tape", pods=2)
    reached = {"pods": "900", "services": "17"}
    tape.recording.follow(reached.items)
    tape.settle()
    reached["pods"] = "1000"
    tape.put({"kind": "Pod", **make_pod("late").raw})
    tape.settle()
    tape.recording.close()
    _, decisions, _ = replayed(tmp_path / "tape")
    assert [d.seen for d in decisions] == [
        {"nodes": 3, "pods": 900, "services": 17},
        {"nodes": 3, "pods": 900, "services": 17},
        {"nodes": 3, "pods": 1000, "services": 17},
    ]


async def test_without_informers_the_newest_object_counts(tmp_path):
    tape = small(tmp_path / "tape", pods=1)
    tape.settle()
    tape.recording.close()
    _, (decision,), _ = replayed(tmp_path / "tape")
    assert decision.seen == {"nodes": 3, "pods": 4}


async def test_what_was_seen_outlives_a_new_segment(tmp_path):
    tape = small(tmp_path / "tape", pods=1)
    tape.recording._max_bytes = 1
    running = asyncio.create_task(tape.recording.run())
    await asyncio.sleep(0)
    tape.put({"kind": "Pod", **make_pod("late").raw})
    tape.settle()
    tape.recording.close()
    running.cancel()
    assert (tmp_path / "tape.1").exists()
    _, decisions, _ = replayed(tmp_path / "tape")
    assert [d.seen for d in decisions] == [{"nodes": 3, "pods": 5}] * 2


async def test_a_core_that_decides_otherwise_is_found_out(tmp_path):
    tape = small(tmp_path / "tape", nodes=2, pods=3)
    tape.settle()
    tape.recording.close()
    path = tmp_path / "tape"
    bind = tape.binds[-1]
    other = {"n0": b"n1", "n1": b"n0"}[bind.node]
    data = path.read_bytes()
    # In the one answer with instructions: after the verb and the pod stands the node.
    at = data.index(bind.uid.encode(), data.index(b"bind to"))
    at = data.index(bind.node.encode(), at)
    path.write_bytes(data[:at] + other + data[at + 2 :])
    replay, _, _ = replayed(path)
    (difference,) = replay.differences
    assert difference.kind == "Schedule"
    text = difference.text()
    assert f"message {difference.message} of tape (Schedule) is decided otherwise" in text
    assert f"recorded only: bind to '{other.decode()}'" in text
    assert f"replayed only: bind to '{bind.node}'" in text


async def test_a_core_that_fails_names_the_message(tmp_path, monkeypatch):
    tape = small(tmp_path / "tape", pods=1)
    tape.recording.close()
    monkeypatch.setattr("k8s_scheduler.core.scheduler.Scheduler._take_pod", lambda *_: 1 / 0)
    with pytest.raises(CoreFailedError, match=r"message 4 of tape \(PodChanged\).*ZeroDivision"):
        replayed(tmp_path / "tape")


class TestReloads:
    """Decisions after a reload are made, and asked about, by the profiles then in force."""

    def reloaded(self, path: Path, *profiles) -> Tape:
        tape = small(path, pods=1)
        tape.settle()
        tape.tell(Reconfigure(tape.now, profiles, settings_of(FULL.queue)))
        return tape

    async def test_a_scheduler_name_that_came_with_it_is_decided_for(self, tmp_path):
        added = dataclasses.replace(PROFILES[0], scheduler_name="added")
        tape = self.reloaded(tmp_path / "tape", *PROFILES, added)
        tape.put({"kind": "Pod", **make_pod("late").scheduler("added").raw})
        tape.settle()
        tape.recording.close()
        replay, decisions, _ = replayed(tmp_path / "tape")
        assert [d.scheduler_name for d in decisions] == ["default-scheduler", "added"]
        assert [d.node for d in decisions] == [bind.node for bind in tape.binds]
        assert replay.differences == []

    async def test_a_scenario_has_the_arguments_that_came_with_it(self, tmp_path):
        changed = dataclasses.replace(PROFILES[0], percentage_of_nodes_to_score=40)
        tape = self.reloaded(tmp_path / "tape", changed)
        tape.put({"kind": "Pod", **make_pod("late").raw})
        tape.settle()
        tape.recording.close()
        seen = []
        replay = Replay(onlooker=lambda m: seen.append(m.profile), _metrics=METRICS.scheduler)
        list(replay.segment("tape", read_segment((tmp_path / "tape").read_bytes())))
        assert [p.percentage_of_nodes_to_score for p in seen] == [
            PROFILES[0].percentage_of_nodes_to_score,
            40,
        ]


class TestSetup:
    """The header holds everything that a core is made from."""

    SETUP = Setup(
        profiles=(dataclasses.replace(PROFILES[0], percentage_of_nodes_to_score=40), *PROFILES[1:]),
        queue=QueuePolicy(BackoffPolicy(2.0, 20.0), parked_limit_seconds=33.0, max_attempts=None),
        keeps_evaluations=False,
        verified_share=0.25,
    )

    def through_the_wire(self, setup):
        header = header_of(setup, started=5.0)
        return setup_of(msgspec.msgpack.decode(msgspec.msgpack.encode(header), type=type(header)))

    def test_all_of_it_comes_back(self):
        assert self.through_the_wire(self.SETUP) == self.SETUP
        assert self.through_the_wire(FULL) == FULL

    def test_extenders_cannot_be_replayed(self):
        setup = dataclasses.replace(FULL, extenders=(FakeExtender("asked", label="ask"),))
        with pytest.raises(RecordingError, match=r"extenders \(asked\)"):
            self.through_the_wire(setup)

    def test_what_this_version_does_not_know_is_named(self):
        header = header_of(FULL, started=5.0)
        newer = msgspec.structs.replace(header, rest={**header.rest, "luck": 1}, version="9.9")
        with pytest.raises(RecordingError, match=r"luck, which version .* written by 9\.9"):
            setup_of(newer)
        profile = {**header.profiles[0], "points": {"filter": [{"name": "Fortune"}]}}
        with pytest.raises(RecordingError, match=r"plugins Fortune"):
            setup_of(msgspec.structs.replace(header, profiles=[profile]))
        with pytest.raises(RecordingError, match=r"its header can't be read"):
            setup_of(msgspec.structs.replace(header, queue={"backoff": 3}))

    def test_arguments_that_no_plugin_can_read_are_told_with_both_versions(self):
        header = header_of(FULL, started=5.0)
        broken = {**header.profiles[0], "plugin_args": {"NodeResourcesFit": {"scoringStrategy": 5}}}
        newer = msgspec.structs.replace(header, profiles=[broken], version="9.9")
        said = r"its profiles can't be run: .*; it was written by version 9\.9, and this is "
        with pytest.raises(RecordingError, match=said):
            core_of(newer, metrics=METRICS.scheduler, witness=lambda _: None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1_800_000_000.25, "2027-01-15T08:00:00.250Z"),
        (float("nan"), "nans"),
        (float("inf"), "infs"),
        (-1e300, "-1e+300s"),
    ],
)
def test_a_time_that_no_date_has_is_shown_as_a_number(seconds, text):
    assert time_text(seconds) == text


@pytest.mark.parametrize("family", ["mix", "resources", "spread", "nodeaffinity"])
def test_the_scenario_says_the_profile_in_force(family):
    """Whatever a file made of it, point by point."""
    for question in scenarios(8, 4, family):
        profile = profile_in_force(question.get("config"))
        state = Scheduler(Setup(profiles=(profile,)), metrics=METRICS.scheduler).snapshot()
        rebuilt = scenario_of("x", state, make_pod("p").obj(), profile=profile)
        again = profile_in_force(rebuilt.config)
        assert again == dataclasses.replace(profile, left_out=again.left_out)


async def test_messages_without_instructions_cost_no_answer(tmp_path):
    tape = small(tmp_path / "tape", pods=0)
    before = tape.recording._size
    frames = len(tape.recording._behind)
    tape.tell(PodChanged(tape.now, "nobody", None))
    assert len(tape.recording._behind) == frames + 1
    assert tape.recording._size == before
    tape.recording.close()
