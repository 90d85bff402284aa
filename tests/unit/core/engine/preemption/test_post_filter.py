"""Promises: who gets one, how long it holds, and victims that were never bound."""

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
from k8s_scheduler.core.plugins.default_preemption import DefaultPreemption
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import pinned, promised
from tests.unit.core.engine.sagas import SagaHarness, check_room, hold, no, writes
from tests.unit.core.harness import only

P = PodUid("uid-p")


@pytest.fixture
def bench():
    bench = SagaHarness("One")
    bench.node(make_node("n1").label(host="n1").obj())
    return bench


def preemptor(name="p", priority=10, cpu="4"):
    return make_pod(name).request(cpu=cpu).priority(priority)


def lesser(name, cpu="4", priority=1):
    return make_pod(name).request(cpu=cpu).priority(priority)


def come(bench, builder):
    """Let a pod come; return what follows."""
    bench.out.clear()
    bench.pod(builder.obj())
    bench.settle()
    return bench.out


def told_promise(instructions, name="p"):
    """Return what is written to the status; None: it is left alone."""
    [written] = [c for c in only(PatchCondition, instructions) if c.name == name] or [None]
    return None if written is None else written.nominated_node_name


class TestVictimsOnTheirWay:
    """A victim that is not bound yet goes back to the queue; nothing is deleted."""

    @pytest.fixture(params=["waiting", "pre-binding"])
    def halted(self, bench, request):
        if request.param == "waiting":
            bench["One"].line("permit", hold(60), pod="a")
        else:
            bench["One"].line("pre_bind", writes("v"), pod="a")
        bench.pod(lesser("a").obj())
        bench.settle()
        assert bench.phase("a") == request.param
        return bench

    def test_is_told_and_sent_back(self, halted):
        out = come(halted, preemptor())
        assert only(Evict, out) == []
        [event] = [e for e in only(RecordEvent, out) if e.reason == "Preempted"]
        assert (event.name, event.type, event.action) == ("a", "Normal", "Preempting")
        assert event.note == "Preempted by pod uid-p on node n1 (in kube-scheduler memory)."
        assert event.related == PodReference("default", "p", P)
        assert halted.calls("unreserve") == [("unreserve", "One", "a")]
        assert halted.place("a") == "backoff"
        check_room(halted.core)

    def test_the_pod_gets_the_room_at_once(self, halted):
        out = come(halted, preemptor())
        assert [bind.uid for bind in only(Bind, out)] == [P]
        assert halted.promise_of("p") is None

    def test_an_answer_it_waited_for_is_nobodys(self, halted):
        patches = only(PatchObject, halted.out)
        come(halted, preemptor())
        assert [i for patch in patches for i in halted.answer(patch)] == []
        halted["One"].waiting.allow(PodUid("uid-a"), "One")
        assert only(Bind, halted.schedule()) == []

    def test_it_is_tried_again_after_its_backoff(self, halted):
        come(halted, preemptor())
        halted["One"].lines.clear()
        halted.drop_pod(make_pod("p").obj())
        halted.tick(5)
        halted.settle()
        assert halted.phase("a") == "binding"

    def test_others_are_evicted_all_the_same(self, bench):
        bench["One"].line("permit", hold(60), pod="a")
        bench.pod(lesser("b", "2", 2).on("n1").obj())
        bench.pod(lesser("a", "2").obj())
        bench.settle()
        out = come(bench, preemptor())
        [eviction] = only(Evict, out)
        assert eviction.victim.name == "b"
        # The last one stays until the others are known to leave.
        assert bench.phase("a") == "waiting"
        bench.drop_pod(make_pod("b").obj())
        bench.answer(eviction)
        assert bench.phase("a") is None
        assert bench.place("p") == "active"
        bench.settle()
        assert bench.phase("p") == "binding"

    def test_one_that_goes_on_meanwhile_is_deleted(self, bench):
        bench["One"].line("permit", hold(60), pod="a")
        bench.pod(lesser("b", "2", 2).on("n1").obj())
        bench.pod(lesser("a", "2").obj())
        bench.settle()
        [eviction] = only(Evict, come(bench, preemptor()))
        bench["One"].waiting.allow(PodUid("uid-a"), "One")
        bench.schedule()
        assert bench.phase("a") == "binding"
        [last] = only(Evict, bench.answer(eviction))
        assert last.victim.name == "a"

    def test_promises_to_lesser_pods_are_taken_back_for_it_too(self, halted):
        halted.pod(promised(preemptor("low", 5).gate("x"), "n1").obj())
        out = come(halted, preemptor())
        [clear] = only(ClearNomination, out)
        assert halted.phase("a") is not None
        halted.answer(clear)
        assert halted.phase("a") is None
        assert halted.promise_of("low") is None

    def test_the_pod_does_not_wait_for_its_backoff_then(self, halted):
        """Nobody will see the victim leave: nothing that happens later would wake the pod."""
        halted.pod(preemptor().obj())
        out = halted.schedule(limit=1)
        assert next(e.reason for e in only(RecordEvent, out) if e.name == "a") == "Preempted"
        assert halted.place("p") == "active"
        assert inside(halted.core).queue.get(P).backoff_expiry > halted.now

    def test_that_its_wait_ends_in_an_error_is_counted(self, bench, monkeypatch):
        ends = []
        meter = inside(bench.core).state.meter
        monkeypatch.setattr(meter, "permit_waited", lambda *end: ends.append(end))
        bench["One"].line("permit", hold(60), pod="a")
        bench.pod(lesser("a").obj())
        bench.settle()
        bench.now += 7
        come(bench, preemptor())
        assert ends == [("Error", 7.0)]

    def test_that_its_pre_bind_ends_in_an_error_is_counted(self, bench, monkeypatch):
        ends = []
        watch = inside(bench.core).state.meter.watches["default-scheduler"]
        monkeypatch.setattr(watch, "took", lambda *end: ends.append(end))
        bench["One"].line("pre_bind", writes("v"), pod="a")
        bench.pod(lesser("a").obj())
        bench.settle()
        bench.now += 7
        come(bench, preemptor())
        assert ("PreBind", "Error", 7.0) in ends

    def test_it_is_over_with_the_last_one(self, halted):
        come(halted, preemptor())
        assert inside(halted.core).state.preemptions.entries() == ()

    def test_its_failure_is_in_kube_schedulers_words_at_permit(self, bench):
        bench["One"].line("permit", hold(60), pod="a")
        bench.pod(lesser("a").obj())
        bench.settle()
        come(bench, preemptor())
        notes = [note for note in bench.notes("a") if not note.startswith("Preempted by")]
        assert notes == ["waiting on permit for pod: preempted"]

    def test_its_failure_is_in_kube_schedulers_words_at_pre_bind(self, bench):
        bench["One"].line("pre_bind", writes("v"), pod="a")
        bench.pod(lesser("a").obj())
        bench.settle()
        come(bench, preemptor())
        notes = [note for note in bench.notes("a") if not note.startswith("Preempted by")]
        assert notes == ['running PreBind plugin "One": preempted by DefaultPreemption']

    def test_a_group_that_falls_apart_with_its_victim(self, bench):
        """Unreserve of the victim rejects the others of its group; all give their room back."""
        waiting = bench["One"].waiting

        def fall_apart(pod):
            for uid in waiting.uids("One"):
                waiting.reject(uid, "One", "the group is incomplete")

        bench["One"].line("permit", hold(60))
        bench["One"].line("unreserve", fall_apart)
        for name in "abc":
            bench.pod(lesser(name, "1").obj())
        bench.settle()
        bench["One"].line("permit", None, pod="p")
        bench.pod(preemptor(cpu="2").obj())
        bench.schedule(limit=1)
        assert inside(bench.core).cache.pod_count == 0
        assert None not in {bench.place(name) for name in "abcp"}
        check_room(bench.core)
        bench.settle()
        assert bench.node_of("p") == "n1"


