"""The benchmark's workloads are what they are meant to be. How fast they are is not asked here."""

import pytest

from tests.bench.plain_decisions import Bench, line
from tests.bench.workloads import WORKLOADS
from tests.inside import inside


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_pods_get_a_node_unless_the_cluster_is_full(name):
    bench = Bench(WORKLOADS[name], nodes=24, pods=48)
    placed = {bench.decide().placed for _ in range(8)}
    assert placed == {not WORKLOADS[name].full}


def test_churn_takes_a_pod_away_for_every_one_that_comes():
    bench = Bench(WORKLOADS["churn"], nodes=6, pods=12)
    for _ in range(10):
        bench.decide()
    assert inside(bench._core).cache.pod_count == 12


def test_a_line_says_how_many_were_placed():
    assert line("full", nodes=6, pods=12, decisions=4, profile=0).split()[-1] == "0/4"
