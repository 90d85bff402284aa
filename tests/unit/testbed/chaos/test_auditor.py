"""Every violation is planted in a history in which all else is well, and found."""

import dataclasses
from pathlib import Path

import pytest

import testbed
from testbed.chaos.auditor import judge
from testbed.chaos.evidence import (
    Done,
    Ended,
    EventSeen,
    Opinion,
    Passed,
    Replayed,
)
from testbed.chaos.plan import Action
from testbed.chaos.report import render
from tests.unit.testbed.chaos.histories import (
    QUIET_FROM,
    SMALL,
    THEIRS,
    THEM,
    US,
    Story,
    a_good_story,
    node,
    pod,
)


def rules(evidence):
    return [finding.rule for finding in judge(evidence).findings]


@pytest.mark.parametrize("folder", ["chaos", "proxy"])
def test_nothing_of_the_scheduler_is_imported(folder):
    """Who judges the scheduler shares no code with it."""
    sources = list((Path(testbed.__file__).parent / folder).glob("*.py"))
    assert len(sources) > 5
    for source in sources:
        for line in source.read_text().splitlines():
            assert not line.strip().startswith(("from k8s_scheduler", "import k8s_scheduler"))


def test_nothing_is_found_where_all_is_well():
    verdict = judge(a_good_story().evidence())
    assert verdict.findings == ()
    assert (verdict.pods_of_ours, verdict.bound_by_us, verdict.decisions_judged) == (4, 3, 2)


class TestBindings:
    def test_two_bindings_of_one_pod_are_found(self):
        story = a_good_story()
        story.ask("p2", "n1")
        assert rules(story.evidence()) == ["bound twice"]

    def test_a_binding_that_was_refused_is_none(self):
        story = a_good_story()
        story.ask("p2", "n1", status=409)
        assert rules(story.evidence()) == []

    def test_a_pod_that_changes_its_node_is_found(self):
        story = a_good_story()
        story.write(pod("p2", "n2"))
        assert "bound twice" in rules(story.evidence())

    def test_a_pod_that_no_binding_put_there_is_found(self):
        story = Story()
        story.write(pod("p1"))
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == ["bound otherwise"]

    def test_a_binding_without_an_answer_may_have_been_carried_out(self):
        story = Story()
        story.write(pod("p1"))
        story.ask("p1", status=0)
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == []

    def test_a_binding_that_was_refused_put_no_pod_anywhere(self):
        story = Story()
        story.write(pod("p1"))
        story.ask("p1", status=409)
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == ["bound otherwise"]

    @pytest.mark.parametrize("status", [500, 504])
    def test_a_binding_that_failed_may_have_been_carried_out(self, status):
        story = Story()
        story.write(pod("p1"))
        story.ask("p1", status=status)
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == []

    def test_a_pod_of_ours_that_somebody_else_bound_is_found(self):
        story = Story()
        story.write(pod("p1"))
        story.ask("p1", by=THEM)
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == ["bound otherwise"]

    def test_a_pod_of_somebody_else_that_we_bound_is_found(self):
        story = a_good_story()
        story.write(pod("t1", scheduler=THEIRS))
        story.ask("t1", by=US)
        story.write(pod("t1", "n1", scheduler=THEIRS))
        [found] = judge(story.evidence()).findings
        assert str(found) == (
            "bound otherwise: pod chaos/t1 is of default-scheduler, and we have bound it to n1"
        )

    def test_a_pod_that_waits_though_it_fits_is_found(self):
        story = a_good_story()
        story.write(pod("lost", scheduled=("False", "Unschedulable", "")))
        story.write(EventSeen("uid-lost", "FailedScheduling", ""))
        assert rules(story.evidence()) == ["lost"]

    @pytest.mark.parametrize(
        ("came", "bound", "found"),
        [
            (900.0, QUIET_FROM + 95, ["lost"]),
            (900.0, QUIET_FROM + 85, []),
            (QUIET_FROM + 15, QUIET_FROM + 95, []),
        ],
        ids=["too late", "in time", "came later"],
    )
    def test_a_pod_is_lost_that_is_bound_after_its_time(self, came, bound, found):
        story = a_good_story()
        story.at(came)
        story.write(pod("slow"))
        story.at(bound)
        story.bind("slow")
        assert rules(story.evidence()) == found

    @pytest.mark.parametrize(
        "fields",
        [{"scheduler": THEIRS}, {"leaving": True}, {"gated": True}],
        ids=["another scheduler's", "being deleted", "gated"],
    )
    def test_pods_that_are_not_ours_to_place_are_not_lost(self, fields):
        story = a_good_story()
        story.write(pod("waits", **fields))
        assert rules(story.evidence()) == []

    @pytest.mark.parametrize(
        "closed", [node(open=False), node(zone="zone-1")], ids=["cordoned", "in another zone"]
    )
    def test_a_pod_that_no_open_node_would_take_is_not_lost(self, closed):
        story = Story(closed, node("n2", zone="zone-1"))
        story.write(pod("waits", zone="zone-2", scheduled=("False", "Unschedulable", "")))
        story.write(EventSeen("uid-waits", "FailedScheduling", ""))
        assert rules(story.evidence()) == []


