"""PodTopologySpread, rule by rule."""

import math

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SKEWED = ("node(s) didn't match pod topology spread constraints", True)
NO_LABEL = (
    "node(s) didn't match pod topology spread constraints (missing required label)",
    False,
)
WEB = {"matchLabels": {"app": "web"}}


def hard(key=ZONE, **more):
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB,
        **more,
    }


def soft(key=ZONE, **more):
    return hard(key, whenUnsatisfiable="ScheduleAnyway", **more)


def web(name, node="", **labels):
    pod = make_pod(name).label(app="web", **labels)
    return pod.on(node) if node else pod


def newcomer(*constraints, labels=(("app", "web"),), **spec):
    pod = make_pod("new").label(**dict(labels))
    pod.raw["spec"].update(topologySpreadConstraints=list(constraints), **spec)
    return pod


def owned(pod, kind, name, api_version="apps/v1"):
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "controller": True}
    pod.raw["metadata"]["ownerReferences"] = [owner]
    return pod


class Bench(PluginBench):
    """Three nodes: a1 and a2 in zone a, b1 in zone b; and bare, which has no labels."""

    def __init__(self, **arguments):
        super().__init__(made("PodTopologySpread", **arguments))
        for name in ("a1", "a2", "b1"):
            self.node(make_node(name).label(**{ZONE: name[0], HOSTNAME: name}))
        self.node(make_node("bare"))

    def owner(self, kind, name, selector, namespace="default"):
        metadata = {"name": name, "namespace": namespace}
        return self.put({"kind": kind, "metadata": metadata, "spec": {"selector": selector}})

    def rejected(self, pod, *names):
        return self.judged(self.prepare(pod), *names)

    def judged(self, term, *names):
        """Return what is said of the nodes that are rejected."""
        names = names or ("a1", "a2", "b1", "bare")
        found = zip(names, self.judge(term, *names), strict=True)
        return {name: said for name, said in found if said}


class TestFilter:
    """Domains may not be fuller than the emptiest one by more than maxSkew."""

    def test_a_pod_without_hard_constraints_is_skipped(self):
        assert Bench().prepare(newcomer()) is SKIP
        assert Bench().prepare(newcomer(soft())) is SKIP

    def test_rejects_the_domain_that_is_ahead(self):
        bench = Bench().place(web("p", "a1"))
        assert bench.rejected(newcomer(hard())) == {
            "a1": SKEWED,
            "a2": SKEWED,
            "bare": NO_LABEL,
        }

    def test_max_skew_is_what_a_domain_may_be_ahead(self):
        bench = Bench().place(web("p", "a1"))
        assert bench.rejected(newcomer(hard(maxSkew=2))) == {"bare": NO_LABEL}

    def test_a_newcomer_that_its_selector_does_not_pick_adds_nothing(self):
        bench = Bench().place(web("p", "a1"))
        other = newcomer(hard(), labels=(("app", "db"),))
        assert bench.rejected(other) == {"bare": NO_LABEL}

    def test_the_first_constraint_that_is_not_met_speaks(self):
        bench = Bench()
        for zone in ("a", "b"):
            bench.node(make_node(f"{zone}3").label(**{ZONE: zone, "rack": zone}))
        bench.place(web("p", "a3"))
        assert bench.rejected(newcomer(hard(ZONE), hard("rack")), "a1") == {"a1": SKEWED}
        assert bench.rejected(newcomer(hard("rack"), hard(ZONE)), "a1") == {"a1": NO_LABEL}

    def test_only_nodes_with_all_keys_count(self):
        bench = Bench().node(make_node("c1").label(**{ZONE: "c"})).place(web("p", "a1"))
        bench.place(web("q", "b1"))
        # Zone c would be the emptiest, but c1 has no host name.
        both = newcomer(hard(maxSkew=1), hard(HOSTNAME, maxSkew=9))
        assert bench.rejected(both, "a1", "b1") == {}
        assert set(bench.rejected(newcomer(hard()), "a1", "b1")) == {"a1", "b1"}

    def test_other_namespaces_and_terminating_pods_do_not_count(self):
        bench = Bench().place(web("p", "a1").namespace("else"), web("q", "a1").deleting())
        assert bench.rejected(newcomer(hard())) == {"bare": NO_LABEL}

    def test_with_fewer_domains_than_wanted_the_minimum_is_zero(self):
        bench = Bench().place(web("p", "a1"), web("q", "b1"))
        assert bench.rejected(newcomer(hard(minDomains=2))) == {"bare": NO_LABEL}
        assert set(bench.rejected(newcomer(hard(minDomains=3)))) == {"a1", "a2", "b1", "bare"}

    def test_an_empty_selector_counts_nobody_but_the_newcomer(self):
        bench = Bench().place(web("p", "a1"), web("q", "a1"))
        assert bench.rejected(newcomer(hard(labelSelector={}))) == {"bare": NO_LABEL}

    def test_an_absent_selector_picks_nobody(self):
        bench = Bench().place(web("p", "a1"), web("q", "a1"))
        nobody = hard(labelSelector=None, matchLabelKeys=["app"])
        assert bench.rejected(newcomer(nobody)) == {"bare": NO_LABEL}

    def test_match_label_keys_spread_each_revision_by_itself(self):
        bench = Bench().place(web("p", "a1", revision="1"), web("q", "b1", revision="2"))
        revised = hard(matchLabelKeys=["revision", "absent"])
        pod = newcomer(revised, labels=(("app", "web"), ("revision", "2")))
        assert bench.rejected(pod, "a1", "b1") == {"b1": SKEWED}

    def test_a_selector_that_can_not_be_read_is_an_error_of_the_pod(self):
        bad = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
        with pytest.raises(StatusError, match="obtaining pod's hard topology spread constraints: "):
            Bench().prepare(newcomer(hard(labelSelector=bad)))
        with pytest.raises(StatusError, match="obtaining pod's soft topology spread constraints: "):
            Bench().raw_scores(newcomer(soft(labelSelector=bad)))
        assert Bench().raw_scores(newcomer(hard(labelSelector=bad), soft())) is not None


