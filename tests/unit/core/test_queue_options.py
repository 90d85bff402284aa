"""PodMaxAttempts and SmallRequestFirst."""

import dataclasses

import pytest

from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.core.messages.outgoing import Bind, RecordEvent
from k8s_scheduler.core.plugins.small_request_first import SmallRequestFirst
from k8s_scheduler.core.queue.backoff import BackoffPolicy
from k8s_scheduler.core.queue.scheduling_queue import QueuePolicy
from k8s_scheduler.core.setup import LIBRARY_MAX_ATTEMPTS, Setup
from tests.builders import make_node, make_pod
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
        assert h.core.pending_count == 1

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


class TestSmallRequestFirst:
    def order(self, pods, **args):
        plugin = SmallRequestFirst(args)
        keyed = [(plugin.sort_key(pod.obj(), when), name) for name, pod, when in pods]
        return [name for _, name in sorted(keyed)]

    def test_small_before_large(self):
        pods = [
            ("large", make_pod("a").request(cpu="8"), 0.0),
            ("wide", make_pod("b").request(cpu="1", memory="64Gi"), 0.0),
            ("small", make_pod("c").request(cpu="100m"), 0.0),
        ]
        assert self.order(pods) == ["small", "large", "wide"]

    def test_priority_before_size(self):
        pods = [
            ("small", make_pod("a").request(cpu="100m"), 0.0),
            ("vip", make_pod("b").request(cpu="8").priority(1), 5.0),
        ]
        assert self.order(pods) == ["vip", "small"]

    def test_equals_by_time(self):
        pods = [
            ("second", make_pod("a").request(cpu="1"), 2.0),
            ("first", make_pod("b").request(cpu="1"), 1.0),
        ]
        assert self.order(pods) == ["first", "second"]

    @pytest.mark.parametrize("ageing", [10, 60])
    def test_a_large_pod_waits_no_longer_than_it_should(self, ageing):
        large = ("large", make_pod("a").request(cpu="1000"), 0.0)
        small = make_pod("b").request(cpu="1m")
        assert self.order([large, ("small", small, ageing - 1.0)], ageingSeconds=ageing) == [
            "small",
            "large",
        ]
        assert self.order([large, ("small", small, ageing + 1.0)], ageingSeconds=ageing) == [
            "large",
            "small",
        ]

    def test_it_sorts_the_queue(self):
        resolved = profile()
        points = {**resolved.points, "queueSort": (PluginUse("SmallRequestFirst", 0),)}
        h = Harness(Setup(profiles=(dataclasses.replace(resolved, points=points),)))
        h.pod(make_pod("large").request(cpu="3").obj())
        h.pod(make_pod("small").request(cpu="1").obj())
        h.node(make_node("n").obj())
        bound = [bind.name for bind in only(Bind, h.schedule())]
        assert bound[0] == "small"