class TestRoom:
    def full(self):
        story = Story()
        for name in ("p1", "p2"):
            story.write(pod(name))
            story.decide(name)
            story.bind(name)
        return story

    def test_a_node_that_we_overfill_is_found(self):
        story = self.full()
        story.write(pod("p3"))
        story.bind("p3")
        assert rules(story.evidence()) == ["overfilled"]

    def test_what_has_left_or_finished_takes_no_room(self):
        story = self.full()
        story.write(pod("p1", "n1"), gone=True)
        story.write(pod("p2", "n1", finished=True))
        for name in ("p3", "p4"):
            story.write(pod(name))
            story.bind(name)
        assert rules(story.evidence()) == []

    def test_a_race_with_the_other_scheduler_is_counted(self):
        story = Story()
        story.write(pod("p1"))
        story.bind("p1")
        story.write(pod("t1", scheduler=THEIRS))
        story.write(pod("p2"))
        story.bind("t1", scheduler=THEIRS)
        story.bind("p2")
        verdict = judge(story.evidence())
        assert verdict.findings == ()
        assert verdict.overfills.races == 1

    def test_what_the_other_scheduler_did_long_ago_is_no_excuse(self):
        story = Story()
        story.write(pod("t1", scheduler=THEIRS))
        story.bind("t1", scheduler=THEIRS)
        story.at(900.0)
        for name in ("p1", "p2"):
            story.write(pod(name))
            story.bind(name)
        assert rules(story.evidence()) == ["overfilled"]

    @pytest.mark.parametrize("seen_it", [False, True])
    def test_with_decisions_only_what_they_had_not_seen_is_an_excuse(self, seen_it):
        story = Story()
        story.write(pod("p1"))
        story.bind("p1")
        story.write(pod("p2"))
        before = story.revision
        story.write(pod("t1", scheduler=THEIRS))
        story.bind("t1", scheduler=THEIRS)
        story.decide("p2", seen=story.revision if seen_it else before)
        story.bind("p2")
        verdict = judge(story.evidence())
        found = [finding.rule for finding in verdict.findings]
        # By where it landed, and by what the decision knew.
        assert found == (["overfilled", "overfilled"] if seen_it else [])
        assert verdict.overfills.races == (0 if seen_it else 1)

    def test_the_last_decision_about_a_pod_is_the_one_that_was_carried_out(self):
        """Recordings are read one after the other, whoever led first."""
        story = Story()
        story.write(pod("p1"))
        story.bind("p1")
        story.write(pod("p2"))
        story.decide("p2", by="b")
        [early] = story.decisions
        story.write(pod("t1", scheduler=THEIRS))
        story.bind("t1", scheduler=THEIRS)
        story.decide("p2", by="a")
        story.bind("p2")
        verdict = judge(story.evidence(decisions=[story.decisions[-1], early]))
        assert verdict.overfills.races == 0
        assert "overfilled: pod chaos/p2 came to n1" in str(verdict.findings[0])

    def test_a_node_that_the_other_scheduler_overfills_is_its_own_affair(self):
        story = self.full()
        story.write(pod("t1", scheduler=THEIRS))
        story.bind("t1", scheduler=THEIRS)
        verdict = judge(story.evidence())
        assert verdict.findings == ()
        assert verdict.overfills.theirs == 1

    def test_a_write_that_came_late_explains_it(self):
        story = self.full()
        story.write(pod("p3"))
        story.bind("p3")
        late = Passed(story.now - 9, story.now, "replica-a", "chaos", "p2", 201)
        verdict = judge(story.evidence(passed=[late]))
        assert verdict.findings == ()
        assert verdict.overfills.late_writes == 1

    @pytest.mark.parametrize(
        ("first", "second"), [((9, 201), (0, 409)), ((0, 201), (9, 409))], ids=["late", "in time"]
    )
    def test_only_the_write_that_was_carried_out_can_have_come_late(self, first, second):
        story = self.full()
        story.write(pod("p3"))
        story.bind("p3")
        passed = [
            Passed(story.now - seconds, story.now, "replica-a", "chaos", "p2", status)
            for seconds, status in (first, second)
        ]
        is_late = first[0] > 0
        verdict = judge(story.evidence(passed=passed))
        assert [f.rule for f in verdict.findings] == ([] if is_late else ["overfilled"])
        assert verdict.overfills.late_writes == is_late


