"""PreBind and PostBind: writes and what has to become true, in turn, in time, or not at all."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.plugin import ObjectPatch, PreBinding
from k8s_scheduler.core.messages.outgoing import Bind, PatchObject
from k8s_scheduler.core.plugins.default_binder import DefaultBinder
from k8s_scheduler.core.plugins.scheduling_gates import SchedulingGates
from tests.builders import make_node
from tests.unit.core.engine.sagas import (
    SagaHarness,
    failures,
    is_untouched,
    send,
    volume,
    writes,
)
from tests.unit.core.harness import only

A = PodUid("uid-a")


@pytest.fixture
def bench():
    bench = SagaHarness("One", "Two", "Three")
    bench.node(make_node("n1").obj())
    return bench


class TestPreBind:
    def test_writes_are_answered_in_any_order(self, bench):
        bench["Two"].line("pre_bind", writes("v", "w", "x"))
        out = send(bench, "a")
        first, second, third = only(PatchObject, out)
        assert [w.object_name for w in (first, second, third)] == ["v", "w", "x"]
        assert len({w.request for w in (first, second, third)}) == 3
        for request in (third, first):
            assert only(Bind, bench.answer(request)) == []
        [bind] = only(Bind, bench.answer(second))
        assert bind.uid == A

    def test_plugins_follow_each_other(self, bench):
        bench["One"].line("pre_bind", writes("v"))
        bench["Two"].line("pre_bind", writes("w"))
        [first] = only(PatchObject, send(bench, "a"))
        assert [who for _, who, _ in bench.calls("pre_bind")] == ["One"]
        [second] = only(PatchObject, bench.answer(first))
        assert second.object_name == "w"
        [bind] = only(Bind, bench.answer(second))
        assert bind.uid == A
        assert [who for _, who, _ in bench.calls("pre_bind")] == ["One", "Two", "Three"]

    def test_what_has_to_become_true_is_waited_for(self, bench):
        bench["Two"].line("pre_bind", writes())
        bench["Two"].line("pre_bound", False)  # noqa: FBT003
        assert only(Bind, send(bench, "a")) == []
        volume(bench, "v", "1")
        assert bench.phase("a") == "pre-binding"
        bench["Two"].line("pre_bound", True)  # noqa: FBT003
        bench.out.clear()
        volume(bench, "v", "2")
        assert [bind.uid for bind in only(Bind, bench.out)] == [A]

    def test_it_is_looked_at_with_the_clock_too(self, bench):
        bench["Two"].line("pre_bind", writes())
        bench["Two"].line("pre_bound", False)  # noqa: FBT003
        send(bench, "a")
        bench["Two"].line("pre_bound", True)  # noqa: FBT003
        bench.out.clear()
        bench.tick(1)
        assert [bind.uid for bind in only(Bind, bench.out)] == [A]

    def test_nothing_is_looked_at_while_a_write_is_under_way(self, bench):
        bench["Two"].line("pre_bind", writes("v"))
        send(bench, "a")
        volume(bench, "v", "1")
        bench.tick(1)
        assert bench.calls("pre_bound") == []

    def test_a_failed_write_is_told_and_tried_again_after_the_backoff(self, bench):
        bench["Two"].line("pre_bind", writes("v", "w"))
        first, second = only(PatchObject, send(bench, "a"))
        out = bench.answer(first, done=False, message="the object has been modified")
        [(name, reason, message)] = failures(out)
        assert (name, reason) == ("a", "SchedulerError")
        assert message.startswith('running PreBind plugin "Two": ')
        assert message.endswith("the object has been modified")
        assert [who for _, who, _ in bench.calls("unreserve")] == ["Three", "Two", "One"]
        is_untouched(bench, "a")
        assert bench.place("a") == "backoff"
        assert bench.answer(second) == []
        assert only(PatchObject, bench.schedule()) == []
        bench.tick(3)
        assert len(only(PatchObject, bench.schedule())) == 2

    def test_a_kind_that_was_not_declared_is_not_written(self, bench):
        patch = ObjectPatch(Kind.STORAGE_CLASS, "", "s", {"metadata": {"labels": {"a": "b"}}})
        bench["Two"].line("pre_bind", PreBinding((patch,), 10.0, "writing"))
        out = send(bench, "a")
        assert only(PatchObject, out) == []
        [(name, reason, message)] = failures(out)
        assert (name, reason) == ("a", "SchedulerError")
        assert message == (
            'running PreBind plugin "Two": TypeError: it would patch a StorageClass, which it does '
            "not declare in `writes`"
        )
        is_untouched(bench, "a")

    def test_an_answer_to_an_older_attempt_is_nobodys(self, bench):
        bench["Two"].line("pre_bind", writes("v", "w"))
        first, second = only(PatchObject, send(bench, "a"))
        bench.answer(first, done=False, message="no")
        bench.tick(3)
        third, fourth = only(PatchObject, bench.schedule())
        assert bench.answer(second, done=False, message="no") == []
        assert bench.phase("a") == "pre-binding"
        bench.answer(third)
        assert [bind.attempt for bind in only(Bind, bench.answer(fourth))] == [2]

    @pytest.mark.parametrize("point", ["pre_bind", "pre_bound"])
    def test_a_plugin_that_raises_ends_it(self, bench, point):
        bench["Two"].line("pre_bind", writes())
        bench["Two"].line(point, ValueError("broken"))
        out = send(bench, "a")
        text = 'running PreBind plugin "Two": ValueError: broken'
        assert failures(out) == [("a", "SchedulerError", text)]
        assert [who for _, who, _ in bench.calls("unreserve")] == ["Three", "Two", "One"]
        assert bench.place("a") == "backoff"
        is_untouched(bench, "a")

    def test_one_that_raises_after_a_while_ends_it_too(self, bench):
        bench["Two"].line("pre_bind", writes())
        bench["Two"].line("pre_bound", False)  # noqa: FBT003
        send(bench, "a")
        bench["Two"].line("pre_bound", ValueError("broken"))
        volume(bench, "v", "1")
        assert bench.notes("a") == ['running PreBind plugin "Two": ValueError: broken']
        is_untouched(bench, "a")

    def test_time_runs_out(self, bench):
        bench["Two"].line("pre_bind", writes("v", seconds=30, errand="moving"))
        [write] = only(PatchObject, send(bench, "a"))
        bench.tick(29)
        assert bench.phase("a") == "pre-binding"
        bench.out.clear()
        bench.tick(1)
        text = 'running PreBind plugin "Two": moving: context deadline exceeded'
        assert failures(bench.out) == [("a", "SchedulerError", text)]
        is_untouched(bench, "a")
        assert bench.answer(write) == []
        assert bench.place("a") == "backoff"

    def test_each_plugin_has_its_own_time(self, bench):
        bench["One"].line("pre_bind", writes("v", seconds=10))
        bench["Two"].line("pre_bind", writes("w", seconds=10))
        [first] = only(PatchObject, send(bench, "a"))
        bench.tick(8)
        bench.answer(first)
        bench.tick(8)
        assert bench.phase("a") == "pre-binding"
        bench.tick(2)
        assert bench.phase("a") is None


class TestPostBind:
    def test_all_are_told_even_if_one_raises(self, bench):
        bench["One"].line("post_bind", ValueError("broken"))
        [bind] = only(Bind, send(bench, "a"))
        bench.result(bind)
        assert bench.calls("post_bind") == [("post_bind", who, "a") for who in bench.actors]
        assert bench.calls("unreserve") == []
        assert bench.notes("a") == ["Successfully assigned default/a to n1"]

    def test_nobody_is_told_of_a_bind_that_failed(self, bench):
        [bind] = only(Bind, send(bench, "a"))
        bench.result(bind, bound=False, message="no")
        assert bench.calls("post_bind") == []
        assert [who for _, who, _ in bench.calls("unreserve")] == ["Three", "Two", "One"]


class TestBrokenContracts:
    """A plugin that answers nonsense is named, and the pod is tried again."""

    @pytest.mark.parametrize(
        ("method", "point"),
        [("reserve", "Reserve"), ("permit", "Permit"), ("pre_bind", "PreBind")],
    )
    def test_nonsense_is_an_error(self, bench, method, point):
        bench["Two"].line(method, "nonsense")
        out = send(bench, "a")
        [(_, reason, message)] = failures(out)
        assert reason == "SchedulerError"
        assert message.startswith(f'running {point} plugin "Two": ')
        is_untouched(bench, "a")
        assert bench.place("a") == "backoff"

    def test_a_bind_plugin_that_raises_is_an_error(self, bench, monkeypatch):
        def fail(*_args):
            raise ValueError("broken")

        monkeypatch.setattr(DefaultBinder, "binds", fail)
        out = send(bench, "a")
        text = 'running Bind plugin "DefaultBinder": ValueError: broken'
        assert failures(out) == [("a", "SchedulerError", text)]
        is_untouched(bench, "a")

    def test_a_pod_whose_gates_cannot_be_read_is_kept_out(self, bench, monkeypatch):
        def fail(*_args):
            raise ValueError("broken")

        monkeypatch.setattr(SchedulingGates, "pre_enqueue", fail)
        send(bench, "a")
        assert bench.place("a") == "gated"
