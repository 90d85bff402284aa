"""Nodes are shown uncopied while ghosts are behind them, and nothing of these is seen."""

import pytest

from k8s_scheduler.core.state.amounts.amounts import MANY
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL
from tests.unit.core.harness import Harness


def with_port(pod):
    ports = [{"containerPort": 80, "hostPort": 80}]
    pod.raw["spec"]["containers"] = [{"name": "c", "ports": ports}]
    return pod


def cluster(nodes: int) -> Harness:
    h = Harness(FULL)
    for number in range(nodes):
        offered = {"cpu": str(4 + number % 3), "memory": "8Gi", "pods": "10"}
        h.node(make_node(f"n{number}").offers(**offered).obj())
    h.pod(with_port(make_pod("taker")).on("n1").obj())
    h.pod(make_pod("large").request(cpu="2").on("n2").obj())
    return h


@pytest.mark.parametrize("nodes", [4, MANY], ids=["few nodes", "so many that numbers are kept"])
def test_what_is_thought_of_nodes_does_not_depend_on_ghosts(nodes):
    plain, haunted = cluster(nodes), cluster(nodes)
    for number in range(3):
        pod = with_port(make_pod(f"g{number}")).request(cpu="1").on(f"ghost-{number}")
        haunted.pod(pod.obj())
    table = inside(haunted.core).cache.nodes
    assert table.present_rows() is table.all_rows
    assert table.row_count == nodes + 3
    for pod in (make_pod("p").request(cpu="1"), with_port(make_pod("q"))):
        found = haunted.core.judge(pod.obj())
        assert len(found.totals) >= nodes - 1
        assert found == plain.core.judge(pod.obj())
