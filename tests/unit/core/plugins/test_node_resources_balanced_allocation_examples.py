"""NodeResourcesBalancedAllocation by example: rather a node whose resources are used evenly.

With b = (1 - standard deviation of the used shares) * 100, rounded down, the score is
50 + (50 + b with the pod - b without it) / 2.
"""

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made


def bench(**args):
    nodes = (make_node(name).offers(cpu="4", memory="8Gi", pods="110") for name in ("a", "b"))
    return PluginBench(made("NodeResourcesBalancedAllocation", **args), *nodes)


def test_a_pod_without_requests_has_no_say():
    assert bench().scores(make_pod("p")) is None


def test_a_pod_that_keeps_the_balance_scores_75():
    assert bench().scores(make_pod("p").request(cpu="1", memory="2Gi")) == [75, 75]


def test_a_pod_that_evens_things_out_scores_more_one_that_does_not_less():
    # a uses half of its cpu and no memory: b(a) = 75. With the pod it uses half of both: 100.
    # b is empty, so that b(b) = 100; with the pod half of its memory is used: 75.
    found = bench().place(make_pod("other").request(cpu="2").on("a"))
    assert found.scores(make_pod("p").request(memory="4Gi")) == [87, 62]


def test_the_resources_that_count_can_be_configured():
    found = bench(resources=[{"name": "cpu", "weight": 1}])
    found.place(make_pod("other").request(cpu="2").on("a"))
    assert found.scores(make_pod("p").request(cpu="1")) == [75, 75]
    assert found.scores(make_pod("p").request(memory="1Gi")) is None
