"""What replicas did as processes: how they ended, what they grew to, which file they went by."""

import pytest

from testbed.chaos.auditor import judge
from testbed.chaos.evidence import Configuration, Done, Ended, Sample
from testbed.chaos.plan import Action
from tests.unit.testbed.chaos.histories import ENDED_AT, LED, REPLICA, a_good_story, in_force


def rules(evidence):
    return [finding.rule for finding in judge(evidence).findings]


class TestProcesses:
    def grown(self, *, rss_bytes=100 << 20, open_files=40, last_rss=100 << 20, last_files=40):
        early = [Sample(t, "replica-a-1", rss_bytes, open_files) for t in range(60)]
        late = [Sample(t, "replica-a-1", last_rss, last_files) for t in range(60, 90)]
        return a_good_story().evidence(samples=[*early, *late])

    def test_a_replica_that_stays_as_it_is(self):
        assert rules(self.grown()) == []

    def test_growing_memory_is_found(self):
        assert rules(self.grown(last_rss=300 << 20)) == ["grows"]

    def test_growing_files_are_found(self):
        assert rules(self.grown(last_files=140)) == ["grows"]

    def test_warming_up_is_no_growth(self):
        samples = [Sample(t, "a", (10 if t < 15 else 300) << 20, 40) for t in range(90)]
        assert rules(a_good_story().evidence(samples=samples)) == []

    @pytest.mark.parametrize(
        ("end", "found"),
        [
            (Ended(1.0, "a", 1, asked=False, last_words="Leaderelection lost"), []),
            (Ended(1.0, "a", 1, asked=False, last_words="Internal failure"), ["died"]),
            (Ended(1.0, "a", -11, asked=False), ["died"]),
            (Ended(1.0, "a", -9, asked=True), []),
            (Ended(1.0, "a", 0, asked=True), []),
            (Ended(1.0, "a", 1, asked=True, last_words="Leaderelection lost"), []),
            (Ended(1.0, "a", 1, asked=True, last_words="failed while stopping"), ["died"]),
            (Ended(1.0, "a", -11, asked=True), ["died"]),
            (Ended(1.0, "a", 2, asked=False), ["died"]),
            (Ended(601.0, "a", 2, asked=False), []),
        ],
        ids=[
            "lost lease",
            "failed",
            "crashed",
            "was killed",
            "was stopped",
            "lost its lease when it was stopped",
            "failed when it was stopped",
            "crashed when it was stopped",
            "refused a good file",
            "a bad file",
        ],
    )
    def test_ends(self, end, found):
        offered = [Configuration(0.0, "x", good=True), Configuration(600.0, "y", good=False)]
        assert rules(a_good_story().evidence(ends=[end], configurations=offered)) == found

    @pytest.mark.parametrize("action", [Action.STOP_LEADER, Action.KILL_LEADER])
    def test_a_replica_that_does_not_end_when_it_is_told_to_is_found(self, action):
        done = [Done(600.0, 600.0, action, "replica-a")]
        [found] = judge(a_good_story().evidence(done=done)).findings
        assert str(found) == f"lives on: {action}, and replica-a was still there 60 s later"
        for ends, expected in (
            ([Ended(602.0, "replica-a-1", 0, asked=True)], []),
            ([Ended(602.0, "replica-b-1", 0, asked=True)], ["lives on"]),
            ([Ended(670.0, "replica-a-1", 0, asked=True)], ["lives on"]),
        ):
            assert rules(a_good_story().evidence(done=done, ends=ends)) == expected

    def test_one_that_was_told_to_end_at_the_last_moment_may_still_be_there(self):
        done = [Done(ENDED_AT - 20, ENDED_AT - 20, Action.STOP_LEADER, "replica-a")]
        assert rules(a_good_story().evidence(done=done)) == []

    @pytest.mark.parametrize(
        "line",
        [
            "Traceback (most recent call last)",
            "a kept evaluation was stale",
            "fits and was not woken",
        ],
    )
    def test_complaints_in_the_log_are_found(self, line):
        assert rules(a_good_story().evidence(logs={REPLICA: f"{LED} x {line} y"})) == ["complaint"]

    def test_a_verification_that_differs_is_found(self):
        page = {'k8s_scheduler_shape_verifications_total{result="different"}': 1.0}
        page |= in_force("hash-1")
        assert rules(a_good_story().evidence(metrics={"a": page})) == ["complaint"]

    def test_a_hole_in_the_history_is_found(self):
        assert rules(a_good_story().evidence(holes=["100 to 200"])) == ["hole in the history"]


class TestReloads:
    FIRST = Configuration(500.0, "hash-1", good=True)
    ALIVE = tuple(Sample(float(t), "replica-a-1", 1, 1) for t in range(500, 700))

    def found(self, *offered, log="", **fields):
        values = {"configurations": (self.FIRST, *offered), "samples": self.ALIVE} | fields
        evidence = a_good_story().evidence(logs={REPLICA: f"{LED} {log}"}, **values)
        return [str(finding) for finding in judge(evidence).findings]

    def test_that_nobody_noticed_are_found(self):
        assert self.found(Configuration(600.0, "hash-2", good=True)) == [
            "reload: replica-a-1 did not notice the good hash-2"
        ]
        assert self.found(Configuration(600.0, "hash-2", good=False)) == [
            "reload: replica-a-1 did not notice the bad hash-2"
        ]

    def test_that_were_noticed_are_fine(self):
        offered = Configuration(600.0, "hash-2", good=False)
        assert self.found(offered, log="Configuration refused hash=hash-2") == []

    def test_one_that_was_replaced_at_once_may_be_missed(self):
        offered = [Configuration(600.0 + n, f"hash-{2 + n}", good=True) for n in range(3)]
        assert self.found(*offered, log="hash-4") == []

    def test_a_process_that_was_not_there_or_frozen_sees_nothing(self):
        assert self.found(Configuration(698.0, "hash-2", good=True)) == []
        assert self.found(Configuration(505.0, "hash-2", good=True)) == []  # read at the start
        frozen = [Done(595.0, 595.0, Action.FREEZE_LEADER, "replica-a")]
        assert self.found(Configuration(600.0, "hash-2", good=True), done=frozen) == []
        other = [Done(595.0, 595.0, Action.FREEZE_LEADER, "replica-b")]
        assert len(self.found(Configuration(600.0, "hash-2", good=True), done=other)) == 1

    def test_the_last_one_has_to_be_in_force(self):
        page = {'k8s_scheduler_config_info{hash="hash-1"}': 1.0}
        assert self.found(metrics={"replica-a-1": page}) == []
        page = {'k8s_scheduler_config_info{hash="hash-0"}': 1.0}
        [found] = self.found(metrics={"replica-a-1": page})
        assert "hash-0" in found
        assert "hash-1 lies there" in found

    def test_are_counted(self):
        later = [Configuration(1.0, "b", good=False), Configuration(2.0, "c", good=True)]
        evidence = a_good_story().evidence(configurations=(self.FIRST, *later))
        assert judge(evidence).reloads == (1, 1)
