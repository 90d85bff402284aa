"""After a restored storage nothing is waited for that the server has undone."""

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.incoming import PodRead, StorageSetBack
from k8s_scheduler.core.messages.outgoing import Evict, ReadPod
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.preemption.preempting import fill, preempt, show_leaving
from tests.unit.core.engine.sagas import SagaHarness
from tests.unit.core.harness import Harness, only

A, P = PodUid("uid-a"), PodUid("uid-p")


class Bench(Harness):
    def __init__(self) -> None:
        super().__init__()
        self.node(make_node("n1").offers(cpu="2", pods="9").obj())

    def set_back(self):
        return self.tell(StorageSetBack(self.now))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def pod():
    return make_pod("a").request(cpu="2")


def test_pods_that_no_watch_has_shown_bound_are_read_at_once(bench):
    bench.pod(pod().obj())
    (bind,) = bench.binds()
    bench.result(bind)
    (read,) = only(ReadPod, bench.set_back())
    assert (read.uid, read.attempt) == (A, 1)
    # And again, if it is said again.
    assert only(ReadPod, bench.set_back()) == [read]


def test_one_that_is_read_unbound_is_tried_again(bench):
    bench.pod(pod().obj())
    (bind,) = bench.binds()
    bench.result(bind)
    bench.set_back()
    bench.out.clear()
    bench.tell(PodRead(bench.now, A, 1, pod().obj()))
    bench.tick(30)
    assert [again.node for again in bench.binds()] == ["n1"]


def test_pods_that_were_shown_bound_or_are_being_bound_are_not_read_by_the_core(bench):
    bench.pod(pod().obj())
    (bind,) = bench.binds()
    assert only(ReadPod, bench.set_back()) == []
    bench.result(bind)
    bench.pod(pod().on("n1").obj())
    assert only(ReadPod, bench.set_back()) == []


def test_a_core_that_knows_nothing_has_nothing_to_ask(bench):
    assert bench.set_back() == []


@pytest.fixture
def saga():
    bench = SagaHarness("One")
    bench.node(make_node("n1").label(host="n1").obj())
    return bench


def test_a_victim_whose_deletion_was_undone_is_waited_for_no_longer(saga):
    fill(saga, a=1)
    [eviction] = preempt(saga)
    saga.answer(eviction)
    assert inside(saga.core).evictions.is_under_way(P)
    saga.tell(StorageSetBack(saga.now))
    assert not inside(saga.core).evictions.is_under_way(P)
    saga.settle()
    assert [e.victim.uid for e in only(Evict, saga.out)] == [A, A]


def test_one_that_is_seen_to_leave_is(saga):
    fill(saga, a=1)
    [eviction] = preempt(saga)
    saga.answer(eviction)
    show_leaving(saga, "a", 1, "4")
    saga.tell(StorageSetBack(saga.now))
    saga.settle()
    assert [e.victim.uid for e in only(Evict, saga.out)] == [A]
