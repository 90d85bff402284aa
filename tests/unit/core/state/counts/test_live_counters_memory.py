"""Counters that nobody asks any more: their questions count, and they go when memory is short."""

from k8s_scheduler.api.selectors.labels import requirements_of
from k8s_scheduler.api.selectors.types import LabelSelector, SelectorRequirement
from k8s_scheduler.core.messages.incoming import LimitCaches
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.counts.questions import SelectedPods
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Setup, profile


def long_question(number: int, *, expressions: int = 500) -> SelectedPods:
    asked = [
        SelectorRequirement(key=f"k{number}-{i}", operator="DoesNotExist")
        for i in range(expressions)
    ]
    requirements = requirements_of(LabelSelector(match_expressions=asked))
    return SelectedPods(((None, requirements),), with_terminating=True)


def placed(state: Cache) -> Cache:
    state.put_node(make_node("n0").obj())
    state.put_bound(make_pod("p").on("n0").obj())
    return state


def test_a_long_question_counts_with_its_length():
    counters = placed(Cache()).pods.counters
    for number in range(10):
        assert counters.get(long_question(number)).by_row[0] == 1
    assert counters.nbytes > 10 * 500 * 100


def test_counters_are_dropped_when_less_memory_is_allowed_and_come_back_when_asked():
    core = Scheduler(Setup(profiles=(profile(),)))
    state = placed(inside(core).cache)
    counters = state.pods.counters
    for number in range(10):
        assert counters.get(long_question(number)).by_row[0] == 1
    used = counters.nbytes
    core.handle(LimitCaches(0.0, used // 2))
    assert 0 < counters.nbytes <= used // 2
    core.handle(LimitCaches(0.0, 1))
    assert (len(counters), counters.nbytes, counters.concerned) == (0, 0, {})
    assert counters.get(long_question(3)).by_row[0] == 1
    core.handle(LimitCaches(0.0, 1 << 40))
    assert counters.get(long_question(4)).by_row[0] == 1
    assert len(counters) == 2


def test_a_counter_that_was_not_asked_for_long_is_dropped_and_comes_back_when_asked():
    state = placed(Cache())
    counters = state.pods.counters
    used, unused = (counters.get(long_question(number, expressions=1)) for number in range(2))
    assert unused.by_row[0] == 1
    for now in range(0, 570, 30):
        assert used.by_row[0] == 1
        state.age(now=float(now))
    assert unused.is_live
    for now in range(570, 930, 30):
        assert used.by_row[0] == 1
        state.age(now=float(now))
    assert (used.is_live, unused.is_live, len(counters)) == (True, False, 1)
    assert unused.by_row[0] == 1


def test_many_counters_that_were_not_asked_for_long_go_bit_by_bit():
    state = placed(Cache())
    counters = state.pods.counters
    asked = [counters.get(long_question(number, expressions=1)) for number in range(200)]
    assert all(counter.by_row[0] == 1 for counter in asked)
    left = []
    for now in (0, 300, 600, 601, 602, 603):
        state.age(now=float(now))
        left.append(len(counters))
    assert left == [200, 200, 136, 72, 8, 0]
