"""NodeName by example: a pod that names its node may only go there."""

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

OTHER_NODE = ("node(s) didn't match the requested node name", False)


def bench():
    return PluginBench(made("NodeName"), make_node("a"), make_node("b"))


def test_a_pod_that_names_no_node_may_go_anywhere():
    assert bench().skips(make_pod("p"))


def test_every_node_but_the_named_one_is_rejected():
    assert bench().rejections(make_pod("p").on("b")) == [OTHER_NODE, None]


def test_a_name_that_no_node_has_rejects_all_of_them():
    assert bench().rejections(make_pod("p").on("gone")) == [OTHER_NODE, OTHER_NODE]
