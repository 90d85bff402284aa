"""The scheduling queue by example: where a pending pod waits, and what lets it be tried again."""

import pytest

from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness


@pytest.fixture
def h():
    """A cluster with one node of 4 cpus."""
    h = FullHarness()
    h.node(make_node("n").obj())
    return h


def bound(h):
    """Let the queue be worked off; return the names of pods that are bound, in their order."""
    return [bind.name for bind in h.binds()]


def large(name="large"):
    """Return a pod that does not fit while others run."""
    return make_pod(name).request(cpu="4")


class TestOrder:
    """Active pods come out by the QueueSort plugin: priority, then time."""

    def test_important_pods_first_then_those_that_came_first(self, h):
        for name, priority in (("a", 0), ("b", 0), ("vip", 10)):
            h.pod(make_pod(name).priority(priority).obj())
        assert bound(h) == ["vip", "a", "b"]

    def test_a_pod_that_is_deleted_while_it_waits_is_not_tried(self, h):
        h.pod(make_pod("a").obj())
        h.drop_pod(make_pod("a").obj())
        assert bound(h) == []
        assert len(inside(h.core).queue) == 0


class TestGated:
    """A gated pod is not in line at all."""

    def test_it_waits_for_its_gates_alone(self, h):
        h.pod(make_pod("p").gate("quota").obj())
        h.node(make_node("other").obj())
        h.tick(600)
        assert bound(h) == []
        h.pod(make_pod("p").version(2).obj())
        assert bound(h) == ["p"]


class TestParked:
    """A rejected pod waits for an event that can help it."""

    @pytest.fixture
    def parked(self, h):
        h.pod(make_pod("tenant").request(cpu="1").on("n").obj())
        h.pod(large().obj())
        assert bound(h) == []
        assert h.parked() == ["large"]
        return h

    def test_time_alone_does_not_let_it_be_tried(self, parked):
        parked.tick(60)
        assert parked.parked() == ["large"]

    def test_an_event_that_cannot_help_does_not_wake_it(self, parked):
        parked.node(make_node("small").offers(cpu="1", memory="1Gi", pods="10").obj())
        parked.tick(60)
        assert bound(parked) == []
        assert parked.parked() == ["large"]

    def test_room_on_a_node_wakes_it(self, parked):
        parked.drop_pod(make_pod("tenant").obj())
        assert bound(parked) == ["large"]

    def test_a_new_node_that_fits_wakes_it(self, parked):
        parked.node(make_node("new").obj())
        assert bound(parked) == ["large"]

    def test_a_change_of_the_pod_itself_wakes_it(self, parked):
        parked.pod(make_pod("large").request(cpu="1").version(2).obj())
        assert bound(parked) == ["large"]


class TestBackoff:
    """A pod whose Binding failed waits for 1, 2, 4, 8, then 10 seconds."""

    def fail(self, h):
        """Let the pod's Binding fail; return after how many seconds it is tried again."""
        [bind] = h.binds()
        h.result(bind, bound=False, message="no luck")
        for seconds in range(1, 60):
            h.tick(1)
            if h.core.has_work:
                return seconds
        raise AssertionError("the pod is not tried any more")

    def test_it_waits_twice_as_long_each_time(self, h):
        h.pod(make_pod("p").obj())
        # A wait ends with the whole second after it.
        assert [self.fail(h) for _ in range(6)] == [2, 3, 5, 9, 11, 11]

    def test_others_do_not_wait_for_it(self, h):
        h.pod(make_pod("p").obj())
        [bind] = h.binds()
        h.result(bind, bound=False, message="no luck")
        h.pod(make_pod("other").obj())
        assert bound(h) == ["other"]