class TestDecisions:
    """The truth may be in order by luck; a decision on what was seen has no excuse."""

    def test_a_decision_for_a_node_that_was_seen_full_is_found(self):
        story = Story()
        for name in ("p1", "p2", "p3"):
            story.write(pod(name))
        for name in ("p1", "p2"):
            story.bind(name)
        story.decide("p3")
        assert rules(story.evidence()) == ["overfilled", "told nothing", "told nothing"]

    def test_two_decisions_for_the_same_room_are_found_before_any_is_seen(self):
        story = Story()
        for name in ("p1", "p2", "p3"):
            story.write(pod(name))
        for name in ("p1", "p2", "p3"):
            story.decide(name)
        story.bind("p1")
        story.bind("p2")
        story.write(pod("p1", "n1"), gone=True)
        story.bind("p3")
        assert rules(story.evidence()) == ["overfilled"]

    def test_other_replicas_decisions_that_were_not_seen_do_not_count(self):
        story = Story()
        for name in ("p1", "p2", "p3"):
            story.write(pod(name))
        for name in ("p1", "p2"):
            story.decide(name, by="a")
        story.bind("p1")
        story.bind("p2")
        story.write(pod("p1", "n1"), gone=True)
        story.decide("p3", by="b", seen=4)
        story.bind("p3")
        assert rules(story.evidence()) == []

    def test_a_pod_that_was_seen_to_go_takes_no_room_though_history_heard_of_it_later(self):
        for knew_of_it in (True, False):
            story = Story()
            for name in ("p1", "p2", "p3"):
                story.write(pod(name))
            for name in ("p1", "p2"):
                story.decide(name)
                story.bind(name)
            heard = story.now
            story.write(pod("p1", "n1"), gone=True)
            story.at(heard - 0.01)
            story.decide("p3", seen=story.revision - (not knew_of_it))
            story.at(heard + 1)
            story.bind("p3")
            assert rules(story.evidence()) == ([] if knew_of_it else ["overfilled"])

    def test_a_decision_for_a_node_that_never_was_is_found(self):
        story = a_good_story()
        story.write(pod("p4"))
        story.decide("p4", "nowhere")
        story.write(pod("p4"), gone=True)
        assert rules(story.evidence()) == ["overfilled"]

    def test_a_decision_for_a_node_that_was_seen_to_go_is_found(self):
        story = a_good_story()
        story.write(node("n2"))
        story.write(pod("p4"))
        before = story.revision
        story.write(node("n2"), gone=True)
        story.write(pod("p4"), gone=True)
        story.decide("p4", "n2", seen=before)
        assert rules(story.evidence()) == []
        story.decide("p4", "n2")
        assert rules(story.evidence()) == ["overfilled"]

    def test_a_recording_that_is_decided_otherwise_is_found(self):
        replayed = [Replayed("replica-a-1", 1, "message 7"), Replayed("replica-a-2", 0)]
        assert rules(a_good_story().evidence(replayed=replayed)) == ["replay"]


