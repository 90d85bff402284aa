"""Evidence that is missing is found; what is rightly absent is not."""

from dataclasses import replace

import pytest

from testbed.chaos.auditor import judge
from testbed.chaos.evidence import Change, Done, Ended, Passed, Replayed, Sample
from testbed.chaos.plan import Action
from tests.unit.testbed.chaos.histories import (
    ENDED_AT,
    LED,
    LOOKED_AT,
    QUIET_FROM,
    REPLICA,
    THEIRS,
    Story,
    a_good_story,
    in_force,
    node,
    pod,
)

OTHER = "replica-b-1"


def found(story=None, **fields):
    evidence = (story or a_good_story()).evidence(**fields)
    return [str(finding) for finding in judge(evidence).findings]


def alive(process, *, born=500, last=ENDED_AT - 1):
    """Return samples of a process, one a second."""
    return [Sample(float(t), process, 1, 1) for t in range(int(born), int(last) + 1)]


def bound(replica):
    return [Passed(600.0, 600.1, replica, "chaos", "p1", 201)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decisions": None}, "pods of ours were bound, and no decision was replayed"),
        ({"decisions": []}, "pods of ours were bound, and no decision was replayed"),
        ({"opinions": ()}, "pods of ours were bound, and the oracle was asked about none"),
        ({"replayed": ()}, f"{REPLICA} led, and no recording of it was replayed"),
        ({"logs": {}}, "pods of ours were bound, and no log says who led"),
        ({"metrics": {}}, "no replica gave metrics at the end"),
        ({"metrics": {REPLICA: {}}}, "no replica gave metrics at the end"),
        ({"configurations": ()}, "nothing is known of what lay in the configuration file"),
        ({"samples": ()}, "no process was looked at long enough to say whether it grows"),
        (
            {"samples": [Sample(float(t), REPLICA, 1, 1) for t in range(500, 540)]},
            "no process was looked at long enough to say whether it grows",
        ),
        ({"faults": {}}, "no fault was injected"),
        ({"done": ()}, "nothing of the plan was done"),
        (
            {"done": [Done(550.0, 550.0, Action.COMPACT, "not done: etcd is away")]},
            "nothing of the plan was done",
        ),
    ],
    ids=[
        "no recording",
        "no decision",
        "no opinion",
        "no replay",
        "no log",
        "no metrics",
        "empty metrics",
        "no configuration",
        "no samples",
        "few samples",
        "no faults",
        "no actions",
        "actions in vain",
    ],
)
def test_a_run_without_it_is_not_in_order(fields, message):
    assert f"not judged: {message}" in found(**fields)


def test_a_run_in_which_nothing_came_is_not_in_order():
    assert found(Story()) == ["not judged: no pod of ours ever came"]
    story = Story()
    story.write(pod("t1", scheduler=THEIRS))
    assert found(story) == ["not judged: no pod of ours ever came"]


def test_where_no_pod_of_ours_could_be_bound_there_is_nothing_to_replay():
    story = a_good_story()
    waiting = [c for c in story.changes if getattr(c.what, "name", "") not in ("p1", "p2")]
    story.changes[:] = [Change(n, c.at, c.gone, c.what) for n, c in enumerate(waiting, 1)]
    story.bindings.clear()
    judged = found(story, decisions=None, opinions=(), replayed=(), logs={}, metrics={})
    assert not [text for text in judged if text.startswith("not judged")]


def test_where_no_node_is_open_at_the_end_nobody_can_say_that_no_pod_is_lost():
    story = a_good_story()
    story.write(node(open=False))
    assert found(story) == ["not judged: no node was open at the end"]


def test_where_no_pod_is_bound_in_quiet_times_nobody_can_say_that_all_is_told():
    evidence = a_good_story().evidence()
    early = [change for change in evidence.changes if change.at < QUIET_FROM]
    judged = judge(replace(evidence, changes=early, bindings=evidence.bindings[:2])).findings
    assert [str(finding) for finding in judged] == [
        "not judged: no pod of ours was bound after the last fault"
    ]


