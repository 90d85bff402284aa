"""NodeResourcesFit by example: what a pod requests has to be free; what is left is the score."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made


def bench(*nodes, **args):
    return PluginBench(made("NodeResourcesFit", **args), *nodes)


def node(name, **more):
    """Return a node of 4 cpus and 8 GiB with three pod slots."""
    return make_node(name).offers(cpu="4", memory="8Gi", pods="3", **more)


def using(name, on, **amounts):
    return make_pod(name).request(**amounts).on(on)


class TestFilter:
    """All shortages are told together; those of an empty node can't be resolved by preemption."""

    def test_requests_up_to_what_is_free_fit(self):
        taken = bench(node("n")).place(using("other", "n", cpu="3", memory="6Gi"))
        assert taken.rejections(make_pod("p").request(cpu="1", memory="2Gi")) == [None]

    @pytest.mark.parametrize(
        ("requests", "verdict"),
        [
            ({"cpu": "1001m"}, ("Insufficient cpu", True)),
            ({"memory": "3Gi"}, ("Insufficient memory", True)),
            ({"cpu": "2", "memory": "3Gi"}, ("Insufficient cpu", "Insufficient memory", True)),
            ({"cpu": "5"}, ("Insufficient cpu", False)),
            ({"ephemeral_storage": "1"}, ("Insufficient ephemeral-storage", False)),
            ({"example.com/gpu": "1"}, ("Insufficient example.com/gpu", False)),
        ],
    )
    def test_what_lacks_is_named(self, requests, verdict):
        taken = bench(node("n")).place(using("other", "n", cpu="3", memory="6Gi"))
        assert taken.rejections(make_pod("p").request(**requests)) == [verdict]

    def test_every_pod_needs_a_slot(self):
        full = bench(node("n")).place(*(using(f"p{i}", "n", cpu="1m") for i in range(3)))
        assert full.rejections(make_pod("p")) == [("Too many pods", True)]

    def test_init_containers_count_as_much_as_the_largest_of_them(self):
        # They run one after the other, before the containers.
        pod = make_pod("p").request(cpu="1").init(cpu="5").init(cpu="2")
        assert bench(node("n")).rejections(pod) == [("Insufficient cpu", False)]
        assert bench(node("n")).rejections(make_pod("p").request(cpu="1").init(cpu="4")) == [None]

    def test_the_overhead_of_the_runtime_counts(self):
        pod = make_pod("p").request(cpu="4").overhead(cpu="1m")
        assert bench(node("n")).rejections(pod) == [("Insufficient cpu", False)]

    @pytest.mark.parametrize(
        "args",
        [{"ignoredResources": ["example.com/gpu"]}, {"ignoredResourceGroups": ["example.com"]}],
    )
    def test_extended_resources_can_be_ignored(self, args):
        pod = make_pod("p").request(**{"example.com/gpu": "1"})
        assert bench(node("n"), **args).rejections(pod) == [None]


class TestScore:
    """Each resource scores by the strategy; the mean of cpu and memory is rounded down."""

    @pytest.fixture
    def pods(self):
        """Half of b's cpu and a quarter of its memory are taken; a is empty."""
        return [using("other", "b", cpu="2", memory="2Gi")]

    # The pod takes 1 of 4 cpus and 2 of 8 GiB: 75 and 75 are left of a, 25 and 50 of b.
    NEW = make_pod("p").request(cpu="1", memory="2Gi")

    def test_least_allocated_prefers_what_is_empty(self, pods):
        assert bench(node("a"), node("b")).place(*pods).scores(self.NEW) == [75, 37]

    def test_most_allocated_prefers_what_is_full(self, pods):
        strategy = {"type": "MostAllocated", "resources": [{"name": "cpu"}, {"name": "memory"}]}
        found = bench(node("a"), node("b"), scoringStrategy=strategy).place(*pods)
        assert found.scores(self.NEW) == [25, 62]

    def test_a_shape_says_what_a_used_share_is_worth(self, pods):
        # From 0 at nothing used to 10 (it counts as 100) at everything: MostAllocated, rounded.
        shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
        strategy = {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu"}, {"name": "memory"}],
            "requestedToCapacityRatio": {"shape": shape},
        }
        found = bench(node("a"), node("b"), scoringStrategy=strategy).place(*pods)
        assert found.scores(self.NEW) == [25, 63]

    def test_resources_have_weights(self, pods):
        weighted = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]
        strategy = {"type": "LeastAllocated", "resources": weighted}
        found = bench(node("a"), node("b"), scoringStrategy=strategy).place(*pods)
        assert found.scores(self.NEW) == [75, 31]

    def test_a_container_without_requests_counts_as_100m_and_200mi(self):
        pod = make_pod("p")
        pod.raw["spec"]["containers"] = [{"name": "c"}]
        # (97.5 of cpu, rounded down, and 97.6 of memory, rounded down) / 2.
        assert bench(node("a")).scores(pod) == [97]

    def test_a_node_without_the_resource_is_scored_by_the_others(self):
        found = bench(make_node("a").offers(cpu="4", pods="3"))
        assert found.scores(make_pod("p").request(cpu="1")) == [75]
