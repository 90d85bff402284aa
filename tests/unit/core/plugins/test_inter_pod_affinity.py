"""InterPodAffinity, rule by rule."""

import numpy as np
import pytest

from k8s_scheduler.core.framework.plugin import SKIP, Reject
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.messages.outgoing import Bind
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.harness import only
from tests.unit.core.plugins.plugin_bench import PluginBench, made

TOO_FAR = ("node(s) didn't match pod affinity rules", False)
TOO_NEAR = ("node(s) didn't match pod anti-affinity rules", True)
REFUSED = ("node(s) didn't satisfy existing pods anti-affinity rules", True)


def term(app="web", key="zone", **more):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def with_terms(pod, side, *required, preferred=()):
    affinity = pod.raw["spec"].setdefault("affinity", {})
    affinity[side] = {
        "requiredDuringSchedulingIgnoredDuringExecution": list(required),
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "podAffinityTerm": wish} for weight, wish in preferred
        ],
    }
    return pod


def near(pod, *required, preferred=()):
    return with_terms(pod, "podAffinity", *required, preferred=preferred)


def far(pod, *required, preferred=()):
    return with_terms(pod, "podAntiAffinity", *required, preferred=preferred)


class Bench(PluginBench):
    """Three nodes: a1 and a2 in zone a, b1 in zone b; and bare, which is in none."""

    def __init__(self, **arguments):
        super().__init__(made("InterPodAffinity", **arguments))
        for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            self.node(make_node(name).label(zone=zone, host=name))
        self.node(make_node("bare"))

    def space(self, name, **labels):
        return self.put({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def web(name="web", node="a1"):
    return make_pod(name).label(app="web").on(node)


class TestAffinity:
    """Required affinity."""

    def test_only_the_domains_of_a_matching_pod_do(self):
        bench = Bench().place(web())
        assert bench.rejections(near(make_pod("p"), term())) == [None, None, TOO_FAR, TOO_FAR]

    def test_one_pod_has_to_match_all_terms(self):
        bench = Bench().place(web(), make_pod("db").label(tier="db").on("a1"))
        both = near(
            make_pod("p"),
            term(),
            {"labelSelector": {"matchLabels": {"tier": "db"}}, "topologyKey": "zone"},
        )
        assert bench.rejections(both) == [TOO_FAR] * 4
        bench.place(make_pod("all").label(app="web", tier="db").on("b1"))
        assert bench.rejections(both) == [TOO_FAR, TOO_FAR, None, TOO_FAR]

    def test_every_topology_counts_by_itself(self):
        bench = Bench().place(web())
        pod = near(make_pod("p"), term(), term(key="host"))
        assert bench.rejections(pod) == [None, TOO_FAR, TOO_FAR, TOO_FAR]

    def test_the_first_of_its_kind_goes_wherever_the_topology_is(self):
        first = near(make_pod("p").label(app="web"), term())
        assert Bench().rejections(first) == [None, None, None, TOO_FAR]

    def test_the_second_goes_where_the_first_is(self):
        bench = Bench().place(web(node="b1"))
        second = near(make_pod("p").label(app="web"), term())
        assert bench.rejections(second) == [TOO_FAR, TOO_FAR, None, TOO_FAR]

    def test_a_pod_that_does_not_pick_itself_is_never_the_first(self):
        assert Bench().rejections(near(make_pod("p").label(app="db"), term())) == [TOO_FAR] * 4

    def test_a_match_outside_all_topologies_leaves_room_for_a_first(self):
        bench = Bench().place(web(node="bare"))
        first = near(make_pod("p").label(app="web"), term())
        assert bench.rejections(first) == [None, None, None, TOO_FAR]

    def test_pods_on_their_way_out_count(self):
        bench = Bench().place(web().deleting())
        assert bench.rejections(near(make_pod("p"), term())) == [None, None, TOO_FAR, TOO_FAR]

    def test_pods_on_a_node_that_is_gone_do_not_count(self):
        bench = Bench().place(web(node="b1"))
        bench.cache.remove_node("b1")
        first = near(make_pod("p").label(app="web"), term())
        assert bench.rejections(first) == [None, None, TOO_FAR]

    def test_a_term_without_selector_picks_nobody(self):
        bench = Bench().place(web())
        assert bench.rejections(near(make_pod("p"), {"topologyKey": "zone"})) == [TOO_FAR] * 4


class TestAntiAffinity:
    """Required anti-affinity, of the newcomer and of those in place."""

    def test_away_from_the_domains_of_a_matching_pod(self):
        bench = Bench().place(web())
        assert bench.rejections(far(make_pod("p"), term())) == [TOO_NEAR, TOO_NEAR, None, None]

    def test_any_term_is_enough(self):
        bench = Bench().place(web(), make_pod("db").label(app="db").on("b1"))
        pod = far(make_pod("p"), term(key="host"), term("db"))
        assert bench.rejections(pod) == [TOO_NEAR, None, TOO_NEAR, None]

    def test_placed_pods_keep_the_newcomer_away(self):
        bench = Bench().place(far(make_pod("loner").on("a1"), term()))
        pod = make_pod("p").label(app="web")
        assert bench.rejections(pod) == [REFUSED, REFUSED, None, None]

    def test_the_order_of_the_reasons(self):
        bench = Bench().place(far(web(), term()))
        pod = far(near(make_pod("p").label(app="web"), term(key="host")), term())
        assert bench.rejections(pod) == [TOO_NEAR, TOO_FAR, TOO_FAR, TOO_FAR]
        plain = far(make_pod("q").label(app="web"), term(key="host"))
        assert bench.rejections(plain) == [TOO_NEAR, REFUSED, None, None]


class TestSkip:
    """PreFilter has nothing to say only where upstream has nothing to say."""

    def test_a_pod_without_demands_that_nobody_refuses(self):
        bench = Bench().place(far(make_pod("loner").on("a1"), term("db")))
        assert bench.prepare(make_pod("p").label(app="web")) is SKIP

    def test_preferences_are_no_demands(self):
        assert Bench().prepare(near(make_pod("p"), preferred=[(1, term())])) is SKIP

    def test_a_term_held_outside_its_topology_refuses_nobody(self):
        bench = Bench().place(far(make_pod("loner").on("bare"), term()))
        assert bench.prepare(make_pod("p").label(app="web")) is SKIP

    def test_a_demand_that_rejects_nothing_is_no_reason_to_skip(self):
        bench = Bench()
        prepared = bench.prepare(far(make_pod("p"), term()))
        assert prepared is not SKIP
        assert bench.judge(prepared) == [None] * 4

    def test_terms_that_cannot_be_parsed_end_it(self):
        bad = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}
        pod = near(make_pod("p"), preferred=[(1, {"topologyKey": "zone", "labelSelector": bad})])
        found = Bench().prepare(pod)
        assert isinstance(found, Reject)
        assert not found.resolvable
        assert found.reasons[0].text.startswith("parsing pod: ")
        assert "Near" in found.reasons[0].text


class TestNamespaces:
    """Where a term looks."""

    def test_in_its_own_unless_told(self):
        bench = Bench().place(web().namespace("other"))
        assert bench.rejections(far(make_pod("p"), term())) == [None] * 4

    def test_in_the_listed_ones_only(self):
        bench = Bench().place(web().namespace("other"), web("own", "b1"))
        pod = far(make_pod("p"), term(namespaces=["other"]))
        assert bench.rejections(pod) == [TOO_NEAR, TOO_NEAR, None, None]

    def test_in_the_selected_ones_as_well(self):
        bench = Bench().place(web().namespace("red"), web("w2", "b1").namespace("blue"))
        bench.space("red", team="x").space("blue", team="y")
        selector = {"matchLabels": {"team": "x"}}
        pod = far(make_pod("p"), term(namespaceSelector=selector))
        assert bench.rejections(pod) == [TOO_NEAR, TOO_NEAR, None, None]
        pod = far(make_pod("p"), term(namespaceSelector=selector, namespaces=["blue"]))
        assert bench.rejections(pod) == [TOO_NEAR, TOO_NEAR, TOO_NEAR, None]
        bench.space("red", team="y")
        pod = far(make_pod("p"), term(namespaceSelector=selector))
        assert bench.rejections(pod) == [None] * 4

    def test_the_empty_selector_is_all_of_them_known_or_not(self):
        bench = Bench().place(web().namespace("unknown"))
        pod = far(make_pod("p"), term(namespaceSelector={}))
        assert bench.rejections(pod) == [TOO_NEAR, TOO_NEAR, None, None]

    def test_a_namespace_that_is_not_known_has_no_labels_for_those_in_place_only(self):
        without = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
        bench = Bench().place(web().namespace("unknown"))
        pod = far(make_pod("p"), term(namespaceSelector=without))
        assert bench.rejections(pod) == [None] * 4
        bench = Bench().place(far(make_pod("loner").on("a1"), term(namespaceSelector=without)))
        newcomer = make_pod("p").label(app="web").namespace("unknown")
        assert bench.rejections(newcomer) == [REFUSED, REFUSED, None, None]
        bench.space("unknown", team="x")
        assert bench.prepare(newcomer) is SKIP


class TestOneMoreOrLess:
    """What a dry run finds with another pod on a node, or without one."""

    def bench_and_term(self, *placed, newcomer):
        bench = Bench().place(*placed)
        return bench, bench.prepare(newcomer)

    def test_the_last_one_that_is_avoided_leaves(self):
        bench, prepared = self.bench_and_term(web(), newcomer=far(make_pod("p"), term()))
        gone = bench.plugin.remove_pod(prepared, PodView(web().obj()), bench.view("a1"))
        assert bench.judge(gone, "a1") == [None]
        assert bench.judge(prepared, "a1") == [TOO_NEAR], "the term at hand stays as it was"

    def test_another_in_the_domain_is_still_in_the_way(self):
        bench, prepared = self.bench_and_term(
            web(), web("w2", "a2"), newcomer=far(make_pod("p"), term())
        )
        gone = bench.plugin.remove_pod(prepared, PodView(web().obj()), bench.view("a1"))
        assert bench.judge(gone, "a1") == [TOO_NEAR]

    def test_terms_of_one_topology_count_a_pod_once_each(self):
        newcomer = near(make_pod("p"), term(), term(namespaces=["default"]))
        bench, prepared = self.bench_and_term(web(), web("w2"), newcomer=newcomer)
        gone = bench.plugin.remove_pod(prepared, PodView(web().obj()), bench.view("a1"))
        assert bench.judge(gone, "a1") == [None]

    def test_the_last_one_that_refuses_leaves(self):
        loner = far(make_pod("loner").on("a1"), term())
        bench, prepared = self.bench_and_term(loner, newcomer=make_pod("p").label(app="web"))
        gone = bench.plugin.remove_pod(prepared, PodView(loner.obj()), bench.view("a1"))
        assert bench.judge(gone, "a1", "a2") == [None, None]

    def test_the_last_of_a_group_leaves_and_the_newcomer_is_the_first(self):
        newcomer = near(make_pod("p").label(app="web"), term(), term(key="host"))
        bench, prepared = self.bench_and_term(web(), newcomer=newcomer)
        assert bench.judge(prepared, "b1") == [TOO_FAR]
        gone = bench.plugin.remove_pod(prepared, PodView(web().obj()), bench.view("a1"))
        assert bench.judge(gone, "b1", "bare") == [None, TOO_FAR]

    def test_one_that_is_needed_comes(self):
        bench, prepared = self.bench_and_term(newcomer=near(make_pod("p"), term()))
        come = bench.plugin.add_pod(prepared, PodView(web().obj()), bench.view("a1"))
        assert bench.judge(come, "a1", "a2", "b1") == [None, None, TOO_FAR]

    def test_one_that_refuses_in_a_topology_nobody_used_before_comes(self):
        newcomer = far(make_pod("p").label(app="web"), term("db"))
        bench, prepared = self.bench_and_term(newcomer=newcomer)
        loner = far(make_pod("loner"), term(key="host"))
        come = bench.plugin.add_pod(prepared, PodView(loner.obj()), bench.view("a1"))
        assert bench.judge(come, "a1", "a2") == [REFUSED, None]

    def test_nothing_counts_on_a_node_outside_the_topology(self):
        bench, prepared = self.bench_and_term(newcomer=far(make_pod("p"), term()))
        come = bench.plugin.add_pod(prepared, PodView(web().obj()), bench.view("bare"))
        assert bench.judge(come) == [None] * 4

    def test_one_whose_terms_cannot_be_parsed_refuses_nobody(self):
        bad = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
        loner = far(make_pod("loner"), {"topologyKey": "zone", "labelSelector": bad})
        bench, prepared = self.bench_and_term(newcomer=far(make_pod("p"), term()))
        come = bench.plugin.add_pod(prepared, PodView(loner.obj()), bench.view("a1"))
        assert bench.judge(come) == [None] * 4


class TestScores:
    """What wishes are worth."""

    def test_wishes_of_the_newcomer_count_for_every_pod(self):
        bench = Bench().place(web(), web("w2", "a2"), web("w3", "b1"))
        assert bench.raw_scores(near(make_pod("p"), preferred=[(5, term())])) == [10, 10, 5, 0]
        pod = far(make_pod("p"), preferred=[(5, term()), (1, term(key="host"))])
        assert bench.raw_scores(pod) == [-11, -11, -6, 0]

    def test_wishes_of_those_in_place_count_too(self):
        bench = Bench().place(
            near(make_pod("fan").on("a1"), preferred=[(5, term())]),
            far(make_pod("loner").on("b1"), preferred=[(7, term())]),
        )
        assert bench.raw_scores(make_pod("p").label(app="web")) == [5, 5, -7, 0]

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({}, [1, 1, 0, 0]),
            ({"hardPodAffinityWeight": 30}, [30, 30, 0, 0]),
            ({"hardPodAffinityWeight": 0}, None),
        ],
    )
    def test_required_affinity_of_those_in_place_counts(self, arguments, expected):
        bench = Bench(**arguments).place(near(make_pod("fan").on("a1"), term()))
        assert bench.raw_scores(make_pod("p").label(app="web")) == expected

    def test_a_pod_counts_for_each_of_its_terms_even_if_they_are_equal(self):
        bench = Bench().place(near(make_pod("fan").on("a1"), preferred=[(5, term())] * 2))
        assert bench.raw_scores(make_pod("p").label(app="web")) == [10, 10, 0, 0]

    def test_pods_on_nodes_that_are_not_feasible_count(self):
        bench = Bench().place(web())
        pod = near(make_pod("p"), preferred=[(5, term())])
        assert bench.raw_scores(pod, "a2", "b1") == [5, 0]

    def test_wishes_that_concern_nobody_are_skipped(self):
        bench = Bench().place(web("w", "bare"))
        assert bench.raw_scores(near(make_pod("p"), preferred=[(5, term())])) is None
        assert bench.raw_scores(make_pod("p")) is None

    def test_wishes_that_outweigh_each_other_are_not_skipped(self):
        bench = Bench().place(web())
        pod = far(near(make_pod("p"), preferred=[(5, term())]), preferred=[(5, term())])
        assert bench.raw_scores(pod) == [0, 0, 0, 0]
        fan = near(make_pod("fan").on("a1"), preferred=[(5, term())])
        bench = Bench().place(far(fan, preferred=[(5, term())]))
        assert bench.raw_scores(make_pod("p").label(app="web")) == [0, 0, 0, 0]

    def test_existing_pods_may_be_ignored_for_newcomers_without_wishes(self):
        fan = near(make_pod("fan").on("b1"), preferred=[(5, term())])
        bench = Bench(ignorePreferredTermsOfExistingPods=True).place(fan, web())
        plain = make_pod("p").label(app="web")
        assert bench.raw_scores(plain) is None
        wishing = near(make_pod("q").label(app="web"), preferred=[(1, term())])
        assert bench.raw_scores(wishing) == [1, 1, 5, 0]

    @pytest.mark.parametrize(
        ("raw", "expected"),
        [
            ([0, 0, 0], [0, 0, 0]),
            ([7, 7], [0, 0]),
            ([-5, 0, 5], [0, 50, 100]),
            ([0, 1, 2, 3], [0, 33, 66, 100]),
            # 100 * (29 / 100) is a little less than 29.
            ([0, 29, 100], [0, 28, 100]),
        ],
    )
    def test_scores_are_scaled_between_the_extremes(self, raw, expected):
        assert made("InterPodAffinity").normalize(np.array(raw)).tolist() == expected


def test_who_was_skipped_is_asked_again_once_a_known_term_comes_into_its_topology():
    """The term is held all the time, first where it means nothing: no new term tells of it."""
    harness = FullHarness()
    roomy = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    harness.node(make_node("a1").label(zone="a").offers(**roomy).obj())
    harness.node(make_node("bare").offers(cpu="1", memory="1Gi", pods="1").obj())
    harness.pod(far(make_pod("loner").on("bare"), term()).obj())
    for number in range(4):
        harness.pod(make_pod(f"web-{number}").label(app="web").obj())
        assert [bind.node for bind in only(Bind, harness.schedule())] == ["a1"]
    harness.pod(far(make_pod("another").on("a1"), term()).obj())
    harness.pod(make_pod("late").label(app="web").obj())
    assert only(Bind, harness.schedule()) == []
    assert harness.parked() == ["late"]