def test_a_binding_that_history_does_not_show_is_a_hole():
    story = a_good_story()
    story.ask("p9", "n1")
    assert found(story) == [
        "hole in the history: pod chaos/p9 was bound to n1, and history does not show it there"
    ]


class TestDecisions:
    def test_each_says_what_it_had_seen(self):
        for missing in ("seen_pods", "seen_nodes"):
            story = a_good_story()
            first, second = story.decisions
            blind = replace(first, **{missing: 0})
            judged = found(story, decisions=[blind, second])
            assert "not judged: 1 decisions do not say what they had seen" in judged

    def test_each_pod_that_a_replica_bound_was_decided_about(self):
        first, _ = a_good_story().decisions
        passed = [Passed(600.0, 600.1, "replica-a", "chaos", "p2", 201)]
        assert found(passed=passed) == []
        assert found(passed=passed, decisions=[first]) == [
            "not judged: replica-a has bound 1 pods of which no recording has a decision: chaos/p2"
        ]

    @pytest.mark.parametrize(
        ("end", "excused"),
        [
            (Ended(601.0, REPLICA, -9, asked=True), True),
            (Ended(601.0, REPLICA, 0, asked=True), False),
            (Ended(601.0, OTHER, -9, asked=True), False),
            (Ended(640.0, REPLICA, -9, asked=True), False),
            (Ended(599.0, REPLICA, -9, asked=True), False),
        ],
        ids=["killed", "stopped", "another was killed", "killed later", "killed before"],
    )
    def test_those_of_the_last_moment_of_one_that_was_killed_are_lost(self, end, excused):
        first, _ = a_good_story().decisions
        passed = [Passed(600.0, 600.1, "replica-a", "chaos", "p2", 201)]
        judged = found(passed=passed, decisions=[first], ends=[end])
        assert len(judged) == (not excused)


class TestLeaders:
    def test_each_that_led_has_a_recording(self):
        logs = {REPLICA: LED, OTHER: LED}
        assert found(logs=logs) == [f"not judged: {OTHER} led, and no recording of it was replayed"]
        assert found(logs=logs, replayed=[Replayed(REPLICA, 0), Replayed(OTHER, 0)]) == []

    def test_one_that_was_killed_or_met_a_bad_file_before_it_led_needs_none(self):
        assert found(logs={REPLICA: LED, OTHER: "Attempting to acquire leader lease"}) == []

    def test_a_replica_that_bound_pods_led_by_one_of_its_logs(self):
        assert found(passed=bound("replica-b")) == [
            "not judged: replica-b has bound pods, and no log of it says that it led"
        ]
        assert found(passed=bound("replica-a")) == []
        refused = [Passed(600.0, 600.1, "replica-b", "chaos", "p1", 409)]
        assert found(passed=refused) == []

    def test_a_recording_that_could_not_be_replayed_is_told_once(self):
        assert found(replayed=[Replayed(REPLICA, 1, "cut short")]) == [
            f"replay: {REPLICA} (1): cut short"
        ]


class TestMetrics:
    def test_a_replica_that_lives_at_the_end_gives_them(self):
        assert found(samples=alive(OTHER)) == [
            f"not judged: {OTHER} lived at the end and gave no metrics"
        ]
        pages = {REPLICA: in_force("hash-1"), OTHER: in_force("hash-1")}
        assert found(samples=alive(OTHER), metrics=pages) == []

    def test_one_that_has_just_been_started_may_not_serve_yet(self):
        assert found(samples=[*LOOKED_AT, *alive(OTHER, born=ENDED_AT - 5)]) == []

    def test_one_that_has_ended_gives_none(self):
        assert found(samples=alive(OTHER, last=ENDED_AT - 60)) == []
        ends = [Ended(ENDED_AT - 1, OTHER, -9, asked=True)]
        assert found(samples=alive(OTHER), ends=ends) == []

    def test_one_may_lose_its_lease_after_the_last_look(self):
        logs = {REPLICA: LED, OTHER: "Leaderelection lost"}
        assert found(samples=alive(OTHER), logs=logs) == []
