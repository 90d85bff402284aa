"""How often pods are told, and what becomes of renewals at other moments."""

import dataclasses

from k8s_scheduler.core.engine.allowance import Allowance
from k8s_scheduler.core.engine.parked import renewals
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import Reconfigure, Restore, Tick
from k8s_scheduler.core.messages.outgoing import Bind, PatchCondition, RecordEvent
from k8s_scheduler.core.scheduler import Scheduler
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, zoned
from tests.unit.core.engine.parked.test_renewals import Bench, blue, h, labelled
from tests.unit.core.harness import only

__all__ = ["h", "labelled"]


class TestLimits:
    def test_no_more_pods_are_told_each_second_than_the_set_rate(self):
        h = Bench(per_second=20)
        h.node(zoned("n1").obj())
        for number in range(300):
            h.pod(blue(f"p{number}", cpu=str(20 + number % 5)).obj())
        h.settle()
        h.second()
        h.node(zoned("n1").label(team="blue").obj())
        told = [len(h.second()) for _ in range(16)]
        assert told == [20] * 15 + [0]
        assert h.renewed("told") == 300
        assert h.renewed("put_off") > 0

    def test_under_churn_the_rate_holds_and_the_newest_reason_wins(self):
        h = Bench(per_second=10)
        h.node(zoned("n1").obj())
        for number in range(100):
            h.pod(blue(f"p{number}", cpu=str(20 + number % 5)).obj())
        h.settle()
        for second in range(30):
            h.node(zoned(f"extra-{second}").obj())
            assert len(h.second()) <= 10
        for _ in range(60):
            assert len(h.second()) <= 10
        last = {event.name: event.note for event in only(RecordEvent, h.out)}
        assert all(note.startswith("0/31 nodes") for note in last.values())
        assert len(last) == 100
        # Nobody was told what was no longer true by then.
        patches = only(PatchCondition, h.out)
        assert len(patches) == h.renewed("told") + 100

    def test_one_pod_is_told_some_times_in_a_row_and_then_every_ten_seconds(self, h):
        h.node(zoned("n1").obj())
        h.pod(blue("p").obj())
        h.settle()
        told = []
        for second in range(40):
            h.node(zoned("n1").label(**({"team": "blue"} if second % 2 == 0 else {})).obj())
            told += [second] * len(h.second())
        assert told[: renewals.POD_BURST] == [0, 1, 2, 3]
        assert len(told) == renewals.POD_BURST + 3
        assert h.renewed("pod_put_off") > 0

    def test_a_pod_that_was_put_off_is_told_later_without_another_event(self, h):
        h.node(zoned("n1").obj())
        h.pod(blue("p").obj())
        h.settle()
        for second in range(5):
            h.node(zoned("n1").label(**({"team": "blue"} if second % 2 == 0 else {})).obj())
            last = h.second()
        assert last == []
        assert [len(h.second()) for _ in range(12)].count(1) == 1

    def test_a_crowd_does_not_keep_others_from_their_turn(self):
        h = Bench(per_second=10)
        h.node(zoned("n1").obj())
        for number in range(500):
            h.pod(blue(f"p{number}").obj())
        h.pod(blue("other", cpu="30").obj())
        h.settle()
        h.second()
        h.node(zoned("n1").label(team="blue").obj())
        assert "other" in {**h.notes(), **h.notes()}

    def test_a_clock_that_goes_back_brings_nothing(self):
        allowance = Allowance(10.0)
        allowance.at(100.0, 10.0)
        assert allowance.left == 10.0
        allowance.spend(10.0)
        assert allowance.is_spent
        allowance.at(50.0, 10.0)
        assert allowance.is_spent
        allowance.at(100.5, 10.0)
        assert allowance.left == 5.0


class TestOtherMoments:
    def test_another_rate_is_gone_by_from_the_next_second_on(self, labelled):
        policy = dataclasses.replace(FULL.queue, renewals_per_second=0)
        labelled.tell(Reconfigure(labelled.now, FULL.profiles, settings_of(policy)))
        assert labelled.notes() == {}
        policy = dataclasses.replace(FULL.queue, renewals_per_second=1)
        labelled.tell(Reconfigure(labelled.now, FULL.profiles, settings_of(policy)))
        assert set(labelled.notes()) == {"p"}

    def test_a_restored_core_tells_what_the_other_one_does(self):
        h = Bench(per_second=3)
        h.node(zoned("n1").obj())
        for number in range(12):
            h.pod(blue(f"p{number}", cpu=str(20 + number % 4)).obj())
        h.settle()
        h.node(zoned("n1").label(team="blue").obj())
        assert len(h.second()) == 3
        twin = Scheduler(h.setup)
        twin.handle(Restore(h.now, h.core.checkpoint()))
        assert twin.checkpoint() == h.core.checkpoint()
        for _ in range(6):
            h.now += 1.0
            out = h.core.handle(Tick(h.now))
            assert twin.handle(Tick(h.now)) == out
            while h.core.has_work:
                h.settle()
                break

    def test_pods_of_a_recording_from_before_are_told_at_their_attempts(self, labelled):
        for queued in inside(labelled.core).queue:
            queued.told = 0
        assert labelled.notes() == {}

    def test_waking_comes_first(self, h):
        """A node that takes the pod is no reason to tell it anything."""
        h.node(zoned("n1").obj())
        h.pod(blue("p", cpu="1").obj())
        h.settle()
        h.node(zoned("n1").label(team="blue").obj())
        h.tick(1.0)
        h.settle()
        assert [bind.name for bind in only(Bind, h.out)] == ["p"]
        assert h.renewed("told") == 0
        assert h.count("k8s_scheduler_parked_but_feasible_total") == 0

    def test_nodes_without_a_name_for_it_are_nothing_new(self, h):
        """An update of a node that no judgement reads lets nobody be judged."""
        h.node(make_node("n").offers(cpu="1", memory="1Gi", pods="9").obj())
        h.pod(make_pod("p").request(cpu="2").obj())
        h.settle()
        h.second()
        before = inside(h.core).parked.renewals._judgements.left
        h.node(make_node("n").offers(cpu="1", memory="1Gi", pods="9").obj())
        h.second()
        assert inside(h.core).parked.renewals._judgements.left >= before
