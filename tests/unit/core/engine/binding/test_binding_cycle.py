"""Reserve and Permit: who is asked, in which order, and what is given back."""

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.plugin import Reservation
from k8s_scheduler.core.messages.outgoing import Bind
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine import sagas
from tests.unit.core.engine.sagas import (
    Actor,
    SagaHarness,
    check_room,
    failures,
    hold,
    is_untouched,
    no,
    send,
    volume,
    writes,
)
from tests.unit.core.harness import only

A, B, C = (PodUid(f"uid-{name}") for name in "abc")


@pytest.fixture
def bench():
    bench = SagaHarness("One", "Two", "Three")
    bench.node(make_node("n1").obj())
    return bench


class TestReserve:
    def test_all_are_asked_in_order_before_any_permit(self, bench):
        [bind] = only(Bind, send(bench, "a"))
        assert bind.node == "n1"
        points = ("reserve", "permit", "pre_bind")
        assert bench.calls() == [(p, who, "a") for p in points for who in bench.actors]

    def test_who_goes_by_what_it_prepared_is_asked_about_no_other_pod(self, monkeypatch):
        class Frugal(Actor):
            only_prepared = True

        monkeypatch.setattr(sagas, "Actor", Frugal)
        bench = SagaHarness("One", "Two")
        bench.node(make_node("n1").obj())
        [bind] = only(Bind, send(bench, "a"))
        assert bind.node == "n1"
        assert bench.calls() == [("permit", who, "a") for who in ("One", "Two")]

    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_a_rejection_undoes_all_in_reverse(self, bench, number):
        names = list(bench.actors)
        bench[names[number]].line("reserve", no("not now"))
        out = send(bench, "a")
        asked = [("reserve", who, "a") for who in names[: number + 1]]
        assert bench.calls() == asked + [("unreserve", who, "a") for who in reversed(names)]
        text = "0/1 nodes are available: 1 not now."
        assert failures(out) == [("a", "Unschedulable", text)]
        assert bench.notes("a") == [text]
        assert only(Bind, out) == []
        is_untouched(bench, "a")

    def test_the_plugin_that_rejects_is_to_blame(self, bench):
        bench["Two"].line("reserve", no())
        send(bench, "a")
        assert inside(bench.core).queue.get(A).rejectors == ("Two",)
        assert bench.place("a") == "unschedulable"

    def test_a_rejected_pod_does_not_wake_itself(self, bench):
        bench["Two"].line("reserve", no())
        send(bench, "a")
        bench.settle()
        assert len(bench.calls("reserve")) == 2
        assert bench.place("a") == "unschedulable"

    @pytest.mark.parametrize("point", ["reserve", "permit"])
    def test_rejected_pods_do_not_wake_each_other(self, bench, point):
        """An attempt that took nothing in the end is no news to anybody."""
        bench["Two"].line(point, no())
        send(bench, "a", cpu="1")
        send(bench, "b", cpu="2")
        bench.settle()
        assert (bench.place("a"), bench.place("b")) == ("unschedulable", "unschedulable")
        assert len(bench.notes("a")) == len(bench.notes("b")) == 1

    @pytest.mark.parametrize(
        "happens",
        [
            lambda bench: bench.node(make_node("n2").obj()),
            lambda bench: bench.node(make_node("n1").label(a="b").obj()),
            lambda bench: bench.pod(make_pod("x").on("n1").obj()),
            lambda bench: bench.drop_pod(make_pod("old").obj()),
        ],
        ids=["node", "label", "pod", "gone pod"],
    )
    def test_whatever_happens_lets_it_be_tried_again(self, bench, happens):
        bench.pod(make_pod("old").on("n1").obj())
        bench["Two"].line("reserve", no())
        send(bench, "a")
        bench.settle()
        bench["Two"].lines.clear()
        happens(bench)
        bench.settle()
        assert bench.phase("a") == "binding"

    def test_so_does_a_change_of_an_object(self, bench):
        bench["Two"].line("reserve", no())
        send(bench, "a")
        bench.settle()
        bench["Two"].lines.clear()
        volume(bench, "v", "1")
        bench.settle()
        assert bench.phase("a") == "binding"

    def test_room_is_free_for_the_next_pod_of_the_same_batch(self, bench):
        bench["One"].line("reserve", no(), pod="a")
        out = send(bench, "a", "b", cpu="4")
        assert [bind.name for bind in only(Bind, out)] == ["b"]

    def test_a_plugin_that_raises_is_named(self, bench):
        bench["Two"].line("reserve", ValueError("broken"))
        out = send(bench, "a")
        text = 'running Reserve plugin "Two": ValueError: broken'
        assert failures(out) == [("a", "SchedulerError", text)]
        assert [who for _, who, _ in bench.calls("unreserve")] == ["Three", "Two", "One"]
        assert bench.place("a") == "backoff"
        is_untouched(bench, "a")

    @pytest.mark.parametrize("point", ["reserve", "permit"])
    def test_an_unreserve_that_raises_keeps_nothing_from_being_given_back(self, bench, point):
        volume(bench, "v", "1")
        changed = inside(bench.core).cache.objects.get(Kind.PERSISTENT_VOLUME, "", "v")
        bench["One"].line("reserve", Reservation(((Kind.PERSISTENT_VOLUME, changed),)))
        bench["Two"].line("unreserve", ValueError("broken"))
        bench["Three"].line(point, no())
        send(bench, "a")
        assert [who for _, who, _ in bench.calls("unreserve")] == ["Three", "Two", "One"]
        assert no_object_is_assumed(bench)
        is_untouched(bench, "a")
        bench["Three"].lines.clear()
        bench.node(make_node("n1").label(new="yes").obj())
        bench.settle()
        assert bench.phase("a") == "binding"

    @pytest.mark.parametrize("phase", ["waiting", "pre-binding", "binding"])
    def test_an_unreserve_that_raises_for_a_pod_that_is_gone(self, bench, phase):
        reach(bench, "a", phase)
        bench["Two"].line("unreserve", ValueError("broken"))
        bench.drop_pod(make_pod("a").obj())
        assert bench.node_of("a") is None
        assert len(inside(bench.core).flights) == 0
        check_room(bench.core)

    def test_what_is_reserved_is_seen_by_others_and_given_back(self, bench):
        volume(bench, "v", "1")
        objects = inside(bench.core).cache.objects
        volume_now = objects.get(Kind.PERSISTENT_VOLUME, "", "v")
        volume_then = object_with_label(volume_now, "x")
        seen = []
        bench["One"].line("reserve", Reservation(((Kind.PERSISTENT_VOLUME, volume_then),)))
        look = lambda _pod: seen.append(objects.get(Kind.PERSISTENT_VOLUME, "", "v"))  # noqa: E731
        bench["Two"].line("reserve", look)
        bench["Three"].line("reserve", no())
        send(bench, "a")
        assert seen == [volume_then]
        assert objects.get(Kind.PERSISTENT_VOLUME, "", "v") == volume_now
        assert no_object_is_assumed(bench)