class TestInclusion:
    """Policies say which nodes count."""

    @pytest.fixture
    def bench(self):
        """An empty zone c with a node that the newcomer can't go to; one pod in each other."""
        far = make_node("c1").label(**{ZONE: "c", HOSTNAME: "c1", "size": "small"}).taint("gpu")
        bench = Bench().node(far).place(web("p", "a1"), web("q", "b1"))
        for name in ("a1", "a2", "b1"):
            labels = {ZONE: name[0], HOSTNAME: name, "size": "large"}
            bench.node(make_node(name).label(**labels))
        return bench

    def test_node_affinity_is_honoured_unless_told_otherwise(self, bench):
        large = {"nodeSelector": {"size": "large"}}
        assert bench.rejected(newcomer(hard(), **large), "a1", "b1") == {}
        ignoring = newcomer(hard(nodeAffinityPolicy="Ignore"), **large)
        assert set(bench.rejected(ignoring, "a1", "b1")) == {"a1", "b1"}

    def test_required_affinity_is_part_of_it(self, bench):
        term = {"matchExpressions": [{"key": "size", "operator": "In", "values": ["large"]}]}
        required = {"nodeSelectorTerms": [term]}
        affinity = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
        }
        assert bench.rejected(newcomer(hard(), affinity=affinity), "a1", "b1") == {}

    def test_taints_are_ignored_unless_told_otherwise(self, bench):
        assert set(bench.rejected(newcomer(hard()), "a1", "b1")) == {"a1", "b1"}
        honouring = hard(nodeTaintsPolicy="Honor")
        assert bench.rejected(newcomer(honouring), "a1", "b1") == {}
        tolerant = newcomer(honouring).tolerates("gpu", operator="Exists")
        assert set(bench.rejected(tolerant, "a1", "b1")) == {"a1", "b1"}

    def test_an_excluded_node_whose_domain_nobody_else_is_in_counts_zero(self, bench):
        pod = newcomer(hard(maxSkew=1), nodeSelector={"size": "large"})
        # Its own affinity is another plugin's business: 0 + 1 - 1 is within the skew.
        assert bench.rejected(pod, "c1") == {}

    def test_nobody_included_leaves_the_minimum_at_zero(self, bench):
        pod = newcomer(hard(), nodeSelector={"size": "huge"})
        assert bench.rejected(pod, "a1", "b1") == {}