class TestWords:
    def test_an_event_that_names_another_node_is_found(self):
        story = a_good_story()
        story.write(EventSeen("uid-p2", "Scheduled", "Successfully assigned chaos/p2 to n9"))
        assert rules(story.evidence()) == ["told wrongly"]

    def test_a_condition_that_denies_the_binding_is_found(self):
        story = a_good_story()
        story.write(pod("p2", "n1", scheduled=("False", "Unschedulable", "")))
        assert rules(story.evidence()) == ["told wrongly"]

    def test_a_condition_that_denied_the_binding_is_found_though_the_pod_is_gone(self):
        story = a_good_story()
        denied = pod("p2", "n1", scheduled=("False", "Unschedulable", ""))
        story.write(denied)
        story.write(pod("p2", "n1"))
        story.write(denied, gone=True)
        assert rules(story.evidence()) == ["told wrongly"]

    def test_a_pod_bound_in_quiet_times_has_an_event(self):
        story = Story()
        story.at(QUIET_FROM + 20)
        story.write(pod("p1"))
        story.ask("p1")
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == ["told nothing"]

    def test_a_replica_that_ends_may_take_its_events_along(self):
        story = Story()
        story.at(QUIET_FROM + 20)
        story.write(pod("p1"))
        story.ask("p1")
        story.write(pod("p1", "n1"))
        lost = Ended(story.now + 2, "a", 1, asked=False, last_words="Leaderelection lost")
        assert rules(story.evidence(ends=[lost])) == []

    def test_an_event_may_be_missing_while_things_went_wrong(self):
        story = Story()
        story.write(pod("p1"))
        story.ask("p1")
        story.write(pod("p1", "n1"))
        assert rules(story.evidence()) == []

    def test_a_pod_that_waits_is_told_why(self):
        story = Story()
        story.write(pod("p1", asks=dataclasses.replace(SMALL, milli_cpu=9000)))
        assert rules(story.evidence()) == ["told nothing", "told nothing"]


class TestTheOracle:
    def test_what_it_denies_is_found(self):
        words = ("history", "replica-a-1", "chaos", "p1", "n1")
        opinions = [Opinion(*words), Opinion(*words, complaint="not feasible: full")]
        verdict = judge(a_good_story().evidence(opinions=opinions))
        assert [str(finding) for finding in verdict.findings] == [
            "infeasible: pod chaos/p1 on n1, by history: not feasible: full"
        ]
        assert verdict.opinions == 2


def test_take_overs_last_from_the_leaders_end_to_the_others_first_binding():
    passed = [
        Passed(at, at, replica, "chaos", f"p{at}", status)
        for at, replica, status in (
            (90.0, "replica-a", 201),
            (101.0, "replica-a", 201),  # was on its way
            (104.0, "replica-b", 409),
            (108.0, "replica-b", 201),
            (120.0, "replica-a", 201),
        )
    ]
    done = [
        Done(100.0, 100.0, Action.KILL_LEADER, "replica-a"),
        Done(110.0, 110.0, Action.FREEZE_LEADER, "replica-b"),
        Done(111.0, 111.0, Action.CORDON, "n1"),
    ]
    verdict = judge(a_good_story().evidence(passed=passed, done=done))
    assert [(each.seconds, each.disturbed) for each in verdict.takeovers] == [
        (8.0, False),
        (10.0, True),  # the first one was just over
    ]


def test_the_replica_that_was_killed_may_be_the_next_leader():
    passed = [
        Passed(at, at + 0.1, "replica-a", "chaos", f"p{at}", 201) for at in (99.95, 112.0, 113.0)
    ]
    done = [Done(100.0, 100.0, Action.KILL_LEADER, "replica-a")]
    ends = [Ended(101.0, "replica-a-1", -9, asked=True)]
    [takeover] = judge(a_good_story().evidence(passed=passed, done=done, ends=ends)).takeovers
    assert takeover.seconds == pytest.approx(12.1)


def test_where_there_was_no_leader_to_take_away_nobody_takes_over():
    passed = [Passed(101.0, 101.0, "replica-a", "chaos", "p1", 201)]
    done = [Done(100.0, 100.0, Action.KILL_LEADER, "not done: nobody leads")]
    evidence = a_good_story().evidence(passed=passed, done=done)
    verdict = judge(evidence)
    assert verdict.takeovers == ()
    report = render(evidence, verdict, folder=Path())
    assert "actions               0" in report
    assert "actions in vain       1" in report