class TestPermit:
    def test_a_rejection_ends_the_attempt(self, bench):
        bench["Two"].line("permit", no("not you", plugin="Two"))
        out = send(bench, "a")
        text = "0/1 nodes are available: 1 not you."
        assert failures(out) == [("a", "Unschedulable", text)]
        assert [who for _, who, _ in bench.calls("permit")] == ["One", "Two"]
        assert [who for _, who, _ in bench.calls("unreserve")] == ["Three", "Two", "One"]
        assert inside(bench.core).queue.get(A).rejectors == ("Two",)
        is_untouched(bench, "a")

    def test_a_rejection_after_a_wait_does_not_wait(self, bench):
        bench["One"].line("permit", hold())
        bench["Two"].line("permit", no("not you"))
        send(bench, "a")
        assert bench.place("a") == "unschedulable"
        assert bench.phase("a") is None

    def test_one_that_raises_is_an_error(self, bench):
        bench["Two"].line("permit", ValueError("broken"))
        out = send(bench, "a")
        text = 'running Permit plugin "Two": ValueError: broken'
        assert failures(out) == [("a", "SchedulerError", text)]
        assert bench.place("a") == "backoff"
        is_untouched(bench, "a")

    def test_a_pod_that_waits_keeps_its_room_and_lets_others_pass(self, bench):
        bench["Two"].line("permit", hold(), pod="a")
        out = send(bench, "a", "b", "c", cpu="2")
        assert [bind.name for bind in only(Bind, out)] == ["b"]
        assert bench.phase("a") == "waiting"
        assert bench.node_of("a") == "n1"
        assert bench.place("c") == "unschedulable"

    def test_the_plugins_that_wait_are_all_to_allow(self, bench):
        bench["One"].line("permit", hold())
        bench["Three"].line("permit", hold())
        send(bench, "a")
        bench["One"].waiting.allow(A, "One")
        assert only(Bind, bench.schedule()) == []
        bench["Two"].waiting.allow(A, "Two")
        assert only(Bind, bench.schedule()) == []
        bench["Three"].waiting.allow(A, "Three")
        [bind] = only(Bind, bench.schedule())
        assert bind.uid == A

    def test_who_waits_for_whom(self, bench):
        bench["One"].line("permit", hold())
        bench["Two"].line("permit", hold(), pod="b")
        send(bench, "a", "b", "c", cpu="1")
        waiting = bench["One"].waiting
        assert waiting.uids("One") == (A, B, C)
        assert waiting.uids("Two") == (B,)
        assert waiting.uids("Three") == ()
        assert waiting.pod(B).metadata.name == "b"
        waiting.allow(B, "Two")
        assert waiting.uids("Two") == ()
        bench.drop_pod(make_pod("a").obj())
        assert waiting.pod(A) is None

    def test_the_permit_of_another_pod_may_allow_and_so_the_group_goes_together(self, bench):
        def second(pod):
            for uid in bench["Two"].waiting.uids("Two"):
                bench["Two"].waiting.allow(uid, "Two")

        bench["Two"].line("permit", hold(), pod="a")
        bench["Two"].line("permit", second, pod="b")
        assert only(Bind, send(bench, "a")) == []
        assert sorted(bind.name for bind in only(Bind, send(bench, "b"))) == ["a", "b"]

    def test_post_bind_of_another_pod_may_allow(self, bench):
        bench["Two"].line("permit", hold(), pod="a")
        bench["Two"].line("post_bind", lambda _pod: bench["Two"].waiting.allow(A, "Two"))
        [bind] = only(Bind, send(bench, "a", "b"))
        [second] = only(Bind, bench.result(bind))
        assert second.uid == A

    def test_unreserve_of_one_may_reject_all_others(self, bench):
        def send_back(pod):
            for uid in bench["Two"].waiting.uids("Two"):
                bench["Two"].waiting.reject(uid, "Two", "the group is incomplete")

        bench["Two"].line("permit", hold())
        bench["Two"].line("permit", no(), pod="c")
        bench["Two"].line("unreserve", send_back)
        send(bench, "a", "b")
        bench.out.clear()
        send(bench, "c")
        text = "0/1 nodes are available: 1 the group is incomplete."
        assert bench.notes("a") == bench.notes("b") == [text]
        assert [call for call in bench.calls("unreserve") if call[1] == "Two"] == [
            ("unreserve", "Two", name) for name in "cab"
        ]
        check_room(bench.core)
        assert inside(bench.core).cache.pod_count == 0

    def test_unreserve_of_another_pod_may_allow(self, bench):
        bench["Two"].line("permit", hold(), pod="a")
        bench["One"].line("permit", no(), pod="b")
        bench["Two"].line("unreserve", lambda _pod: bench["Two"].waiting.allow(A, "Two"))
        [bind] = only(Bind, send(bench, "a", "b"))
        assert bind.uid == A

    def test_a_pod_that_is_rejected_twice_fails_once(self, bench):
        def twice(pod):
            bench["One"].waiting.reject(A, "One", "first")
            bench["Two"].waiting.reject(A, "Two", "second")

        bench["One"].line("permit", hold(), pod="a")
        bench["Two"].line("permit", hold(), pod="a")
        bench["One"].line("permit", twice, pod="b")
        send(bench, "a")
        send(bench, "b")
        assert bench.notes("a") == ["0/1 nodes are available: 1 first."]
        queued = inside(bench.core).queue.get(A)
        assert (queued.unschedulable_count, queued.rejectors) == (1, ("One",))

    def test_two_rejections_with_news_leave_the_pod_in_one_place(self, bench):
        def twice(pod):
            bench["One"].waiting.reject(A, "One", "first")
            bench["One"].waiting.reject(A, "One", "again")

        bench["One"].line("permit", hold(), pod="a")
        bench["One"].line("permit", twice, pod="b")
        send(bench, "a")
        bench.node(make_node("n2").obj())
        send(bench, "b")
        assert len(bench.notes("a")) == 1
        assert bench.place("a") == "backoff"
        assert A not in inside(bench.core).queue.parked

    def test_who_spoke_first_is_right(self, bench):
        def both(pod):
            bench["One"].waiting.allow(A, "One")
            bench["One"].waiting.reject(A, "One", "too late")

        bench["One"].line("permit", hold(), pod="a")
        bench["One"].line("permit", both, pod="b")
        send(bench, "a")
        assert sorted(bind.name for bind in only(Bind, send(bench, "b"))) == ["a", "b"]

    def test_one_may_allow_for_another_before_it_waits_itself(self, bench):
        def relay(pod):
            bench["One"].waiting.allow(A, "One")
            return hold()

        bench["One"].line("permit", hold())
        bench["Two"].line("permit", relay)
        assert only(Bind, send(bench, "a")) == []
        assert bench.phase("a") == "waiting"
        assert bench["Two"].waiting.uids("Two") == (A,)
        bench["Two"].waiting.allow(A, "Two")
        assert [bind.uid for bind in only(Bind, bench.schedule())] == [A]

    def test_one_may_allow_for_another_and_let_the_pod_pass(self, bench):
        bench["One"].line("permit", hold())
        bench["Two"].line("permit", lambda _pod: bench["One"].waiting.allow(A, "One"))
        assert [bind.uid for bind in only(Bind, send(bench, "a"))] == [A]
        assert only(Bind, bench.schedule()) == []

    @pytest.mark.parametrize(
        ("asked", "waits", "text"),
        [
            (10.0, 10.0, "10s"),
            (0.5, 0.5, "500ms"),
            (90.0, 90.0, "1m30s"),
            (900.0, 900.0, "15m0s"),
            (3600.0, 900.0, "15m0s"),
        ],
    )
    def test_waiting_has_an_end(self, bench, asked, waits, text):
        bench["Two"].line("permit", hold(asked))
        send(bench, "a")
        bench.tick(waits - 0.25)
        assert bench.phase("a") == "waiting"
        bench.out.clear()
        bench.tick(0.25)
        note = f"rejected due to timeout after waiting {text} at plugin Two"
        assert bench.notes("a") == [f"0/1 nodes are available: 1 {note}."]
        assert inside(bench.core).queue.get(A).rejectors == ("Two",)
        is_untouched(bench, "a")

    def test_the_plugin_whose_time_is_over_first_is_named(self, bench):
        bench["One"].line("permit", hold(30))
        bench["Two"].line("permit", hold(20))
        send(bench, "a")
        bench.tick(25)
        assert "after waiting 20s at plugin Two" in bench.notes("a")[0]

    def test_a_plugin_that_allowed_is_not_waited_for_any_more(self, bench):
        bench["One"].line("permit", hold(10))
        bench["Two"].line("permit", hold(20))
        send(bench, "a")
        bench["One"].waiting.allow(A, "One")
        bench.tick(15)
        assert bench.phase("a") == "waiting"

    def test_an_allowance_that_comes_too_late_changes_nothing(self, bench):
        bench["One"].line("permit", hold(10))
        send(bench, "a")
        bench.tick(10)
        bench["One"].waiting.allow(A, "One")
        assert only(Bind, bench.schedule()) == []
        assert bench.place("a") == "unschedulable"

    def test_a_change_while_it_waited_is_not_missed(self, bench):
        bench["One"].line("permit", hold(10))
        send(bench, "a")
        bench.tick(5)
        bench.node(make_node("n2").obj())
        bench.settle()
        bench.tick(5)
        assert bench.place("a") in ("backoff", "active")

    def test_a_new_version_of_itself_while_it_waited_is_not_missed(self, bench):
        bench["One"].line("permit", hold(10))
        send(bench, "a")
        bench.tick(5)
        bench.pod(make_pod("a").request(cpu="1").label(ready="yes").version(2).obj())
        bench.tick(5)
        assert bench.place("a") in ("backoff", "active")

    def test_without_any_change_it_stays_parked(self, bench):
        bench["One"].line("permit", hold(10))
        send(bench, "a")
        bench.tick(10)
        bench.settle()
        bench.tick(15)
        assert bench.place("a") == "unschedulable"


def reach(bench, name, phase):
    """Bring a pod just so far."""
    if phase == "waiting":
        bench["One"].line("permit", hold())
    elif phase == "pre-binding":
        bench["One"].line("pre_bind", writes("v"))
    send(bench, name)
    assert bench.phase(name) == phase


def object_with_label(found, value):
    metadata = msgspec.structs.replace(found.metadata, labels={"k": value})
    return msgspec.structs.replace(found, metadata=metadata)


def no_object_is_assumed(bench):
    return all(assumed is None for *_, assumed in inside(bench.core).cache.objects.entries())