class TestPodsMoreOrLess:
    """Dry runs, in upstream's arithmetic."""

    def test_removing_a_pod_empties_its_domain(self):
        bench = Bench().place(web("p", "a1"))
        term = bench.prepare(newcomer(hard()))
        without = bench.plugin.remove_pod(term, PodView(web("p").obj()), bench.view("a1"))
        assert bench.judged(without, "a1") == {}
        assert bench.judged(term, "a1") == {"a1": SKEWED}

    def test_adding_a_pod_fills_it(self):
        bench = Bench()
        term = bench.prepare(newcomer(hard()))
        crowded = bench.plugin.add_pod(term, PodView(web("p").obj()), bench.view("a1"))
        assert bench.judged(crowded, "a1") == {"a1": SKEWED}
        assert bench.judged(crowded, "b1") == {}

    def test_filling_the_emptiest_domain_raises_the_minimum(self):
        bench = Bench().place(web("p", "a1"), web("q", "b1"), web("r", "a2"))
        term = bench.prepare(newcomer(hard()))
        assert bench.judged(term, "a1", "b1") == {"a1": SKEWED}
        filled = bench.plugin.add_pod(term, PodView(web("s").obj()), bench.view("b1"))
        assert bench.judged(filled, "a1") == {}

    def test_a_terminating_pod_is_taken_off_though_it_was_never_counted(self):
        bench = Bench().place(web("p", "a1"), web("q", "a1").deleting(), web("r", "b1"))
        term = bench.prepare(newcomer(hard(minDomains=3)))
        assert bench.judged(term, "a1") == {"a1": SKEWED}
        going = PodView(web("q").deleting().obj())
        without = bench.plugin.remove_pod(term, going, bench.view("a1"))
        assert bench.judged(without, "a1") == {}

    def test_a_count_may_become_negative_and_is_the_minimum_then(self):
        bench = Bench().place(web("p", "a1").deleting())
        term = bench.prepare(newcomer(hard()))
        going = PodView(web("p").deleting().obj())
        without = bench.plugin.remove_pod(term, going, bench.view("a1"))
        assert bench.judged(without, "a1", "b1") == {"b1": SKEWED}

    def test_pods_may_move_between_domains(self):
        bench = Bench().node(make_node("c1").label(**{ZONE: "c"}))
        bench.place(web("p", "a1"), *(web(f"{n}{i}", n) for n in ("b1", "c1") for i in range(2)))
        term = bench.prepare(newcomer(hard()))
        assert bench.judged(term, "a1", "b1", "c1") == {"b1": SKEWED, "c1": SKEWED}
        moving = PodView(web("p").obj())
        without = bench.plugin.remove_pod(term, moving, bench.view("c1"))
        moved = bench.plugin.add_pod(without, moving, bench.view("a1"))
        assert bench.judged(moved, "a1", "b1", "c1") == {"a1": SKEWED, "b1": SKEWED}

    def test_an_empty_selector_counts_pods_that_come_and_go(self):
        bench = Bench()
        term = bench.prepare(newcomer(hard(labelSelector={})))
        crowded = bench.plugin.add_pod(term, PodView(web("p").obj()), bench.view("a1"))
        assert bench.judged(crowded, "a1") == {"a1": SKEWED}

    @pytest.mark.parametrize(
        ("pod", "node"),
        [
            (web("p").namespace("else"), "a1"),
            (make_pod("p"), "a1"),
            (web("p"), "bare"),
            (web("p"), "small"),
        ],
        ids=["another namespace", "not picked", "no key", "excluded by affinity"],
    )
    def test_a_pod_that_does_not_count_changes_nothing(self, pod, node):
        bench = Bench().node(make_node("small").label(**{ZONE: "a", HOSTNAME: "small"}))
        for name in ("a1", "b1"):
            bench.node(make_node(name).label(**{ZONE: name[0], "size": "large"}))
        term = bench.prepare(newcomer(hard(), nodeSelector={"size": "large"}))
        same = bench.plugin.add_pod(term, PodView(pod.obj()), bench.view(node))
        assert bench.judged(same, "a1", "b1") == {}
        here = bench.plugin.add_pod(term, PodView(web("p").obj()), bench.view("a1"))
        assert bench.judged(here, "a1") == {"a1": SKEWED}


