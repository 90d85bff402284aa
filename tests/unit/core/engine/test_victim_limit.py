"""At most so many victims a minute: who has to wait, for how long, and what is told."""

import msgspec
import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.engine.victim_limit import VictimLimit
from k8s_scheduler.core.messages.checkpoint import VictimLimitEntry
from k8s_scheduler.core.messages.incoming import Reconfigure, Restore
from k8s_scheduler.core.messages.outgoing import Bind, Evict, PatchCondition
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, FullHarness, zoned
from tests.unit.core.harness import only

A, B, C = PodUid("a"), PodUid("b"), PodUid("c")


class TestTheAllowance:
    def test_a_minutes_worth_and_then_evenly(self):
        limit = VictimLimit(6)
        assert limit.take(A, 6, now=100.0)
        assert not limit.take(B, 1, now=109.0)
        assert limit.take(B, 1, now=110.0)
        assert not limit.take(C, 2, now=119.0)

    def test_more_than_a_minutes_worth_waits_for_a_full_one_and_is_made_up_for(self):
        limit = VictimLimit(6)
        assert limit.take(A, 1, now=0.0)
        assert not limit.take(B, 12, now=5.0)
        assert limit.take(B, 12, now=60.0)
        assert not limit.take(C, 1, now=120.0)
        assert limit.take(C, 1, now=131.0)

    def test_none_is_no_limit(self):
        limit = VictimLimit()
        assert all(limit.take(A, 1000, now=0.0) for _ in range(100))
        assert limit.entry() is None

    def test_a_clock_that_goes_back_gives_nothing(self):
        limit = VictimLimit(6)
        assert limit.take(A, 6, now=100.0)
        assert not limit.take(B, 1, now=40.0)
        assert not limit.take(B, 1, now=105.0)

    def test_who_is_due_is_due_together(self):
        limit = VictimLimit(60)
        assert limit.take(A, 60, now=0.0)
        for uid in (A, B, C):
            assert not limit.take(uid, 2, now=0.0)
        assert limit.due((A, B, C), now=3.0) == [A]
        assert limit.due((B, C), now=4.0) == [B, C]
        assert limit.waiting == ()

    def test_another_limit_keeps_what_is_used_up(self):
        limit = VictimLimit(60)
        assert limit.take(A, 60, now=0.0)
        limit.change(10, now=0.0)
        assert not limit.take(A, 1, now=0.0)
        limit.change(0, now=1.0)
        assert limit.take(A, 1000, now=1.0)

    def test_a_checkpoint_says_all_of_it(self):
        limit = VictimLimit(6)
        limit.take(A, 5, now=10.0)
        limit.take(B, 3, now=11.0)
        entry = limit.entry()
        assert entry == VictimLimitEntry(pytest.approx(1.1), 11.0, ((B, 3),))
        twin = VictimLimit(6)
        twin.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=VictimLimitEntry))
        assert (twin.entry(), twin.waits(B)) == (entry, True)


class Crowd(FullHarness):
    """Three nodes, each with a pod that could leave; one victim every thirty seconds."""

    def __init__(self, limit=2):
        super().__init__()
        self.metrics = Metrics()
        setup = Setup(profiles=FULL.profiles, max_victims_per_minute=limit)
        self.core = Scheduler(setup, metrics=self.metrics.scheduler)
        for name in ("n0", "n1", "n2"):
            self.node(zoned(name, cpu="1").obj())
            self.pod(make_pod(f"low-{name}").request(cpu="1").on(name).obj())

    def come(self, name, priority=10):
        self.pod(vip(name, priority).obj())
        out = self.schedule()
        return only(Evict, out), [c.message for c in only(PatchCondition, out)]

    def wait(self, seconds):
        evictions = []
        for _ in range(seconds):
            self.tick(1)
            if self.core.has_work:
                evictions += only(Evict, self.schedule())
        return evictions


def vip(name, priority=10):
    return make_pod(name).request(cpu="1").priority(priority)


LIMITED = (
    "0/3 nodes are available: 3 Insufficient cpu. preemption: 1 victims would make room, which the "
    "limit of 2 victims per minute (preemption.maxVictimsPerMinute) does not allow now."
)


class TestPods:
    def test_beyond_it_nobody_is_evicted_and_the_pod_says_why(self):
        h = Crowd()
        assert [len(h.come(name)[0]) for name in "ab"] == [1, 1]
        assert h.come("c") == ([], [LIMITED])
        assert inside(h.core).cache.nominations.node_of(PodUid("uid-c")) is None
        name = "k8s_scheduler_preemptions_put_off_total"
        assert h.metrics.registry.get_sample_value(name) == 1

    def test_it_is_tried_again_when_the_allowance_suffices_and_not_before(self):
        h = Crowd()
        for name in "abc":
            h.come(name)
        attempts = inside(h.core).queue.get(PodUid("uid-c")).attempts
        assert h.wait(29) == []
        assert inside(h.core).queue.get(PodUid("uid-c")).attempts == attempts
        assert not h.core.has_work
        [eviction] = h.wait(3)
        assert eviction.uid == "uid-c"

    def test_the_most_important_first(self):
        h = Crowd(limit=1)
        h.come("a")
        h.come("low", 10)
        h.come("high", 20)
        [eviction] = h.wait(62)
        assert eviction.uid == "uid-high"

    def test_room_that_shows_is_taken_at_once(self):
        h = Crowd()
        for name in "abc":
            h.come(name)
        h.node(zoned("n9", cpu="1").obj())
        h.tick(15)
        assert [(b.name, b.node) for b in only(Bind, h.schedule())] == [("c", "n9")]
        assert inside(h.core).state.victim_limit.waiting == ()

    def test_events_that_would_let_it_preempt_do_not_wake_it(self):
        h = Crowd()
        for name in "abc":
            h.come(name)
        h.tick(15)
        for number in range(5):
            h.node(zoned("n2", cpu=f"{1000 + number}m").obj())
            h.schedule()
        assert inside(h.core).queue.get(PodUid("uid-c")).attempts == 1

    def test_a_core_restored_from_a_checkpoint_goes_on_counting(self):
        h = Crowd()
        for name in "abc":
            h.come(name)
        twin = Crowd()
        twin.core = Scheduler(h.core.setup)
        twin.tell(Restore(h.now, h.core.checkpoint()))
        twin.now = h.now
        assert twin.core.checkpoint() == h.core.checkpoint()
        assert twin.wait(40) == h.wait(40) != []

    def test_another_configuration_sets_another_limit(self):
        h = Crowd()
        for name in "abc":
            h.come(name)
        queue = settings_of(FULL.queue)
        h.tell(Reconfigure(h.now, FULL.profiles, queue, max_victims_per_minute=0))
        assert h.core.setup.max_victims_per_minute == 0
        assert [eviction.uid for eviction in h.wait(12)] == ["uid-c"]

    def test_without_a_limit_nothing_of_it_is_in_the_checkpoint(self):
        assert Crowd(limit=0).core.checkpoint().victim_limit is None
