"""Decisions that wait for extenders, with a fake one."""

from dataclasses import replace

import pytest

from k8s_scheduler.core.engine.metering.event_labels import EVENTS
from k8s_scheduler.core.engine.pods.directory import Where
from k8s_scheduler.core.messages.incoming import (
    ExtenderAnswer,
    PodChanged,
    RequestResult,
    Restore,
)
from k8s_scheduler.core.messages.outgoing import AskExtender, Bind, Evict, RecordEvent, Verb
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.fakes.extender import FakeExtender
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, zoned
from tests.unit.core.harness import Harness, only, profile


def core(*extenders, nodes=("n1", "n2", "n3")):
    h = Harness(Setup(profiles=(profile(),), extenders=extenders or (FakeExtender(),)))
    for name in nodes:
        h.node(make_node(name).obj())
    return h


def extended(name, **requests):
    return make_pod(name).label(extended="yes").request(**requests or {"cpu": "1"})


def ask(h):
    (question,) = only(AskExtender, h.schedule())
    return question


def answer(h, question, **said):
    return h.tell(ExtenderAnswer(h.now, question.uid, question.attempt, question.request, **said))


def passing(h, question, *nodes):
    """Answer the filter question; return the next one."""
    (following,) = only(AskExtender, answer(h, question, nodes=nodes))
    return following


class TestAsking:
    def test_the_feasible_nodes_are_asked_about(self):
        h = core()
        h.node(make_node("n4").cordoned().obj())
        h.pod(extended("p").obj())
        question = ask(h)
        assert (question.extender, question.verb) == ("ext", Verb.FILTER)
        assert question.nodes == ("n1", "n2", "n3")
        assert h.core.binding_count == 0

    def test_what_it_allows_and_prefers_decides(self):
        h = core()
        h.pod(extended("p").obj())
        second = passing(h, ask(h), "n2", "n3")
        assert (second.verb, second.nodes) == (Verb.PRIORITIZE, ("n2", "n3"))
        (bind,) = only(Bind, answer(h, second, scores={"n2": 0, "n3": 10}))
        assert bind.node == "n3"

    def test_several_are_asked_in_turn_ignorable_ones_last(self):
        lax = FakeExtender("lax", ignorable=True, prioritizes=False)
        strict = FakeExtender("strict", prioritizes=False)
        h = core(lax, strict)
        h.pod(extended("p").obj())
        first = ask(h)
        second = passing(h, first, "n1", "n2")
        assert [first.extender, second.extender] == ["strict", "lax"]
        assert second.nodes == ("n1", "n2")
        (bind,) = only(Bind, answer(h, second, nodes=("n2",)))
        assert bind.node == "n2"

    def test_one_that_only_prefers_is_not_asked_to_filter(self):
        h = core(FakeExtender(filters=False))
        h.pod(extended("p").obj())
        assert ask(h).verb is Verb.PRIORITIZE

    def test_nobody_is_asked_where_nothing_fits(self):
        h = core(nodes=())
        h.node(make_node("n").cordoned().obj())
        h.pod(extended("p").obj())
        out = h.schedule()
        assert only(AskExtender, out) == []
        assert "unschedulable" in only(RecordEvent, out)[0].note


class TestRefusals:
    def test_all_refused_says_why(self):
        h = core()
        h.pod(extended("p").obj())
        out = answer(h, ask(h), refused={"n1": "no disk", "n2": "no disk", "n3": "too hot"})
        (event,) = only(RecordEvent, out)
        assert event.note.startswith("0/3 nodes are available: 1 too hot, 2 no disk.")
        assert inside(h.core).queue.get("uid-p").rejectors == ("Extender",)

    def test_any_event_tries_again(self):
        h = core()
        h.pod(extended("p").obj())
        answer(h, ask(h), unresolvable={"n1": "no", "n2": "no", "n3": "no"})
        h.tick(20)
        assert only(AskExtender, h.schedule()) == []
        h.node(make_node("n4").obj())
        assert "n4" in ask(h).nodes

    def test_an_error_fails_the_attempt(self):
        h = core()
        h.pod(extended("p").obj())
        (event,) = only(RecordEvent, answer(h, ask(h), error="connection refused"))
        assert event.note == "connection refused"
        h.tick(20)
        assert ask(h).attempt == 2

    def test_an_ignorable_one_that_fails_is_done_without(self):
        h = core(FakeExtender(ignorable=True, prioritizes=False))
        h.pod(extended("p").obj())
        assert only(Bind, answer(h, ask(h), error="connection refused"))

    def test_a_preference_that_fails_is_done_without(self):
        h = core()
        h.pod(extended("p").obj())
        second = passing(h, ask(h), "n2")
        (bind,) = only(Bind, answer(h, second, error="timeout"))
        assert bind.node == "n2"


