"""TaintToleration by example: hard taints reject, soft ones cost score."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

UNTOLERATED = ("node(s) had untolerated taint(s)", False)


def bench(*nodes):
    return PluginBench(made("TaintToleration"), *nodes)


class TestFilter:
    """A pod needs a toleration for each hard taint of its node."""

    @pytest.mark.parametrize(
        ("effect", "verdict"),
        [("NoSchedule", UNTOLERATED), ("NoExecute", UNTOLERATED), ("PreferNoSchedule", None)],
    )
    def test_only_hard_taints_reject(self, effect, verdict):
        nodes = make_node("plain"), make_node("tainted").taint("gpu", effect=effect)
        assert bench(*nodes).rejections(make_pod("p")) == [None, verdict]

    @pytest.mark.parametrize(
        ("toleration", "verdict"),
        [
            pytest.param({"value": "a100"}, None, id="equal value"),
            pytest.param({"value": "h100"}, UNTOLERATED, id="another value"),
            pytest.param({"operator": "Exists"}, None, id="any value"),
            pytest.param({"operator": "Exists", "effect": "NoExecute"}, UNTOLERATED, id="effect"),
        ],
    )
    def test_a_toleration_has_to_match_the_taint(self, toleration, verdict):
        tainted = bench(make_node("n").taint("gpu", value="a100"))
        assert tainted.rejections(make_pod("p").tolerates("gpu", **toleration)) == [verdict]

    def test_every_taint_has_to_be_tolerated(self):
        tainted = bench(make_node("n").taint("gpu").taint("spot"))
        pod = make_pod("p").tolerates("gpu", operator="Exists")
        assert tainted.rejections(pod) == [UNTOLERATED]
        assert tainted.rejections(pod.tolerates("spot", operator="Exists")) == [None]

    def test_a_toleration_without_a_key_tolerates_everything(self):
        tainted = bench(make_node("n").taint("gpu").taint("spot", effect="NoExecute"))
        assert tainted.rejections(make_pod("p").tolerates(operator="Exists")) == [None]


class TestScore:
    """The fewer PreferNoSchedule taints are not tolerated, the better."""

    @pytest.fixture
    def tainted(self):
        def soft(node, *keys):
            for key in keys:
                node.taint(key, effect="PreferNoSchedule")
            return node

        nodes = soft(make_node("0")), soft(make_node("1"), "x"), soft(make_node("2"), "x", "y")
        return bench(*nodes)

    def test_the_worst_node_gets_nothing_and_one_without_taints_all(self, tainted):
        assert tainted.scores(make_pod("p")) == [100, 50, 0]

    def test_what_is_tolerated_does_not_count(self, tainted):
        assert tainted.scores(make_pod("p").tolerates("x", operator="Exists")) == [100, 100, 0]

    def test_a_toleration_of_hard_taints_says_nothing_of_soft_ones(self, tainted):
        pod = make_pod("p").tolerates("x", operator="Exists", effect="NoSchedule")
        assert tainted.scores(pod) == [100, 50, 0]

    def test_nodes_without_soft_taints_all_get_everything(self):
        assert bench(make_node("a"), make_node("b").taint("gpu")).scores(make_pod("p")) == [100] * 2
