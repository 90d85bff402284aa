"""What becomes of a pod after the decision: binding, confirmation, failure, waking."""

from k8s_scheduler.core.messages.outgoing import RecordEvent
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only


def full_cluster() -> Harness:
    """One node with room for one pod, taken; `b` waits."""
    h = Harness()
    h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
    h.pod(make_pod("a").on("n1").request(cpu="1").obj())
    h.pod(make_pod("b").request(cpu="1").obj())
    assert h.binds() == []
    return h


class TestBinding:
    """A decided pod keeps its room until the definite answer."""

    def test_success_is_told(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").obj())
        (bind,) = h.binds()
        (event,) = h.result(bind)
        assert isinstance(event, RecordEvent)
        assert (event.reason, event.action) == ("Scheduled", "Binding")
        assert event.note == "Successfully assigned default/a to n1"

    def test_room_stays_taken_until_the_watch_confirms(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
        h.pod(make_pod("a").request(cpu="1").obj())
        (bind,) = h.binds()
        h.pod(make_pod("b").request(cpu="1").obj())
        assert h.binds() == []
        h.result(bind)
        h.tick(20)
        assert h.binds() == []
        h.pod(make_pod("a").on("n1").request(cpu="1").obj())
        h.tick(20)
        assert h.binds() == []

    def test_failure_gives_the_room_back_and_tries_again_after_the_backoff(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
        h.pod(make_pod("a").request(cpu="1").obj())
        (bind,) = h.binds()
        h.result(bind, bound=False, message="node is gone")
        assert h.events() == [("a", "FailedScheduling", "node is gone")]
        assert h.binds() == []
        h.tick(3)
        (again,) = h.binds()
        assert again.attempt == 2

    def test_an_answer_for_another_attempt_is_dropped(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").obj())
        (bind,) = h.binds()
        h.result(bind, bound=False, message="conflict")
        h.tick(3)
        (second,) = h.binds()
        assert h.result(bind, bound=False, message="late") == []
        assert len(h.result(second)) == 1

    def test_watch_may_be_faster_than_the_answer(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").obj())
        (bind,) = h.binds()
        h.pod(make_pod("a").on("n1").obj())
        (event,) = h.result(bind)
        assert event.reason == "Scheduled"
        assert len(inside(h.core).queue) == h.core.binding_count == 0

    def test_bound_by_somebody_else_to_another_node(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
        h.pod(make_pod("a").request(cpu="1").obj())
        (bind,) = h.binds()
        h.node(make_node("n2").offers(cpu="1", memory="8Gi", pods="10").obj())
        h.pod(make_pod("a").on("n2").request(cpu="1").obj())
        h.result(bind, bound=False, message="pod a is already assigned to node n2")
        h.tick(20)
        h.pod(make_pod("b").request(cpu="1").obj())
        (other,) = h.binds()
        assert (other.name, other.node) == ("b", "n1")

    def test_a_pod_deleted_while_binding_frees_its_room_at_once(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="10").obj())
        pod = make_pod("a").request(cpu="1").obj()
        h.pod(pod)
        (bind,) = h.binds()
        h.drop_pod(pod)
        h.pod(make_pod("b").request(cpu="1").obj())
        (other,) = h.binds()
        assert other.name == "b"
        assert h.result(bind, bound=False, message="not found") == []

    def test_a_stale_version_without_a_node_name_changes_nothing(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").obj())
        (bind,) = h.binds()
        h.pod(make_pod("a").label(x="1").obj())
        h.result(bind)
        h.pod(make_pod("a").label(x="2").obj())
        assert h.binds() == []
        assert len(inside(h.core).queue) == 0


class TestWaking:
    """A parked pod is tried again when, and only when, something happened that helps it."""

    def test_a_pod_that_ends_makes_room(self):
        h = full_cluster()
        h.tick(5)
        assert h.binds() == []
        h.drop_pod(make_pod("a").obj())
        (bind,) = h.binds()
        assert (bind.name, bind.attempt) == ("b", 2)

    def test_a_new_node_helps_even_within_the_backoff(self):
        h = full_cluster()
        h.node(make_node("n2").obj())
        (bind,) = h.binds()
        assert bind.node == "n2"

    def test_more_allocatable_helps(self):
        h = full_cluster()
        h.node(make_node("n1").offers(cpu="2", memory="8Gi", pods="10").obj())
        assert [b.name for b in h.binds()] == ["b"]

    def test_a_pod_that_shrinks_in_place_makes_room(self):
        h = full_cluster()
        h.pod(make_pod("a").on("n1").request(cpu="0").obj())
        assert [b.name for b in h.binds()] == ["b"]

    def test_uncordoning_and_untainting_help(self):
        h = full_cluster()
        h.node(make_node("n2").cordoned().taint("k").obj())
        assert h.binds() == []
        h.node(make_node("n2").cordoned().obj())
        assert h.binds() == []
        h.node(make_node("n2").obj())
        assert [b.node for b in h.binds()] == ["n2"]

    def test_what_does_not_help_wakes_nobody(self):
        h = full_cluster()
        h.node(make_node("n2").offers(cpu="500m", memory="8Gi", pods="10").obj())
        h.pod(make_pod("c").on("n2").request(cpu="100m").obj())
        h.drop_pod(make_pod("c").obj())
        h.drop_node("n2")
        h.tick(20)
        assert h.schedule() == []

    def test_a_change_of_the_pod_itself_is_tried(self):
        h = Harness()
        h.node(make_node("n1").taint("k").obj())
        h.pod(make_pod("a").obj())
        assert h.binds() == []
        h.pod(make_pod("a").tolerates("k", operator="Exists").obj())
        assert [b.name for b in h.binds()] == ["a"]

    def test_a_change_that_scheduling_does_not_read_is_not(self):
        h = full_cluster()
        h.pod(make_pod("b").request(cpu="1").version(2).obj())
        assert h.schedule() == []

    def test_five_minutes_are_enough_for_another_try(self):
        h = full_cluster()
        h.tick(299)
        assert h.schedule() == []
        h.tick(31)
        assert [e.name for e in only(RecordEvent, h.schedule())] == ["b"]

    def test_pods_of_one_shape_are_woken_together(self):
        h = full_cluster()
        h.pod(make_pod("c").request(cpu="1").obj())
        h.schedule()
        h.node(make_node("n2").offers(cpu="2", memory="8Gi", pods="10").obj())
        assert [b.name for b in h.binds()] == ["b", "c"]


class TestNodes:
    """Nodes come, go and come back."""

    def test_pods_seen_before_their_node_count_once_it_is_there(self):
        h = Harness()
        h.pod(make_pod("early").on("n1").request(cpu="3").obj())
        h.pod(make_pod("a").request(cpu="2").obj())
        h.schedule()
        h.node(make_node("n1").obj())
        assert h.binds() == []
        assert h.events()[-1][2] == "0/1 nodes are available: 1 Insufficient cpu."

    def test_pods_of_a_deleted_node_count_when_it_returns(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("old").on("n1").request(cpu="3").obj())
        h.drop_node("n1")
        h.pod(make_pod("a").request(cpu="2").obj())
        h.schedule()
        assert h.events()[-1][2] == "no nodes available to schedule pods"
        h.node(make_node("n1").obj())
        assert h.binds() == []
        h.drop_pod(make_pod("old").obj())
        assert [b.node for b in h.binds()] == ["n1"]

    def test_a_row_is_used_again_without_a_trace_of_its_last_node(self):
        h = Harness()
        h.node(make_node("n1").taint("k").cordoned().obj())
        h.drop_node("n1")
        h.node(make_node("n2").offers(cpu="1", memory="1Gi", pods="1").obj())
        h.pod(make_pod("a").obj())
        assert [b.node for b in h.binds()] == ["n2"]


class TestBackoff:
    """Errors wait 1, 2, 4, 8, 10 seconds, cut to whole seconds."""

    def test_doubles_to_its_maximum(self):
        h = Harness()
        h.node(make_node("n1").obj())
        h.pod(make_pod("a").obj())
        waits = []
        (bind,) = h.binds()
        for _ in range(6):
            h.result(bind, bound=False, message="no")
            failed = h.now
            while not (binds := h.binds()):
                h.tick(1)
            (bind,) = binds
            waits.append(h.now - failed)
        assert waits == [2, 3, 5, 9, 11, 11]


class TestWakingInSteps:
    """However many pods are parked, one message does a bounded piece of the waking."""

    def test_many_shapes_are_judged_over_several_messages(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="500").obj())
        for i in range(200):
            h.pod(make_pod(f"p{i}").request(cpu=f"{2000 + i}m").obj())
        h.schedule()
        h.node(make_node("n1").offers(cpu="1100m", memory="8Gi", pods="500").obj())
        messages = 0
        while h.core.has_work:
            assert h.schedule() == []
            messages += 1
        assert messages == 29  # 200 shapes, seven for the price of a step

    def test_many_pods_of_one_shape_are_woken_over_several_messages(self):
        h = Harness()
        for i in range(1200):
            h.pod(make_pod(f"p{i}").request(cpu="1m").obj())
        h.schedule(2000)
        h.node(make_node("n1").offers(cpu="100", memory="8000Gi", pods="5000").obj())
        assert len(h.binds()) == 500
        bound = 500
        while h.core.has_work:
            bound += len(h.binds())
        assert bound == 1200

    def test_a_change_during_a_round_is_not_missed(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="1", memory="8Gi", pods="500").obj())
        for i in range(150):
            h.pod(make_pod(f"p{i}").request(cpu=f"{2000 + i}m").obj())
        h.schedule()
        h.node(make_node("n1").offers(cpu="1100m", memory="8Gi", pods="500").obj())
        h.schedule(0)
        # Half-way through the round, a node comes that only the first shape judged would fit.
        h.node(make_node("n2").offers(cpu="2", memory="8Gi", pods="500").obj())
        names = []
        while h.core.has_work:
            names += [b.name for b in h.binds()]
        assert names == ["p0"]
