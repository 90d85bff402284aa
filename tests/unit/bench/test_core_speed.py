"""The benchmark of the core decides what it says it does."""

from functools import partial

import pytest

from k8s_scheduler.api.resources import REMEMBERED
from tests.bench.core_memory import growth
from tests.bench.core_speed import Course, compared, lines, run
from tests.bench.core_workloads import CORE_WORKLOADS
from tests.bench.parked_speed import OWNERS, Waiting
from tests.call_counts import calls_of
from tests.inside import inside

# As many that some are decided on again from scratch, also where each second node has room for one.
PODS = 150
NODES = 400


@pytest.mark.parametrize("name", CORE_WORKLOADS)
def test_pods_get_a_node_unless_the_cluster_is_full(name):
    course = Course(name, NODES, PODS)
    run([course])
    found = course.result()
    assert found["placed"] == (0 if name == "full" else course.pods)
    assert found["us_per_decision"] > 0


def test_memory_is_told_of_nodes_pods_and_shapes():
    told = [what for what, _ in growth(nodes=20, pods=40, shapes=7)]
    assert told[:2] == ["20 nodes", "40 pods"]
    assert told[2].endswith(" shapes")
    assert told[2] != "0 shapes"


def test_a_table_has_a_line_for_each_course():
    pairs = [
        (Course(name, NODES, 300), Course(name, NODES, 300, bare=True))
        for name in ("basic", "hetero")
    ]
    run([course for pair in pairs for course in pair])
    results = [compared(*pair) for pair in pairs]
    table = list(lines(results))
    assert [line.split()[0] for line in table] == ["workload", "basic", "hetero"]
    assert results[0]["hit_share"] > 0.9
    assert results[1]["hit_share"] == 0
    assert results[0]["plain_us_per_decision"] > 0
    assert results[0]["ratio_to_bare"] > 0


def decide(course, pods):
    # What another course has found out is no help to this one.
    REMEMBERED.clear()
    course.decide(course.arrive(pods))


class TestPodsOfARealCluster:
    """What admission and controllers add to pods costs next to nothing."""

    @pytest.mark.parametrize("name", CORE_WORKLOADS)
    def test_deciding_on_them_takes_as_many_calls_as_on_bare_ones(self, name):
        courses = [Course(name, 60, 60, bare=bare) for bare in (False, True)]
        for course in courses:
            # The second pod of a shape is the first that is kept.
            course.decide(course.arrive(course.make(4)))
        real, bare = (calls_of(partial(decide, course, course.make(20))) for course in courses)
        assert real <= 1.15 * bare

    def test_all_decisions_on_replicas_use_what_is_kept(self):
        course = Course("basic", 50, 602)
        run([course])
        # The first is only remembered, and the second makes what the others use.
        assert inside(course._core).shapes.tally.answered == 600


@pytest.mark.parametrize("owner", OWNERS)
def test_a_node_update_costs_one_judgement_however_many_replicas_wait(owner):
    few, many = (Waiting(owner, nodes=5, parked=parked) for parked in (50, 500))
    for waiting in (few, many):
        waiting.update()
    assert len(inside(many.core).queue.parked.groups()) == 1
    assert calls_of(many.update) <= calls_of(few.update) + 50
