"""A victim whose place two pods need: it is evicted once, and both wait for it."""

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    Evict,
    RecordEvent,
)
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import away
from tests.unit.core.engine.preemption.preempting import (
    GONE,
    fill,
    preempt,
    preemptor,
    show_leaving,
    victim,
)
from tests.unit.core.engine.sagas import SagaHarness, state_of
from tests.unit.core.harness import only

P = PodUid("uid-p")


@pytest.fixture
def bench():
    bench = SagaHarness("One")
    bench.node(make_node("n1").label(host="n1").obj())
    return bench


class TestOneVictimOfTwo:
    """The second one asks for nothing that the first has asked for."""

    def second(self, bench):
        """Let a more important pod come that needs the same victim; nothing is asked for it."""
        assert preempt(bench, name="q", priority=20) == []
        assert bench.promise_of("q") == "n1"
        assert inside(bench.core).evictions.is_under_way(PodUid("uid-q"))

    @pytest.fixture
    def first(self, bench):
        fill(bench, a=1)
        [eviction] = preempt(bench)
        bench.out.clear()
        return eviction

    def test_while_the_first_one_is_not_answered(self, bench, first):
        self.second(bench)
        out = bench.answer(first)
        assert only(Evict, out) == []
        assert [e.note for e in only(RecordEvent, out)] == ["Preempted by pod uid-p on node n1"]
        assert inside(bench.core).evictions.is_under_way(PodUid("uid-q"))
        show_leaving(bench, "a")
        assert state_of(bench.core)["evictions"] == []
        bench.drop_pod(make_pod("a").obj())
        bench.settle()
        assert (bench.node_of("q"), bench.node_of("p")) == ("n1", None)

    def test_while_its_leaving_is_not_seen(self, bench, first):
        bench.answer(first)
        self.second(bench)
        bench.drop_pod(make_pod("a").obj())
        bench.settle()
        assert bench.node_of("q") == "n1"
        assert only(Evict, bench.out) == []

    def test_once_it_is_seen_nobody_waits(self, bench, first):
        bench.answer(first)
        show_leaving(bench, "a")
        assert preempt(bench, name="q", priority=20) == []
        assert state_of(bench.core)["evictions"] == []

    def test_a_refusal_is_one_for_both(self, bench, first):
        self.second(bench)
        bench.answer(first, done=False, message="refused")
        assert (bench.place("p"), bench.place("q")) == ("active", "active")
        bench.schedule()
        [again] = only(Evict, bench.out)
        assert (again.name, again.victim.name) == ("q", "a")

    def test_one_that_was_gone_already_is_for_both(self, bench, first):
        self.second(bench)
        bench.drop_pod(make_pod("a").obj())
        bench.answer(first, message=GONE)
        bench.settle()
        assert bench.node_of("q") == "n1"

    def test_the_first_one_goes_away(self, bench, first):
        self.second(bench)
        bench.drop_pod(make_pod("p").obj())
        bench.answer(first)
        bench.drop_pod(make_pod("a").obj())
        bench.settle()
        assert bench.node_of("q") == "n1"

    def test_the_others_of_the_second_go_on_after_it(self, bench):
        """Before the last one goes, the others are known to leave, whoever has asked them to."""
        bench.pod(victim("a", 2).label(app="a").obj())
        bench.pod(victim("b", 1).obj())
        bench.pod(away(preemptor(cpu="0"), key="host", app="a").obj())
        bench.settle()
        [first] = only(Evict, bench.out)
        assert first.victim.name == "a"
        bench.out.clear()
        assert preempt(bench, name="q", priority=20) == []
        [last] = only(Evict, bench.answer(first))
        assert (last.name, last.victim.name) == ("q", "b")

    def test_a_victim_that_is_being_bound_and_leaves(self, bench):
        """The cache does not show it leaving, its own way does."""
        bench.pod(make_pod("a").request(cpu="4").priority(1).obj())
        [bind] = only(Bind, bench.schedule())
        [eviction] = preempt(bench)
        bench.answer(eviction)
        bench.out.clear()
        bench.pod(make_pod("a").request(cpu="4").priority(1).deleting().obj())
        assert preempt(bench, name="q", priority=20) == []
        assert state_of(bench.core)["evictions"] == []
        bench.result(bind, bound=False, message="being deleted")
        bench.settle()
        assert bench.node_of("q") == "n1"
