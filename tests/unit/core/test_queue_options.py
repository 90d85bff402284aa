"""PodMaxAttempts: a pod whose attempts fail too often is parked."""

from k8s_scheduler.core.messages.outgoing import Bind, RecordEvent
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.setup import LIBRARY_MAX_ATTEMPTS, Setup
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only, profile


def failing(limit):
    """Return a core whose bind of `p` has just failed for the first time."""
    policy = QueuePolicy(BackoffPolicy(maximum_seconds=0), max_attempts=limit)
    h = Harness(Setup(profiles=(profile(),), queue=policy))
    h.node(make_node("n").obj())
    h.pod(make_pod("p").obj())
    fail(h)
    return h


def fail(h):
    (bind,) = only(Bind, h.schedule())
    return h.result(bind, bound=False, message="no luck")


class TestMaxAttempts:
    def test_an_error_is_tried_again_without_a_limit(self):
        h = failing(None)
        for _ in range(20):
            h.tick(2)
            fail(h)

    def test_beyond_the_limit_the_pod_is_parked_and_an_event_says_so(self):
        h = failing(2)
        h.tick(2)
        told = only(RecordEvent, fail(h))
        assert [e.reason for e in told] == ["FailedScheduling", "MaxAttemptsReached"]
        assert "failed 2 times" in told[1].note
        h.tick(2)
        assert h.schedule() == []
        assert len(inside(h.core).queue) == 1

    def test_any_event_that_leaves_it_room_wakes_it(self):
        h = failing(1)
        h.node(make_node("other").obj())
        assert only(Bind, h.schedule())

    def test_the_flush_wakes_it(self):
        h = failing(1)
        h.tick(400)
        assert only(Bind, h.schedule())

    def test_an_odd_quantity_does_not_end_the_process_at_the_next_event(self):
        """What the pod asks for can't be read: nothing but another version of it helps."""
        policy = QueuePolicy(
            BackoffPolicy(maximum_seconds=0), max_attempts=1, renewals_per_second=20
        )
        h = Harness(Setup(profiles=(profile(),), queue=policy))
        h.node(make_node("n").obj())
        h.pod(make_pod("odd").request(cpu="1e2000").obj())
        told = only(RecordEvent, h.schedule())
        assert [e.reason for e in told] == ["FailedScheduling", "MaxAttemptsReached"]
        for number in range(3):
            h.node(make_node(f"n{number}").obj())
            h.tick(1)
            assert h.schedule() == []
        h.pod(make_pod("plain").obj())
        assert [bind.name for bind in only(Bind, h.schedule())] == ["plain"]
        h.pod(make_pod("odd").request(cpu="1").version(2).obj())
        assert [bind.name for bind in only(Bind, h.schedule())] == ["odd"]

    def test_the_library_has_a_limit(self):
        assert Setup(profiles=(profile(),)).queue.max_attempts == LIBRARY_MAX_ATTEMPTS == 8
