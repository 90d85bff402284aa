"""The benchmark of the core decides what it says it does."""

import pytest

from tests.bench.core_memory import growth
from tests.bench.core_speed import Course, lines, run
from tests.bench.core_workloads import CORE_WORKLOADS

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
    courses = [Course(name, NODES, 300) for name in ("basic", "hetero")]
    run(courses)
    table = list(lines([course.result() for course in courses]))
    assert [line.split()[0] for line in table] == ["workload", "basic", "hetero"]
    assert courses[0].result()["hit_share"] > 0.9
    assert courses[1].result()["hit_share"] == 0
    assert courses[0].result()["plain_us_per_decision"] > 0
