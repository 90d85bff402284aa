"""NodeUnschedulable by example: `kubectl cordon` keeps new pods off a node."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

CORDONED = ("node(s) were unschedulable", False)
CORDON_TAINT = "node.kubernetes.io/unschedulable"


@pytest.fixture
def bench():
    return PluginBench(made("NodeUnschedulable"), make_node("open"), make_node("shut").cordoned())


def test_a_cordoned_node_is_rejected(bench):
    assert bench.rejections(make_pod("p")) == [None, CORDONED]


def test_an_uncordoned_node_takes_pods_again(bench):
    bench.node(make_node("shut"))
    assert bench.rejections(make_pod("p")) == [None, None]


@pytest.mark.parametrize("key", [CORDON_TAINT, ""], ids=["that taint", "every taint"])
def test_a_pod_that_tolerates_the_taint_of_cordoned_nodes_goes_there(bench, key):
    assert bench.skips(make_pod("p").tolerates(key, operator="Exists"))


def test_a_toleration_of_another_effect_does_not_help(bench):
    pod = make_pod("p").tolerates(CORDON_TAINT, operator="Exists", effect="NoExecute")
    assert bench.rejections(pod) == [None, CORDONED]