class TestPromises:
    def test_a_pod_with_victims_is_promised_their_node(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        out = come(bench, preemptor())
        assert bench.promise_of("p") == "n1"
        assert told_promise(out) == "n1"

    def test_it_holds_until_the_status_says_so_and_after(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        come(bench, preemptor())
        bench.pod(preemptor().label(new="yes").version(2).obj())
        assert bench.promise_of("p") == "n1"
        bench.pod(promised(preemptor(), "n1").version(3).obj())
        assert bench.promise_of("p") == "n1"
        bench.pod(preemptor().version(4).obj())
        assert bench.promise_of("p") is None

    def test_it_holds_against_pods_that_are_not_more_important(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        [eviction] = only(Evict, come(bench, preemptor()))
        bench.drop_pod(make_pod("a").obj())
        for priority in (1, 10):
            come(bench, lesser(f"x{priority}", "1", priority))
            assert bench.place(f"x{priority}") == "unschedulable"
        bench.answer(eviction)
        bench.settle()
        assert bench.node_of("p") == "n1"

    def test_a_more_important_pod_takes_the_place(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        [eviction] = only(Evict, come(bench, preemptor()))
        bench.drop_pod(make_pod("a").obj())
        out = come(bench, preemptor("q", 20))
        assert [bind.name for bind in only(Bind, out)] == ["q"]
        bench.answer(eviction)
        bench.tick(20)
        bench.settle()
        assert bench.node_of("p") is None
        assert bench.place("p") == "unschedulable"
        assert bench.promise_of("p") is None

    def test_the_promised_node_comes_first_even_if_another_is_better(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        [eviction] = only(Evict, come(bench, preemptor()))
        bench.node(make_node("n2").offers(cpu="64", memory="64Gi", pods="110").obj())
        bench.drop_pod(make_pod("a").obj())
        bench.answer(eviction)
        bench.settle()
        assert bench.node_of("p") == "n1"

    def test_if_the_promised_node_does_not_fit_another_is_taken(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        [eviction] = only(Evict, come(bench, preemptor()))
        bench.node(make_node("n1").label(host="n1").cordoned().obj())
        bench.node(make_node("n2").obj())
        bench.answer(eviction)
        bench.pod(lesser("a").on("n1").deleting().obj())
        bench.settle()
        assert bench.node_of("p") == "n2"
        assert bench.promise_of("p") is None

    def test_two_of_a_kind_do_not_share_a_victim(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        [eviction] = only(Evict, come(bench, preemptor("p")))
        out = come(bench, preemptor("q"))
        assert only(Evict, out) == []
        assert bench.promise_of("q") is None
        bench.drop_pod(make_pod("a").obj())
        bench.answer(eviction)
        bench.settle()
        assert (bench.node_of("p"), bench.node_of("q")) == ("n1", None)

    def test_two_of_a_kind_take_a_victim_each(self, bench):
        for name in "ab":
            bench.pod(lesser(name, "2").on("n1").obj())
        [first] = only(Evict, come(bench, preemptor("p", cpu="2")))
        [second] = only(Evict, come(bench, preemptor("q", cpu="2")))
        assert {first.victim.name, second.victim.name} == {"a", "b"}
        assert (bench.promise_of("p"), bench.promise_of("q")) == ("n1", "n1")
        bench.answer(first)
        # The other's victim is counted in, but it is on its way out.
        assert only(Evict, bench.answer(second)) == []
        for name in "ab":
            bench.drop_pod(make_pod(name).obj())
        bench.settle()
        assert (bench.node_of("p"), bench.node_of("q")) == ("n1", "n1")

    def test_it_ends_with_the_pod(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        come(bench, preemptor())
        come(bench, lesser("x", "0", 5).label(small="yes"))
        bench.drop_pod(make_pod("p").obj())
        assert bench.promise_of("p") is None

    def test_whoever_was_kept_out_by_it_is_woken_when_it_ends(self, bench):
        bench.pod(lesser("a").on("n1").obj())
        come(bench, preemptor())
        bench.drop_pod(make_pod("a").obj())
        come(bench, lesser("x", "1", 5))
        assert bench.place("x") == "unschedulable"
        bench.drop_pod(make_pod("p").obj())
        bench.settle()
        assert bench.phase("x") == "binding"


class TestBrokenPromises:
    """When a promise is taken back with a failed attempt, and when it is left alone."""

    def attempt(self, bench, builder):
        """Let a pod come that was promised n1; return its promise and what its status gets."""
        out = come(bench, promised(builder, "n1"))
        return bench.promise_of("p"), told_promise(out)

    def test_nobodys_leaving_would_help(self, bench):
        assert self.attempt(bench, preemptor(cpu="64")) == (None, "")

    def test_there_is_no_node(self, bench):
        bench.drop_node("n1")
        assert self.attempt(bench, preemptor()) == (None, "")

    def test_the_pod_may_not_preempt(self, bench):
        builder = preemptor(cpu="64")
        builder.raw["spec"]["preemptionPolicy"] = "Never"
        assert self.attempt(bench, builder) == ("n1", None)

    def test_its_victims_are_on_their_way_out(self, bench):
        victim = lesser("a").on("n1").deleting()
        victim.raw["status"]["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
        bench.pod(victim.obj())
        assert self.attempt(bench, preemptor()) == ("n1", None)

    @pytest.mark.parametrize("point", ["reserve", "permit"])
    def test_a_plugin_rejects_it(self, bench, point):
        bench["One"].line(point, no())
        assert self.attempt(bench, preemptor()) == (None, "")

    @pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
    def test_a_plugin_fails(self, bench, point):
        bench["One"].line(point, ValueError("broken"))
        assert self.attempt(bench, preemptor()) == (None, "")

    def test_binding_fails(self, bench):
        [bind] = only(Bind, come(bench, promised(preemptor(), "n1")))
        out = bench.result(bind, bound=False, message="no")
        assert told_promise(out) == ""
        assert bench.promise_of("p") is None

    def test_another_place_is_found(self, bench):
        bench.node(make_node("n2").label(host="n2").obj())
        bench.pod(lesser("a").on("n2").obj())
        assert self.attempt(bench, pinned(preemptor(), "n2")) == ("n2", "n2")

    def test_an_error_of_a_post_filter_leaves_it_and_is_part_of_the_text(self, bench, monkeypatch):
        def fail(*_args):
            raise ValueError("broken")

        monkeypatch.setattr(DefaultPreemption, "post_filter", fail)
        assert self.attempt(bench, preemptor(cpu="64"))[0] == "n1"
        [condition] = only(PatchCondition, bench.out)
        assert condition.reason == "Unschedulable"
        assert condition.message.startswith("0/1 nodes are available: 1 Insufficient cpu. ")
        assert "broken" in condition.message


class TestDuration:
    """How long it took is shown by how it ended."""

    def ends(self, cpu):
        """Let a pod come that needs room; return how often PostFilter ended in which way."""
        metrics, bench = Metrics(), SagaHarness("One")
        bench.core = Scheduler(bench.core.setup, metrics=metrics.scheduler)
        bench.node(make_node("n1").obj())
        bench.pod(lesser("a").on("n1").obj())
        come(bench, preemptor(cpu=cpu))
        name = "scheduler_framework_extension_point_duration_seconds_count"
        labels = {"extension_point": "PostFilter", "profile": "default-scheduler"}
        value = metrics.registry.get_sample_value
        statuses = ("Success", "Unschedulable", "Error")
        return [s for s in statuses if value(name, labels | {"status": s})]

    def test_with_a_node_that_victims_leave(self):
        assert self.ends("4") == ["Success"]

    def test_without_one(self):
        assert self.ends("64") == ["Unschedulable"]

    def test_with_a_plugin_that_failed(self, monkeypatch):
        def fail(*_args):
            raise ValueError("broken")

        monkeypatch.setattr(DefaultPreemption, "post_filter", fail)
        assert self.ends("64") == ["Error"]