class TestScore:
    """Domains with few pods are preferred."""

    def test_a_pod_without_soft_constraints_is_skipped(self):
        assert Bench().raw_scores(newcomer(hard())) is None

    def test_counts_are_weighted_by_the_number_of_domains(self):
        bench = Bench().place(web("p", "a1"), web("q", "a2"), web("r", "b1"))
        found = bench.raw_scores(newcomer(soft(maxSkew=3)), "a1", "a2", "b1")
        weight = math.log(2 + 2)
        assert found == [round(2 * weight + 2), round(2 * weight + 2), round(weight + 2)]

    def test_nodes_that_are_not_feasible_count_but_make_no_domains(self):
        bench = Bench().place(web("p", "a2"), web("q", "a2"), web("r", "b1"))
        assert bench.raw_scores(newcomer(soft()), "a1") == [round(2 * math.log(1 + 2))]

    def test_host_names_are_counted_node_by_node(self):
        bench = Bench().place(web("p", "a1"), web("q", "a1"), web("r", "a2"))
        weight = math.log(3 + 2)
        found = bench.raw_scores(newcomer(soft(HOSTNAME)), "a1", "a2", "b1")
        assert found == [round(2 * weight), round(weight), 0]

    def test_host_names_are_counted_whatever_the_policies_say(self):
        bench = Bench().place(web("p", "a1"))
        pod = newcomer(soft(HOSTNAME), soft(maxSkew=2), nodeSelector={"size": "large"})
        assert bench.raw_scores(pod, "a1", "b1") == [round(math.log(4) + 1), 1]

    @pytest.mark.parametrize("is_bare_there", [False, True])
    @pytest.mark.parametrize("constraints", [[soft(HOSTNAME)], [soft(), soft(HOSTNAME)], []])
    def test_one_row_may_stand_for_several_equal_nodes(self, constraints, is_bare_there):
        bench = Bench().place(web("p", "b1"), web("q", "b1"))
        bench.owner(Kind.SERVICE, "s", {"app": "web"})
        bench.node(make_node("a3").label(**{ZONE: "a", HOSTNAME: "a3"}))
        pod = newcomer(*constraints)
        bare = ["bare"] if is_bare_there else []
        one_by_one = bench.raw_scores(pod, "a1", "a2", "a3", "b1", *bare)
        together = bench.raw_scores(pod, "a1", "b1", *bare, times=[3, 1, *(1 for _ in bare)])
        assert together == [one_by_one[0], *one_by_one[3:]]

    def test_few_pods_score_high(self):
        bench = Bench().place(*(web(f"p{i}", "a1") for i in range(3)), web("q", "b1"))
        # Raw: 4, 4, 1.
        assert bench.scores(newcomer(soft()), "a1", "a2", "b1") == [25, 25, 100]

    def test_without_any_pod_everybody_scores_full(self):
        assert Bench().scores(newcomer(soft()), "a1", "b1") == [100, 100]

    def test_nodes_without_a_key_are_ignored_and_score_nothing(self):
        bench = Bench().place(web("p", "a1"))
        assert bench.scores(newcomer(soft()), "a1", "b1", "bare") == [0, 100, 0]
        assert bench.scores(newcomer(soft("rack")), "a1", "b1") == [0, 0]

    def test_a_node_without_pods_is_not_taken_for_an_ignored_one(self):
        bench = Bench().place(web("p", "a1"))
        assert bench.raw_scores(newcomer(soft(HOSTNAME)), "a2", "bare") == [0, -1]


