"""Where a pod will go is in its status, if it is not bound at once; a failure takes it back."""

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.plugin import PreBinding
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    Evict,
    Nominate,
    PatchCondition,
    PatchObject,
)
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import promised
from tests.unit.core.engine.sagas import SagaHarness, hold, no, send, writes
from tests.unit.core.harness import only

A = PodUid("uid-a")


@pytest.fixture
def bench():
    bench = SagaHarness("One", "Two")
    bench.node(make_node("n1").obj())
    return bench


def pod(name="a", cpu="1"):
    return make_pod(name).request(cpu=cpu)


def taken_back(instructions):
    """Return what the failed pod's status gets; None: it is left alone."""
    [written] = only(PatchCondition, instructions)
    return written.nominated_node_name


class TestWhenItIsSaid:
    def test_while_it_waits_for_a_permit(self, bench):
        bench["Two"].line("permit", hold())
        out = send(bench, "a")
        assert only(Nominate, out) == [
            Nominate(uid=A, namespace="default", name="a", attempt=1, node="n1")
        ]

    def test_before_anything_is_written_for_it(self, bench):
        bench["Two"].line("pre_bind", writes("v", "w"))
        out = [i for i in send(bench, "a") if isinstance(i, Nominate | PatchObject)]
        assert [type(i) for i in out] == [Nominate, PatchObject, PatchObject]

    def test_while_something_must_become_true(self, bench):
        bench["Two"].line("pre_bind", PreBinding((), 10.0, "waiting"))
        bench["Two"].line("pre_bound", lambda _pod: False)
        assert [n.node for n in only(Nominate, send(bench, "a"))] == ["n1"]

    def test_not_if_it_is_bound_at_once(self, bench):
        out = send(bench, "a")
        assert only(Nominate, out) == []
        assert len(only(Bind, out)) == 1

    def test_once_for_all_that_it_waits_for(self, bench):
        bench["One"].line("permit", hold())
        bench["One"].line("pre_bind", writes("v"))
        bench["Two"].line("pre_bind", writes("w"))
        send(bench, "a")
        bench["One"].waiting.allow(A, "One")
        for _ in range(2):
            [patch] = only(PatchObject, bench.schedule() or bench.out)[-1:]
            bench.answer(patch)
        assert bench.phase("a") == "binding"
        assert len(only(Nominate, bench.out)) == 1

    def test_not_if_its_status_says_so_already(self, bench):
        bench["One"].line("permit", hold())
        bench.pod(promised(pod(), "n1").obj())
        assert only(Nominate, bench.schedule()) == []
        assert bench.phase("a") == "waiting"

    def test_if_its_status_names_another_node(self, bench):
        bench["One"].line("permit", hold())
        bench.pod(promised(pod(), "elsewhere").obj())
        assert [n.node for n in only(Nominate, bench.schedule())] == ["n1"]

    def test_not_if_it_is_turned_away_at_once(self, bench):
        bench["One"].line("permit", hold())
        bench["Two"].line("permit", no())
        out = send(bench, "a")
        assert only(Nominate, out) == []
        assert taken_back(out) is None


class TestItIsNoPromise:
    """The room is taken anyway; what the watch shows of it changes nothing."""

    def test_while_the_pod_is_on_its_way(self, bench):
        bench["One"].line("permit", hold())
        send(bench, "a")
        bench.pod(promised(pod(), "n1").version(2).obj())
        assert bench.promise_of("a") is None
        assert bench.phase("a") == "waiting"

    def test_nor_when_it_is_bound(self, bench):
        bench["One"].line("permit", hold())
        send(bench, "a")
        bench["One"].waiting.allow(A, "One")
        [bind] = only(Bind, bench.schedule())
        bench.result(bind)
        bench.pod(pod().on("n1").version(3).obj())
        assert bench.promise_of("a") is None
        assert only(PatchCondition, bench.out) == []


class TestTakenBack:
    """With the condition of a failure, even if the watch has not shown it yet."""

    @pytest.fixture(params=["not seen yet", "seen"])
    def waiting(self, bench, request):
        bench["One"].line("permit", hold(10))
        send(bench, "a")
        if request.param == "seen":
            bench.pod(promised(pod(), "n1").version(2).obj())
        return bench

    def test_rejected(self, waiting):
        waiting["One"].waiting.reject(A, "One", "no")
        assert taken_back(waiting.schedule()) == ""
        assert waiting.promise_of("a") is None

    def test_too_late(self, waiting):
        waiting.tick(10)
        assert taken_back(waiting.out) == ""

    def test_preempted(self, waiting):
        waiting.pod(pod("p", "4").priority(10).obj())
        out = waiting.schedule(limit=1)
        assert only(Evict, out) == []
        [written] = [c for c in only(PatchCondition, out) if c.name == "a"]
        assert written.nominated_node_name == ""

    def test_refused_by_the_server(self, waiting):
        waiting["One"].waiting.allow(A, "One")
        [bind] = only(Bind, waiting.schedule())
        out = waiting.result(bind, bound=False, message="no")
        assert taken_back(out) == ""

    def test_a_plugin_fails_before_the_bind(self, waiting):
        waiting["Two"].line("pre_bind", ValueError("broken"))
        waiting["One"].waiting.allow(A, "One")
        assert taken_back(waiting.schedule()) == ""

    def test_a_write_is_refused(self, bench):
        bench["One"].line("pre_bind", writes("v"))
        [patch] = only(PatchObject, send(bench, "a"))
        assert taken_back(bench.answer(patch, done=False, message="no")) == ""

    def test_by_a_core_that_was_restored(self, waiting):
        twin = waiting.twin()
        twin.tick(10)
        assert taken_back(twin.out) == ""

    def test_nothing_if_nothing_was_said(self, bench):
        [bind] = only(Bind, send(bench, "a"))
        assert taken_back(bench.result(bind, bound=False, message="no")) is None
