"""Preemption, from the promise to the pod on its node: stages, answers, and what goes wrong."""

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    ClearNomination,
    Evict,
    PatchCondition,
    PatchObject,
    PodReference,
    RecordEvent,
)
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import promised
from tests.unit.core.engine.preemption.preempting import (
    GONE,
    fill,
    preempt,
    preemptor,
    show_leaving,
    victim,
)
from tests.unit.core.engine.sagas import SagaHarness, check_room, state_of, writes
from tests.unit.core.harness import only

P = PodUid("uid-p")


@pytest.fixture
def bench():
    bench = SagaHarness("One")
    bench.node(make_node("n1").label(host="n1").obj())
    return bench


class TestStages:
    def test_the_last_victim_goes_alone(self, bench):
        fill(bench, a=1, b=2, c=3)
        first, second = preempt(bench)
        assert [first.victim.name, second.victim.name] == ["c", "b"]
        assert only(Evict, bench.answer(second)) == []
        [last] = only(Evict, bench.answer(first))
        assert last.victim.name == "a"
        assert inside(bench.core).evictions.is_under_way(P)
        assert only(Evict, bench.answer(last)) == []
        assert len({e.request for e in (first, second, last)}) == 3

    def test_an_eviction_names_everybody(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        assert eviction == Evict(
            uid=P,
            namespace="default",
            name="p",
            attempt=1,
            request=eviction.request,
            victim=PodReference("default", "a", PodUid("uid-a")),
            scheduler_name="default-scheduler",
        )

    def test_an_eviction_says_which_generation_of_the_victim_it_is_about(self, bench):
        found = victim("a", 1, "4")
        found.raw["metadata"]["generation"] = 7
        bench.pod(found.obj())
        [eviction] = preempt(bench)
        assert eviction.observed_generation == 7

    def test_the_victim_is_told_once_it_is_done(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        assert bench.notes("a") == []
        [event] = only(RecordEvent, bench.answer(eviction))
        assert (event.name, event.uid, event.type) == ("a", "uid-a", "Normal")
        assert (event.reason, event.action) == ("Preempted", "Preempting")
        assert event.note == "Preempted by pod uid-p on node n1"
        assert event.related == PodReference("default", "p", P)
        assert event.scheduler_name == "default-scheduler"

    def test_a_victim_that_was_gone_is_not_told(self, bench):
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        out = bench.answer(first, message=GONE)
        assert only(RecordEvent, out) == []
        [last] = only(Evict, out)
        assert last.victim.name == "a"

    def test_a_victim_that_leaves_already_is_left_alone(self, bench):
        bench.pod(victim("a", 1).deleting().obj())
        bench.pod(victim("b", 2).obj())
        [only_one] = preempt(bench)
        assert only_one.victim.name == "b"

    def test_with_nobody_to_evict_the_pod_is_not_held_back(self, bench):
        bench.pod(victim("a", 1, "4").deleting().obj())
        assert preempt(bench) == []
        assert not inside(bench.core).evictions.is_under_way(P)
        assert bench.promise_of("p") == "n1"
        bench.drop_pod(make_pod("a").obj())
        bench.settle()
        assert bench.phase("p") == "binding"

    def test_victims_that_are_being_bound_are_evicted(self, bench):
        bench.pod(make_pod("a").request(cpu="4").priority(1).obj())
        [bind] = only(Bind, bench.schedule())
        [eviction] = preempt(bench)
        assert eviction.victim.name == "a"
        assert bench.phase("a") == "binding"
        bench.result(bind)
        assert bench.node_of("a") == "n1"


class TestLesserPromises:
    """Pods that were promised the same node, and are less important."""

    def test_are_taken_back_before_anybody_is_evicted(self, bench):
        fill(bench, a=1)
        bench.pod(promised(preemptor("low", 5).gate("x"), "n1").obj())
        assert preempt(bench) == []
        [clear] = only(ClearNomination, bench.out)
        assert clear.other == PodReference("default", "low", PodUid("uid-low"))
        assert (clear.uid, clear.name, clear.attempt) == (P, "p", 1)
        assert bench.promise_of("low") is None
        out = bench.answer(clear)
        assert [e.victim.name for e in only(Evict, out)] == ["a"]
        assert only(RecordEvent, out) == []

    def test_only_those_of_lesser_pods_on_that_node(self, bench):
        fill(bench, a=1)
        bench.node(make_node("n2").cordoned().obj())
        bench.pod(promised(preemptor("low", 5, "1").gate("x"), "n1").obj())
        bench.pod(promised(preemptor("elsewhere", 5, "1").gate("x"), "n2").obj())
        bench.pod(promised(preemptor("equal", 10, "0").gate("x"), "n1").obj())
        bench.pod(promised(preemptor("high", 20, "0").gate("x"), "n1").obj())
        preempt(bench)
        assert [c.other.name for c in only(ClearNomination, bench.out)] == ["low"]
        assert bench.promise_of("low") is None
        kept = {name: bench.promise_of(name) for name in ("elsewhere", "equal", "high")}
        assert kept == {"elsewhere": "n2", "equal": "n1", "high": "n1"}

    def test_one_that_is_in_no_status_yet_needs_no_write(self, bench):
        fill(bench, a=1)
        [first] = preempt(bench, name="low", priority=5)
        assert first.uid == "uid-low"
        bench.out.clear()
        assert preempt(bench) == []
        assert only(ClearNomination, bench.out) == []
        assert bench.promise_of("low") is None
        assert bench.promise_of("p") == "n1"

    @pytest.mark.parametrize("message", ["", GONE])
    def test_a_pod_that_is_gone_needs_no_promise(self, bench, message):
        fill(bench, a=1)
        bench.pod(promised(preemptor("low", 5).gate("x"), "n1").obj())
        preempt(bench)
        [clear] = only(ClearNomination, bench.out)
        out = bench.answer(clear, message=message)
        assert [e.victim.name for e in only(Evict, out)] == ["a"]

    def test_one_that_cannot_be_taken_back_does_not_stop_the_preemption(self, bench):
        """But the pod is tried again at its end, whatever its backoff says."""
        fill(bench, a=1)
        bench.pod(promised(preemptor("low", 5).gate("x"), "n1").obj())
        preempt(bench)
        [clear] = only(ClearNomination, bench.out)
        out = bench.answer(clear, done=False, message="no")
        [eviction] = only(Evict, out)
        assert bench.place("p") != "active"
        bench.answer(eviction)
        assert bench.place("p") == "active"


class TestHeldBack:
    """While its victims are being evicted, a pod is not tried."""

    def test_victims_that_are_gone_do_not_let_it_be_tried_too_early(self, bench):
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        bench.drop_pod(make_pod("b").obj())
        bench.drop_pod(make_pod("a").obj())
        bench.settle()
        assert bench.place("p") == "gated"
        assert bench.phase("p") is None
        assert only(Evict, bench.answer(first, message=GONE)) == []
        bench.settle()
        assert bench.phase("p") == "binding"
        assert bench.node_of("p") == "n1"

    def test_the_last_one_is_not_asked_if_it_was_seen_to_leave_meanwhile(self, bench):
        """Somebody else has deleted it since it was chosen."""
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        last = "a" if first.victim.name == "b" else "b"
        bench.pod(victim(last, 1 if last == "a" else 2, "2").deleting().obj())
        assert only(Evict, bench.answer(first)) == []
        # The first is not seen to leave yet.
        assert inside(bench.core).evictions.is_under_way(first.uid)

    @pytest.mark.parametrize("seen", [make_pod("a"), victim("a", 1, "4").deleting()])
    def test_the_last_one_that_is_seen_to_leave_before_the_answer_lets_it_go(self, bench, seen):
        """The server is slow to say what the watch shows already."""
        fill(bench, a=1)
        [eviction] = preempt(bench)
        bench.node(make_node("n2").obj())
        bench.settle()
        assert bench.place("p") == "gated"
        if seen.raw["metadata"].get("deletionTimestamp"):
            bench.pod(seen.obj())
        else:
            bench.drop_pod(seen.obj())
        bench.settle()
        assert bench.phase("p") == "binding"
        assert [e.reason for e in only(RecordEvent, bench.answer(eviction))] == ["Preempted"]
        assert state_of(bench.core)["evictions"] == []

    def test_it_is_not_tried_between_the_answer_and_the_sight_of_it(self, bench):
        """It would find its victim where it was, and look for more."""
        fill(bench, a=1)
        [eviction] = preempt(bench)
        bench.answer(eviction)
        assert inside(bench.core).evictions.is_under_way(P)
        bench.node(make_node("n2").obj())
        bench.settle()
        assert bench.place("p") == "gated"
        show_leaving(bench, "a")
        bench.settle()
        assert bench.node_of("p") == "n2"
        assert [e.victim.name for e in only(Evict, bench.out)] == ["a"]

    def test_it_is_tried_when_they_are_gone_after_the_answer(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        bench.answer(eviction)
        bench.settle()
        assert bench.phase("p") is None
        bench.pod(victim("a", 1, "4").deleting().obj())
        bench.settle()
        assert bench.phase("p") is None
        bench.drop_pod(make_pod("a").obj())
        bench.settle()
        assert bench.phase("p") == "binding"

    def test_nobody_else_is_evicted_meanwhile(self, bench):
        fill(bench, a=1)
        bench.node(make_node("n2").cordoned().obj())
        [_eviction] = preempt(bench)
        bench.node(make_node("n2").offers(cpu="1", memory="8Gi", pods="9").obj())
        bench.tick(400)
        bench.settle()
        assert len(only(Evict, bench.out)) == 1

    def test_an_update_does_not_set_it_free(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        bench.pod(preemptor().label(new="yes").version(2).obj())
        bench.settle()
        assert bench.place("p") == "gated"
        bench.drop_pod(make_pod("a").obj())
        bench.answer(eviction)
        bench.settle()
        assert bench.phase("p") == "binding"


class TestFailure:
    def test_an_eviction_that_fails_lets_the_pod_be_tried_past_its_backoff(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        out = bench.answer(eviction, done=False, message="refused")
        assert only(RecordEvent, out) == []
        assert bench.place("p") == "active"
        assert not inside(bench.core).evictions.is_under_way(P)
        bench.out.clear()
        bench.schedule()
        [again] = only(Evict, bench.out)
        assert again.attempt == 2
        assert again.request != eviction.request

    def test_the_last_victim_is_spared_then(self, bench):
        fill(bench, a=1, b=2, c=3)
        first, second = preempt(bench)
        assert only(Evict, bench.answer(first, done=False, message="refused")) == []
        assert inside(bench.core).evictions.is_under_way(P)
        out = bench.answer(second)
        assert only(Evict, out) == []
        assert [e.name for e in only(RecordEvent, out)] == [second.victim.name]
        assert bench.place("p") == "active"

    def test_a_late_answer_of_an_older_preemption_is_nobodys(self, bench):
        fill(bench, a=1, b=2, c=3)
        first, second = preempt(bench)
        bench.answer(first, done=False, message="refused")
        bench.answer(second, done=False, message="refused")
        bench.out.clear()
        bench.schedule()
        third, fourth = only(Evict, bench.out)
        assert bench.answer(first) == []
        assert bench.answer(second) == []
        bench.answer(third)
        [last] = only(Evict, bench.answer(fourth))
        assert last.attempt == 2

    def test_an_answer_to_a_write_of_an_older_attempt_is_no_answer_to_an_eviction(self, bench):
        bench["One"].line("pre_bind", writes("v", "w", "x", "y", seconds=10))
        bench.pod(preemptor().obj())
        patches = only(PatchObject, bench.schedule())
        bench.tick(10)
        assert bench.place("p") == "backoff"
        fill(bench, a=1)
        bench.tick(10)
        bench.settle()
        [eviction] = only(Evict, bench.out)
        for patch in patches:
            assert bench.answer(patch) == []
        assert inside(bench.core).evictions.is_under_way(P)
        assert [e.name for e in only(RecordEvent, bench.answer(eviction))] == ["a"]


class TestThePodGoesAway:
    """Whoever was asked to leave leaves and is told why; nobody else is asked."""

    def finish(self, bench, first):
        assert first.victim.name == "b"
        [event] = bench.answer(first)
        assert (event.name, event.note) == ("b", "Preempted by pod uid-p on node n1")
        bench.drop_pod(make_pod("b").obj())
        assert state_of(bench.core)["evictions"] == []
        assert bench.node_of("a") == "n1"
        check_room(bench.core)

    def test_deleted_meanwhile(self, bench):
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        bench.drop_pod(make_pod("p").obj())
        assert bench.promise_of("p") is None
        self.finish(bench, first)
        assert bench.place("p") is None

    def test_on_its_way_out(self, bench):
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        bench.pod(preemptor().deleting().obj())
        self.finish(bench, first)

    def test_of_two_only_the_one_that_is_there_goes_on(self, bench):
        """Both wait for the same victim; the pod that asked first is gone when it is answered."""
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        bench.pod(preemptor("q", 20).obj())
        bench.settle()
        bench.drop_pod(make_pod("p").obj())
        [last] = only(Evict, bench.answer(first))
        assert (last.name, last.victim.name) == ("q", "a")

    def test_deleted_while_promises_are_taken_back(self, bench):
        fill(bench, a=1, b=2)
        bench.pod(promised(preemptor("low", 5).gate("x"), "n1").obj())
        preempt(bench)
        bench.drop_pod(make_pod("p").obj())
        [clear] = only(ClearNomination, bench.out)
        assert bench.answer(clear) == []
        assert state_of(bench.core)["evictions"] == []

    def test_bound_by_somebody_else(self, bench):
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        bench.pod(preemptor().on("n1").obj())
        assert bench.promise_of("p") is None
        self.finish(bench, first)
        assert bench.place("p") is None
        assert bench.node_of("p") == "n1"

    def test_one_that_fails_then_is_over(self, bench):
        fill(bench, a=1, b=2)
        [first] = preempt(bench)
        bench.drop_pod(make_pod("p").obj())
        assert bench.answer(first, done=False, message="refused") == []
        assert state_of(bench.core)["evictions"] == []
        assert bench.place("p") is None

    def test_another_pod_of_the_same_name_is_not_held_back(self, bench):
        fill(bench, a=1)
        preempt(bench)
        bench.drop_pod(make_pod("p").obj())
        bench.pod(make_pod("p").uid("uid-second").request(cpu="0").obj())
        bench.settle()
        assert [b.uid for b in only(Bind, bench.out)] == ["uid-second"]


class TestCheckpoints:
    """In every stage, a core that was restored goes on as the other does."""

    def both(self, bench, twin, requests, **answer):
        out = []
        for request in requests:
            out = bench.answer(request, **answer)
            assert twin.answer(request, **answer) == out
        return out

    def test_while_promises_are_taken_back(self, bench):
        fill(bench, a=1, b=2)
        bench.pod(promised(preemptor("low", 5).gate("x"), "n1").obj())
        preempt(bench)
        twin = bench.twin()
        out = self.both(bench, twin, only(ClearNomination, bench.out))
        out = self.both(bench, twin, only(Evict, out))
        self.both(bench, twin, only(Evict, out))
        finish(bench, twin)

    def test_while_most_victims_are_evicted(self, bench):
        fill(bench, a=1, b=2, c=3)
        first, second = preempt(bench)
        bench.answer(first)
        twin = bench.twin()
        out = self.both(bench, twin, [second])
        self.both(bench, twin, only(Evict, out))
        finish(bench, twin)

    def test_while_the_last_is_evicted(self, bench):
        fill(bench, a=1)
        evictions = preempt(bench)
        twin = bench.twin()
        self.both(bench, twin, evictions)
        finish(bench, twin)

    def test_before_the_victims_are_seen_to_leave(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        bench.answer(eviction)
        twin = bench.twin()
        assert inside(twin.core).evictions.is_under_way(P)
        assert tell(bench, twin, lambda b: b.pod(preemptor("q", 20).obj())) == []
        out = tell(bench, twin, lambda b: b.settle())
        assert only(Evict, out) == []
        assert inside(twin.core).evictions.is_under_way(PodUid("uid-q"))
        tell(bench, twin, lambda b: b.drop_pod(make_pod("a").obj()))
        [bind] = only(Bind, tell(bench, twin, lambda b: b.settle()))
        assert bind.name == "q"

    def test_while_two_wait_for_one(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        preempt(bench, name="q", priority=20)
        twin = bench.twin()
        self.both(bench, twin, [eviction], done=False, message="refused")
        assert twin.place("p") == twin.place("q") == "active"

    def test_after_a_failure(self, bench):
        fill(bench, a=1, b=2, c=3)
        first, second = preempt(bench)
        bench.answer(first, done=False, message="refused")
        twin = bench.twin()
        assert self.both(bench, twin, [second]) != []
        assert bench.place("p") == twin.place("p") == "active"
        assert bench.schedule() == twin.schedule()

    def test_requests_go_on_being_numbered_as_they_were(self, bench):
        bench["One"].line("pre_bind", writes("v", "w", "x"), pod="first")
        bench.pod(make_pod("first").request(cpu="1").priority(20).obj())
        bench.settle()
        twin = bench.twin()
        fill(bench, a=1)
        fill(twin, a=1)
        bench.pod(preemptor(cpu="3").obj())
        twin.pod(preemptor(cpu="3").obj())
        mine, others = bench.schedule(), twin.schedule()
        assert only(Evict, mine) != []
        assert mine == others


def tell(bench, twin, step):
    """Do the same to both; return what both did then."""
    before = len(bench.out), len(twin.out)
    step(bench)
    step(twin)
    assert bench.out[before[0] :] == twin.out[before[1] :]
    return bench.out[before[0] :]


def finish(bench, twin):
    """Let the victims go; both land the pod."""
    for name in "abc":
        tell(bench, twin, lambda b, name=name: b.drop_pod(make_pod(name).obj()))
    [bind] = only(Bind, tell(bench, twin, lambda b: b.settle()))
    assert bind.uid == P
    assert bench.core.checkpoint() == twin.core.checkpoint()


def test_what_the_pod_itself_is_told(bench):
    fill(bench, a=1)
    preempt(bench)
    text = (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement "
        "for pod on node n1, preempting 1 victims"
    )
    assert bench.notes("p") == [text]
    [condition] = only(PatchCondition, bench.out)
    assert (condition.reason, condition.message) == ("Unschedulable", text)
    assert condition.nominated_node_name == "n1"
