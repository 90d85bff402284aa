"""PodTopologySpread by example: replicas are spread over zones and nodes."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

SKEWED = ("node(s) didn't match pod topology spread constraints", True)
NO_LABEL = (
    "node(s) didn't match pod topology spread constraints (missing required label)",
    False,
)


def bench(*places, **args):
    """Return nodes a1 and a2 of zone a, b1 of zone b, with a replica on each of the places."""
    nodes = (make_node(name).label(zone=name[0], host=name) for name in ("a1", "a2", "b1"))
    replicas = (make_pod(f"r{i}").label(app="web").on(node) for i, node in enumerate(places))
    return PluginBench(made("PodTopologySpread", **args), *nodes).place(*replicas)


def replica(key="zone", *, is_hard=True, **more):
    """Return a new replica whose like must not differ by more than one between domains."""
    pod = make_pod("new").label(app="web")
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if is_hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pod.raw["spec"]["topologySpreadConstraints"] = [constraint | more]
    return pod


class TestFilter:
    """`DoNotSchedule`: no domain may have over maxSkew more than the emptiest one."""

    def test_a_pod_without_hard_constraints_may_go_anywhere(self):
        assert bench("a1").skips(replica(is_hard=False))

    def test_the_zone_that_is_ahead_is_rejected_whatever_the_node(self):
        assert bench("a1").rejections(replica()) == [SKEWED, SKEWED, None]

    def test_over_hosts_only_the_node_itself_counts(self):
        assert bench("a1").rejections(replica("host")) == [SKEWED, None, None]

    def test_equal_zones_both_take_one_more(self):
        assert bench("a1", "b1").rejections(replica()) == [None, None, None]

    def test_max_skew_allows_more(self):
        assert bench("a1").rejections(replica(maxSkew=2)) == [None, None, None]

    def test_pods_that_the_selector_does_not_match_do_not_count(self):
        found = bench().place(make_pod("db").label(app="db").on("a1"))
        assert found.rejections(replica()) == [None, None, None]

    def test_pods_of_other_namespaces_do_not_count(self):
        found = bench().place(make_pod("r").namespace("other").label(app="web").on("a1"))
        assert found.rejections(replica()) == [None, None, None]

    def test_a_node_without_the_label_is_rejected_and_preemption_does_not_help(self):
        assert bench().node(make_node("bare")).rejections(replica(), "bare") == [NO_LABEL]

    def test_below_min_domains_the_emptiest_domain_counts_as_empty(self):
        # Three zones are wanted and there are two: each may have maxSkew pods at most.
        assert bench("a1", "b1").rejections(replica(minDomains=3)) == [SKEWED] * 3


class TestScore:
    """`ScheduleAnyway`: the fewer pods that match are in the domain, the better."""

    def test_the_emptier_zone_is_better(self):
        assert bench("a1", "a2").scores(replica(is_hard=False)) == [0, 0, 100]

    def test_equal_zones_are_equally_good(self):
        assert bench("a1", "b1").scores(replica(is_hard=False)) == [100, 100, 100]

    def test_a_node_without_the_label_is_worst(self):
        found = bench("a1", "b1").node(make_node("bare"))
        assert found.scores(replica(is_hard=False)) == [100, 100, 100, 0]

    def test_constraints_of_the_profile_hold_for_pods_without_their_own(self):
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        found = bench("a1", "a2", defaultingType="List", defaultConstraints=[constraint])
        # They spread what a Service selects.
        spec = {"selector": {"app": "web"}}
        metadata = {"name": "web", "namespace": "default"}
        found.put({"kind": "Service", "metadata": metadata, "spec": spec})
        assert found.scores(make_pod("new").label(app="web")) == [0, 0, 100]

    @pytest.mark.parametrize("pod", [make_pod("new"), replica()], ids=["none", "hard ones"])
    def test_without_soft_constraints_there_is_no_score(self, pod):
        assert bench(defaultingType="List").scores(pod) is None