class TestMeanwhile:
    def test_pods_without_an_extender_pass_it_by(self):
        h = core()
        h.pod(extended("p").obj())
        ask(h)
        h.pod(make_pod("q").request(cpu="1").obj())
        assert [bind.name for bind in only(Bind, h.schedule())] == ["q"]

    def test_others_with_an_extender_wait_their_turn(self):
        h = core()
        h.pod(extended("p").obj())
        first = ask(h)
        h.pod(extended("q").obj())
        assert h.schedule() == []
        assert not h.core.has_work
        last = passing(h, first, "n1")
        answer(h, last, scores={})
        question = ask(h)
        assert (question.name, question.attempt) == ("q", 1)

    def test_a_node_that_filled_up_is_judged_again(self):
        h = core(nodes=("n1", "n2"))
        h.pod(extended("p", cpu="3").obj())
        second = passing(h, ask(h), "n1", "n2")
        h.pod(make_pod("other").request(cpu="3").on("n1").obj())
        (bind,) = only(Bind, answer(h, second, scores={"n1": 10}))
        assert bind.node == "n2"

    def test_a_node_that_came_later_was_not_asked_about_and_wakes_the_pod(self):
        h = core(nodes=("n1",))
        h.pod(extended("p", cpu="3").obj())
        second = passing(h, ask(h), "n1")
        h.pod(make_pod("other").request(cpu="3").on("n1").obj())
        h.node(make_node("n2").obj())
        assert only(Bind, answer(h, second, scores={})) == []
        h.tick(20)
        assert ask(h).nodes == ("n2",)

    @pytest.mark.parametrize("what", ["deleted", "bound", "terminating"])
    def test_a_pod_that_needs_no_decision_any_more(self, what):
        h = core()
        pod = extended("p")
        h.pod(pod.obj())
        question = ask(h)
        h.pod(extended("q").obj())
        h.schedule()
        if what == "deleted":
            h.drop_pod(pod.obj())
        else:
            h.pod((pod.on("n1") if what == "bound" else pod.deleting()).obj())
        assert answer(h, question, nodes=("n2",)) == []
        assert ask(h).name == "q"
        assert inside(h.core).cache.pod_count == (what == "bound")

    def test_a_late_answer_is_nobodys(self):
        h = core()
        h.pod(extended("p").obj())
        first = ask(h)
        passing(h, first, "n1")
        assert answer(h, first, nodes=("n2",)) == []

    def test_a_victim_that_waits_for_extenders_is_still_there(self):
        h = Harness(replace(FULL, extenders=(FakeExtender(prioritizes=False),)))
        for node in (zoned("n1"), zoned("n2").cordoned()):
            h.node(node.obj())
        h.pod(extended("v", cpu="4").priority(1).obj())
        (bind,) = only(Bind, answer(h, ask(h), nodes=("n1",)))
        h.pod(make_pod("p").request(cpu="4").priority(10).obj())
        (evict,) = only(Evict, h.schedule())
        h.result(bind, bound=False, message="no")
        h.node(zoned("n2").obj())
        h.tick(20)
        assert ask(h).name == "v"
        h.tell(RequestResult(h.now, evict.uid, evict.attempt, evict.request, done=True))
        h.schedule()
        # Its deletion was agreed to and no watch has shown it: that is waited for, as ever.
        assert inside(h.core).evictions.is_under_way(evict.uid)
        h.drop_pod(extended("v").obj())
        assert [b.name for b in h.binds()] == ["p"]

    def test_one_that_waits_for_extenders_is_known(self):
        h = core()
        pod = extended("p").obj()
        h.pod(pod)
        ask(h)
        pods = inside(h.core).state.pods
        assert pods.where("uid-p") is Where.SUSPENDED
        assert EVENTS[PodChanged](PodChanged(h.now, "uid-p", pod), pods) == "UnscheduledPodUpdate"
        assert h.core.holdings.has_pod(pod)
        assert list(h.core.holdings.pods()) == [pod]

    def test_a_checkpoint_in_the_middle(self):
        h = core()
        h.pod(extended("p").obj())
        h.pod(extended("q").obj())
        second = passing(h, ask(h), "n1", "n2")
        setup = Setup(profiles=(profile(),), extenders=(FakeExtender(),))
        twin = Scheduler(setup)
        twin.handle(Restore(h.now, h.core.checkpoint()))
        said = ExtenderAnswer(h.now, second.uid, second.attempt, second.request, scores={"n2": 10})
        assert twin.handle(said) == h.core.handle(said) != []
