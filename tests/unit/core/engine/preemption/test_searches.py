"""Searches for room that take many messages: what they cost others, and how they end."""

import pytest

from k8s_scheduler.core.engine.preemption import post_filter, searches, turns, work
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import ExtenderAnswer, Reconfigure, Schedule
from k8s_scheduler.core.messages.outgoing import AskExtender, Bind, Evict, RecordEvent
from k8s_scheduler.core.setup import Setup
from tests.builders import make_pod
from tests.fakes.extender import FakeExtender
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, away, promised, spread, zoned
from tests.unit.core.engine.preemption.searching import PER_STEP, Search, boss, hungry, lesser
from tests.unit.core.harness import only

NOT_MORE = PER_STEP + 1


@pytest.fixture
def s(monkeypatch):
    return Search(monkeypatch)


class TestSteps:
    def test_no_message_tries_more_nodes_than_its_share(self, s):
        s.pod(hungry().obj())
        s.search()
        assert max(map(len, s.tried)) <= NOT_MORE
        assert sorted(row for step in s.tried for row in step) == list(range(60))

    def test_four_pods_of_one_batch_share_it(self, s):
        for i in range(4):
            s.pod(hungry(f"p{i}", cpu=f"2{i}00m").obj())
        while s.core.has_work:
            s.step(limit=4)
        assert max(map(len, s.tried)) <= NOT_MORE
        assert s.tried_nodes == 4 * 60

    def test_the_price_of_a_node_grows_with_its_pods_and_terms(self):
        plain = work.Price(hungry().obj(), counting=0, one_by_one=0)
        picky = hungry()
        for i in range(8):
            away(picky, key="host", app=f"boss{i}")
        counting = work.Price(picky.obj(), counting=1, one_by_one=1)
        assert plain.take_away(1, 0) < plain.take_away(100, 0)
        assert 4 * plain.take_away(20, 0) < counting.take_away(20, 0)
        assert counting.take_away(20, 0) < counting.take_away(20, 2000)
        assert plain.let_back(1, 0) < counting.let_back(1, 0) < counting.let_back(1, 500)

    def test_it_ends_as_in_one_go_and_is_told_once(self, s, monkeypatch):
        for builder in (hungry(), away(hungry(cpu="1"), key="host", app="boss")):
            s.out.clear()
            s.pod(builder.obj())
            twin = s.twin()
            out = s.search()
            monkeypatch.setattr(post_filter, "SEARCH_WORK", 10**9)
            assert twin.handle(Schedule(s.now, 4)) == out
            monkeypatch.setattr(post_filter, "SEARCH_WORK", work.SEARCH_WORK // 50)
            assert [e.reason for e in only(RecordEvent, out)] == ["FailedScheduling"]
            [condition] = s.conditions("p")
            assert "preemption: 0/60 nodes are available: 60 " in condition.message
            s.drop_pod(make_pod("p").obj())

    def test_a_candidate_is_found_and_its_victim_evicted(self, s):
        s.drop_pod(boss("n7").obj())
        s.pod(make_pod("guard").request(cpu="2").priority(100).on("n7").obj())
        s.pod(hungry().obj())
        out = s.search()
        [eviction] = only(Evict, out)
        assert (eviction.victim.name, len(s.conditions("p"))) == ("low-n7", 1)

    def test_each_step_finds_something_out_even_if_looking_up_takes_all_there_is(
        self, s, monkeypatch
    ):
        s.drop_pod(boss("n7").obj())
        s.pod(make_pod("guard").request(cpu="2").priority(100).on("n7").obj())
        monkeypatch.setattr(post_filter, "SEARCH_WORK", 1)
        s.pod(hungry().obj())
        assert len(only(Evict, s.search(most=70))) == 1

    def test_the_pod_is_where_only_its_turn_or_news_can_find_it(self, s):
        s.pod(hungry().obj())
        s.step()
        assert (s.in_line(), s.parked()) == (["p"], ["p"])
        assert inside(s.core).queue.get("uid-p").attempts == 0
        assert s.conditions("p") == []
        s.search()
        assert (s.in_line(), s.parked()) == ([], ["p"])
        assert inside(s.core).queue.get("uid-p").attempts == 1

    def test_attempts_are_counted_once(self, s, monkeypatch):
        meter = inside(s.core).state.meter
        counted = []
        for name in ("attempted", "decided", "tried_to_make_room"):
            monkeypatch.setattr(meter, name, lambda *_, name=name: counted.append(name))
        s.pod(hungry().obj())
        s.search()
        assert sorted(counted) == ["attempted", "decided", "tried_to_make_room"]


class TestOthers:
    def test_a_lesser_pod_is_decided_while_160_searches_are_pending(self, s):
        s.node(zoned("free", cpu="1").obj())
        for i in range(160):
            s.pod(hungry(f"p{i}").obj())
        s.step()
        s.pod(make_pod("honest").request(cpu="1").priority(-5).obj())
        out = s.step() + s.step()
        assert [bind.name for bind in only(Bind, out)] == ["honest"]
        assert len(s.in_line()) == 160

    def test_and_while_160_of_as_many_shapes_are(self, s):
        """Each is judged once, as it would be without preemption; steps are few in between."""
        s.node(zoned("free", cpu="1").obj())
        for i in range(160):
            s.pod(hungry(f"p{i}", cpu=f"2{i:03}m").obj())
        s.pod(make_pod("honest").request(cpu="1").priority(-5).obj())
        s.tried.clear()
        while not only(Bind, s.step()):
            assert len(s.tried) <= 160 / 4 + 4
        assert sum(1 for step in s.tried if step) <= 4

    def test_a_more_important_search_comes_first(self, s):
        s.pod(hungry("low", priority=5).obj())
        s.step()
        s.pod(hungry("high", cpu="3", priority=50).obj())
        s.search()
        told = [c.name for c in s.out if type(c).__name__ == "PatchCondition"]
        assert told == ["high", "low"]

    def test_searches_go_on_under_a_stream_of_others(self, s, monkeypatch):
        monkeypatch.setattr(turns, "DECISIONS_PER_STEP", 4)
        s.node(zoned("free", cpu="1000").obj())
        s.pod(away(hungry(cpu="1"), key="zone", app="boss").obj())
        for i in range(200):
            if s.conditions("p"):
                break
            s.pod(make_pod(f"q{i}").request(cpu="1m").obj())
            s.step(limit=1)
        assert s.conditions("p")

    def test_a_pod_in_the_line_goes_where_room_shows(self, s):
        s.pod(hungry("first", priority=50).obj())
        s.pod(hungry("second").tolerates("k", operator="Exists").obj())
        s.step()
        s.step()
        assert sorted(s.in_line()) == ["first", "second"]
        s.node(zoned("new", cpu="4").taint("k").obj())
        out = s.step() + s.step()
        assert [(bind.name, bind.node) for bind in only(Bind, out)] == [("second", "new")]
        assert s.in_line() == ["first"]


class TestWhatIsRemembered:
    def test_200_pods_of_one_shape_try_each_node_once(self, s):
        for i in range(200):
            s.pod(hungry(f"p{i}").obj())
        s.search()
        assert s.tried_nodes == 60
        assert all(len(s.conditions(f"p{i}")) == 1 for i in range(200))

    def test_not_even_after_the_flush(self, s):
        s.pod(hungry().obj())
        s.search()
        s.tick(400)
        s.tick(400)
        s.search()
        assert inside(s.core).queue.get("uid-p").attempts > 1
        assert s.tried_nodes == 60

    @pytest.mark.parametrize("other", [hungry("q", priority=11), hungry("q", cpu="3")])
    def test_other_pods_try_themselves(self, s, other):
        s.pod(hungry().obj())
        s.search()
        s.pod(other.obj())
        s.search()
        assert s.tried_nodes == 120

    def test_nodes_that_have_changed_are_tried_again(self, s):
        s.pod(hungry().obj())
        s.search()
        s.pod(make_pod("new").request(cpu="0").on("n3").obj())
        s.node(zoned("n4", cpu="3500m").obj())
        first = len(s.tried)
        s.pod(hungry("q").obj())
        s.search()
        assert sorted(row for step in s.tried[first:] for row in step) == [3, 4]

    def test_kinds_that_are_not_asked_for_any_more_are_forgotten(self, s):
        memory = inside(s.core).post_filter.searches.memory
        pod = make_pod("lonely").request(cpu="9").priority(10).obj()
        s.pod(pod)
        s.settle()
        assert len(memory) == 1
        s.drop_pod(pod)
        for _ in range(20):
            s.tick(60.0)
        assert len(memory) == 0
        assert memory.nbytes == 0

    def test_it_is_bounded_in_memory(self, s, monkeypatch):
        memory = inside(s.core).post_filter.searches.memory
        monkeypatch.setattr(memory, "_max_bytes", 200_000)
        for i in range(40):
            s.pod(hungry(f"p{i}", cpu=f"2{i:03}m").obj())
        s.search()
        assert 1 < len(memory) < 40
        assert memory.nbytes < 250_000

    def test_pods_that_left_are_not_held_for_long(self, s):
        s.drop_pod(boss("n7").obj())
        s.pod(make_pod("guard").request(cpu="2").priority(100).on("n7").obj())
        s.pod(hungry().obj())
        s.search()
        [known] = inside(s.core).post_filter.searches.memory._known.values()
        assert known._found
        s.tick(61)
        assert not known._found


class TestChangesMeanwhile:
    def test_a_candidate_that_is_none_any_more_is_not_chosen(self, s):
        """The last node to be tried is the only one that helps, until it fills up."""
        s.drop_pod(boss("n7").obj())
        s.pod(make_pod("guard").request(cpu="2").priority(100).on("n7").obj())
        s.pod(hungry().obj())
        while not any(7 in step for step in s.tried):
            assert only(Evict, s.step()) == []
        assert s.in_line() == ["p"]
        s.pod(boss("n7").obj())
        out = s.search()
        assert only(Evict, out) == []
        assert len(s.conditions("p")) == 1

    def test_a_node_that_comes_to_help_is_found(self, s):
        s.pod(hungry().obj())
        s.step()
        tried = s.tried[-1][0]
        s.drop_pod(boss(f"n{tried}").obj())
        s.pod(make_pod("guard").request(cpu="2").priority(100).on(f"n{tried}").obj())
        out = s.search()
        assert [e.victim.name for e in only(Evict, out)] == [f"low-n{tried}"]

    def test_room_that_shows_is_taken_without_evictions(self, s):
        s.pod(hungry().obj())
        s.step()
        s.node(zoned("new", cpu="4").obj())
        out = s.search()
        assert [b.node for b in only(Bind, out)] == ["new"]
        assert (only(Evict, out), s.conditions("p")) == ([], [])

    @pytest.mark.parametrize("end", ["deleted", "bound", "terminating"])
    def test_the_search_ends_with_the_pod(self, s, end):
        s.pod(hungry().obj())
        s.step()
        before = s.tried_nodes
        if end == "deleted":
            s.drop_pod(hungry().obj())
        elif end == "bound":
            s.pod(hungry().on("n1").obj())
        else:
            s.pod(hungry().deleting().obj())
        s.search()
        assert (s.tried_nodes, s.conditions("p"), s.in_line()) == (before, [], [])

    def test_another_version_of_the_pod_is_judged_by_itself(self, s):
        s.pod(hungry().obj())
        s.step()
        s.pod(hungry(cpu="1").version(2).obj())
        out = s.search()
        assert len(only(Evict, out)) == 1
        assert len(s.conditions("p")) == 1

    def test_a_pod_that_may_not_preempt_any_more_is_told_so(self, s):
        s.pod(hungry().obj())
        s.step()
        leaving = lesser("n5").deleting()
        leaving.raw["status"]["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
        s.pod(leaving.obj())
        s.pod(promised(hungry(), "n5").version(2).obj())
        before = s.tried_nodes
        s.search()
        [condition] = s.conditions("p")
        assert "terminating pod on the nominated node" in condition.message
        assert s.tried_nodes == before

    def test_another_configuration_begins_it_anew(self, s):
        s.pod(hungry().obj())
        s.step()
        s.tell(Reconfigure(s.now, FULL.profiles, settings_of(FULL.queue)))
        assert s.in_line() == []
        s.search()
        assert len(s.conditions("p")) == 1

    def test_it_ends_even_if_all_nodes_change_all_the_time(self, s, monkeypatch):
        monkeypatch.setattr(searches, "_PATIENCE_NODES", 0)
        s.pod(hungry().obj())
        for number in range(200):
            if s.conditions("p"):
                break
            s.step(limit=1)
            for name in s.names:
                s.node(zoned(name, cpu=f"{4000 - number % 2}m").obj())
        assert len(s.conditions("p")) == 1
        assert s.tried_nodes < 4 * 60
        # It has missed something, so it is tried again.
        assert inside(s.core).queue.get("uid-p").place.value == "backoff"

    def test_even_if_what_all_nodes_depend_on_does(self, s):
        s.pod(spread(hungry(), key="host", app="low").obj())
        for number in range(400):
            if s.conditions("p"):
                break
            s.step()
            s.pod(
                lesser("n1", cpu=f"{1000 - number % 2}m").label(app="lo" + "w" * (number % 2)).obj()
            )
        assert len(s.conditions("p")) == 1


class TestCheckpoints:
    @pytest.mark.parametrize("steps", [1, 3, 6])
    def test_a_core_restored_in_the_middle_does_the_same(self, s, steps):
        for i in range(3):
            s.pod(hungry(f"p{i}", cpu=f"2{i}00m", priority=10 + i).obj())
        for _ in range(steps):
            s.step()
        twin = s.twin()
        assert twin.checkpoint() == s.core.checkpoint()
        while s.core.has_work:
            assert twin.handle(Schedule(s.now, 4)) == s.step()
        assert twin.checkpoint() == s.core.checkpoint()
        assert all(len(s.conditions(f"p{i}")) == 1 for i in range(3))


class TestWaking:
    def test_many_touched_rows_are_asked_about_in_steps(self, s):
        s.pod(hungry().obj())
        s.search()
        before = s.tried_nodes
        for name in s.names:
            s.node(zoned(name, cpu="4001m").obj())
        first = len(s.tried)
        s.search()
        steps = [len(step) for step in s.tried[first:]]
        assert max(steps) <= 2 * NOT_MORE
        # All of them, once: by waking, or by the pod that waking has left it to.
        assert s.tried_nodes - before == 60
        assert len(s.conditions("p")) <= 2

    def test_waking_that_takes_too_long_leaves_it_to_the_pod(self, s, monkeypatch):
        monkeypatch.setattr(post_filter, "_WAKING_STEPS", 2)
        s.pod(hungry().obj())
        s.search()
        for name in s.names:
            s.node(zoned(name, cpu="4001m").obj())
        s.now += 20
        s.tick()
        s.search()
        assert inside(s.core).queue.get("uid-p").attempts == 2

    def test_one_row_on_which_room_could_be_made_wakes(self, s):
        s.pod(hungry().obj())
        s.search()
        s.now += 20
        s.node(zoned("n9", cpu="5").obj())
        out = s.search()
        assert [e.victim.name for e in only(Evict, out)] == ["low-n9"]


class TestExtenders:
    def test_what_they_said_holds_to_the_end_of_the_search(self, monkeypatch):
        s = Search(monkeypatch, setup=Setup(profiles=FULL.profiles, extenders=(FakeExtender(),)))
        s.node(zoned("free", cpu="4").obj())
        s.pod(hungry().label(extended="yes").obj())
        [question] = only(AskExtender, s.step())
        s.tell(ExtenderAnswer(s.now, question.uid, question.attempt, question.request))
        out = s.search()
        assert only(AskExtender, out) == []
        [condition] = s.conditions("p")
        assert condition.message.startswith("0/61 nodes are available:")

    def test_what_happened_since_they_were_asked_is_not_missed(self, monkeypatch):
        s = Search(monkeypatch, setup=Setup(profiles=FULL.profiles, extenders=(FakeExtender(),)))
        s.node(zoned("free", cpu="4").obj())
        s.pod(hungry().label(extended="yes").obj())
        [question] = only(AskExtender, s.step())
        s.node(zoned("other", cpu="4").obj())
        s.tell(ExtenderAnswer(s.now, question.uid, question.attempt, question.request))
        for _ in range(100):
            if s.conditions("p"):
                break
            s.step()
        assert inside(s.core).queue.get("uid-p").place.value != "unschedulable"