class TestDefaults:
    """Pods without constraints of their own."""

    def test_a_pod_that_nothing_selects_is_not_spread(self):
        assert Bench().raw_scores(web("new")) is None

    def test_the_built_in_ones_spread_over_hosts_and_zones(self):
        bench = Bench().owner(Kind.SERVICE, "s", {"app": "web"}).place(web("p", "a1"))
        host, zone = math.log(3 + 2), math.log(2 + 2)
        assert bench.raw_scores(web("new"), "a1", "a2", "b1") == [
            round(host + 2 + zone + 4),
            round(2 + zone + 4),
            2 + 4,
        ]

    def test_the_built_in_ones_ignore_nobody(self):
        bench = Bench().owner(Kind.SERVICE, "s", {"app": "web"}).place(web("p", "a1"))
        bench.node(make_node("host").label(**{HOSTNAME: "host"}))
        # The node without a zone is one more domain of zones.
        zone = math.log(2 + 2)
        found = bench.raw_scores(web("new"), "a2", "host", "bare")
        assert found == [round(2 + zone + 4), 2, 0]

    def test_an_empty_zone_and_none_are_the_same_domain(self):
        bench = Bench().owner(Kind.SERVICE, "s", {"app": "web"}).place(web("p", "bare"))
        bench.node(make_node("empty").label(**{ZONE: ""}))
        assert bench.raw_scores(web("new"), "empty") == [round(math.log(1 + 2) + 4)]

    def test_constraints_of_the_pod_leave_no_room_for_them(self):
        bench = Bench().owner(Kind.SERVICE, "s", {"app": "web"})
        assert bench.raw_scores(newcomer(hard())) is None

    def test_hard_ones_come_from_a_list(self):
        listed = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]
        bench = Bench(defaultingType="List", defaultConstraints=listed)
        bench.owner(Kind.SERVICE, "s", {"app": "web"}).place(web("p", "a1"))
        assert bench.rejected(web("new"), "a1", "b1") == {"a1": SKEWED}
        assert bench.raw_scores(web("new")) is None

    def test_listed_ones_ignore_nodes_without_their_keys(self):
        listed = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]
        bench = Bench(defaultingType="List", defaultConstraints=listed)
        bench.owner(Kind.SERVICE, "s", {"app": "web"}).place(web("p", "a1"))
        assert bench.scores(web("new"), "b1", "bare") == [100, 0]

    def test_an_empty_list_spreads_nobody(self):
        bench = Bench(defaultingType="List").owner(Kind.SERVICE, "s", {"app": "web"})
        assert bench.raw_scores(web("new")) is None
        assert bench.prepare(web("new")) is SKIP

    @pytest.mark.parametrize(
        ("kind", "api_version", "selector"),
        [
            (Kind.REPLICATION_CONTROLLER, "v1", {"app": "web"}),
            (Kind.REPLICA_SET, "apps/v1", WEB),
            (Kind.STATEFUL_SET, "apps/v1", WEB),
        ],
    )
    def test_owners_select(self, kind, api_version, selector):
        bench = Bench().owner(kind, "o", selector).place(web("p", "a1"))
        pod = owned(web("new"), kind.name, "o", api_version)
        found = bench.raw_scores(pod, "a1", "b1")
        assert found is not None
        assert found[0] > found[1]

    @pytest.mark.parametrize(
        ("kind", "name", "api_version"),
        [
            ("ReplicaSet", "gone", "apps/v1"),
            ("ReplicaSet", "o", "extensions/v1beta1"),
            ("Job", "o", "batch/v1"),
        ],
    )
    def test_other_owners_do_not(self, kind, name, api_version):
        bench = Bench().owner(Kind.REPLICA_SET, "o", WEB)
        assert bench.raw_scores(owned(web("new"), kind, name, api_version)) is None

    def test_an_owner_that_does_not_control_does_not(self):
        bench = Bench().owner(Kind.REPLICA_SET, "o", WEB)
        pod = owned(web("new"), "ReplicaSet", "o")
        pod.raw["metadata"]["ownerReferences"][0]["controller"] = False
        assert bench.raw_scores(pod) is None

    def test_services_and_owner_select_together(self):
        bench = Bench().owner(Kind.SERVICE, "s", {"app": "web"})
        bench.owner(Kind.REPLICA_SET, "o", {"matchLabels": {"hash": "1"}})
        bench.place(web("p", "a1", hash="1"), web("q", "b1", hash="2"))
        found = bench.raw_scores(owned(web("new"), "ReplicaSet", "o"), "a1", "b1")
        assert found[0] > found[1] == 6

    def test_the_controller_s_pairs_go_before_the_services(self):
        bench = Bench().owner(Kind.SERVICE, "s", {"app": "web"})
        bench.owner(Kind.REPLICATION_CONTROLLER, "o", {"app": "db"})
        bench.place(web("p", "a1"), make_pod("q").label(app="db").on("b1"))
        pod = owned(web("new"), "ReplicationController", "o", "v1")
        found = bench.raw_scores(pod, "a1", "b1")
        assert found[1] > found[0] == 6

    @pytest.mark.parametrize(
        ("selector", "namespace"),
        [(None, "default"), ({}, "default"), ({"app": "db"}, "default"), ({"app": "web"}, "else")],
        ids=["no selector", "empty selector", "other pods", "another namespace"],
    )
    def test_services_that_do_not_select_the_pod_do_not_count(self, selector, namespace):
        bench = Bench().owner(Kind.SERVICE, "s", selector, namespace)
        assert bench.raw_scores(web("new")) is None

    @pytest.mark.parametrize(
        "selector",
        [None, {}, {"matchExpressions": [{"key": "app", "operator": "Like"}]}],
        ids=["none", "empty", "unreadable"],
    )
    def test_an_owner_without_a_useful_selector_adds_nothing(self, selector):
        bench = Bench().owner(Kind.REPLICA_SET, "o", selector)
        assert bench.raw_scores(owned(web("new"), "ReplicaSet", "o")) is None
