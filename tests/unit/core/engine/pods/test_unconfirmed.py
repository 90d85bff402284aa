"""A pod that the server says is bound, and that the watch does not show: it is read."""

import itertools

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.pods.unconfirmed import CONFIRM_SECONDS, LONGEST_SECONDS
from k8s_scheduler.core.messages.incoming import PodRead, Restore
from k8s_scheduler.core.messages.outgoing import Bind, Log, ReadPod
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only, profile

A = PodUid("uid-a")


class Bench(Harness):
    """Two nodes, the first full once the pod is on it."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics = Metrics()
        self.core = Scheduler(Setup(profiles=(profile(),)), metrics=self.metrics.scheduler)
        self.node(make_node("n1").offers(cpu="2", pods="9").obj())
        self.pod(make_pod("a").request(cpu="2").obj())
        (self.bind,) = self.binds()
        self.result(self.bind)

    def reads(self) -> list[ReadPod]:
        """Return what is asked for next, and let it be asked for."""
        found, self.out = only(ReadPod, self.out), []
        return found

    def read(self, pod, *, attempt: int = 1):
        return self.tell(PodRead(self.now, A, attempt, pod))

    def found(self, what: str) -> float:
        name = "k8s_scheduler_unconfirmed_pods_total"
        return self.metrics.registry.get_sample_value(name, {"found": what}) or 0.0

    @property
    def has_room(self) -> bool:
        return inside(self.core).cache.node_of(A) is None


@pytest.fixture
def bench() -> Bench:
    return Bench()


def bound(node="n1"):
    return make_pod("a").request(cpu="2").on(node).version(7).obj()


class TestAsked:
    """When a pod is read."""

    def test_not_before_the_watch_had_its_time(self, bench):
        bench.tick(CONFIRM_SECONDS - 1)
        assert bench.reads() == []
        bench.tick(1)
        (read,) = bench.reads()
        assert (read.uid, read.namespace, read.name, read.attempt) == (A, "default", "a", 1)

    def test_again_ever_later_while_nothing_is_heard(self, bench):
        asked = []
        for second in range(4000):
            bench.tick(1)
            asked += [second + 1] * len(bench.reads())
        gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
        assert asked[0] == CONFIRM_SECONDS
        assert gaps[:4] == [60, 120, 240, 480]
        assert set(gaps[4:]) == {LONGEST_SECONDS}
        assert not bench.has_room

    def test_never_if_the_watch_shows_it_in_time(self, bench):
        bench.pod(bound())
        bench.tick(100)
        assert bench.reads() == []
        assert len(inside(bench.core).state.unconfirmed) == 0

    def test_never_if_it_was_seen_before_the_answer(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="2", pods="9").obj())
        h.pod(make_pod("a").request(cpu="2").obj())
        (bind,) = h.binds()
        h.pod(bound())
        h.result(bind)
        h.tick(100)
        assert only(ReadPod, h.out) == []

    def test_never_if_it_is_gone(self, bench):
        bench.drop_pod(bound())
        bench.tick(100)
        assert bench.reads() == []

    def test_never_if_it_was_not_bound(self):
        h = Harness()
        h.node(make_node("n1").offers(cpu="2", pods="9").obj())
        h.pod(make_pod("a").request(cpu="2").obj())
        (bind,) = h.binds()
        h.result(bind, bound=False, message="no")
        h.tick(100)
        assert only(ReadPod, h.out) == []


class TestRead:
    """What reading shows is the truth."""

    @pytest.fixture(autouse=True)
    def asked(self, bench):
        bench.tick(CONFIRM_SECONDS)
        assert bench.reads()

    def test_on_its_node_it_is_confirmed(self, bench):
        out = bench.read(bound())
        assert not inside(bench.core).cache.is_assumed(A)
        assert inside(bench.core).cache.node_of(A) == "n1"
        assert bench.found("bound") == 1
        (line,) = only(Log, out)
        assert line.fields == {"pod": "default/a", "node": "n1", "attempt": 1, "found": "bound"}
        bench.tick(1000)
        assert bench.reads() == []

    def test_on_another_node_it_moves_there(self, bench):
        bench.node(make_node("n2").offers(cpu="2", pods="9").obj())
        bench.read(bound("n2"))
        assert inside(bench.core).cache.node_of(A) == "n2"
        assert bench.found("elsewhere") == 1
        bench.pod(make_pod("b").request(cpu="2").obj())
        assert [b.node for b in bench.binds()] == ["n1"]

    def test_gone_it_gives_its_room_back(self, bench):
        bench.read(None)
        assert bench.has_room
        assert bench.found("gone") == 1
        bench.pod(make_pod("b").request(cpu="2").obj())
        assert [b.node for b in bench.binds()] == ["n1"]

    def test_unbound_it_is_tried_again(self, bench):
        bench.read(make_pod("a").request(cpu="2").version(3).obj())
        assert bench.has_room
        assert bench.found("unbound") == 1
        (again,) = bench.binds()
        assert (again.uid, again.node) == (A, "n1")
        bench.result(again)
        bench.pod(bound())
        assert inside(bench.core).cache.assumed_count == 0

    def test_of_another_attempt_it_says_nothing(self, bench):
        assert bench.read(None, attempt=2) == []
        assert not bench.has_room

    def test_a_second_time_it_says_nothing(self, bench):
        bench.read(bound())
        assert bench.read(None) == []
        assert not bench.has_room

    def test_after_the_watch_has_spoken_it_says_nothing(self, bench):
        bench.pod(bound())
        assert bench.read(None) == []
        assert not bench.has_room

    def test_after_the_pod_is_gone_it_says_nothing(self, bench):
        bench.drop_pod(bound())
        assert bench.read(bound()) == []
        assert bench.has_room


def test_what_nobody_asked_for_says_nothing(bench):
    assert bench.read(None) == []
    assert not bench.has_room


def test_a_core_that_is_restored_asks_as_well(bench):
    twin = Scheduler(Setup(profiles=(profile(),)))
    twin.handle(Restore(bench.now, bench.core.checkpoint()))
    bench.core = twin
    bench.tick(CONFIRM_SECONDS)
    (read,) = bench.reads()
    assert read.uid == A
    again = Scheduler(Setup(profiles=(profile(),)))
    again.handle(Restore(bench.now, bench.core.checkpoint()))
    again.handle(PodRead(bench.now, A, 1, None))
    assert again._cache.pod_count == 0
    assert only(Bind, bench.out) == []
