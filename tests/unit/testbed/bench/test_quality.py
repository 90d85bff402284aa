"""Placements looked at: what breaks a rule is found, and what scores less is seen."""

import copy
import math

import pytest

from k8s_scheduler.simulate.cluster import Cluster
from k8s_scheduler.simulate.profiles import profile_in_force
from testbed.bench.constraints import UnreadableError
from testbed.bench.quality import inspect, placements
from testbed.bench.scenario_pods import plain_pod, related_pod, spread_pod
from testbed.bench.scenarios import SCENARIOS
from testbed.errors import TestbedError
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL

BASIC = SCENARIOS["basic"]
NODES = BASIC.make_nodes(6)  # two in each zone: 0 and 3, 1 and 4, 2 and 5
BLUE = {"color": "blue"}


def on(pod, node):
    pod = copy.deepcopy(pod)
    pod["spec"]["nodeName"] = node
    return pod


def look(pods, places, *, before=(), scenario=BASIC, nodes=NODES, **more):
    """Inspect pods that were bound to these nodes one after the other."""
    bound = [on(pod, f"node-{place}") for pod, place in zip(pods, places, strict=True)]
    order = [(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in bound]
    # As the API server lists them.
    items = [{k: v for k, v in pod.items() if k != "kind"} for pod in [*bound, *before]]
    return inspect(scenario, nodes, items[::-1], order, **more)


def pods_of(name, count):
    return SCENARIOS[name].make_pods(count)


def test_pods_that_ask_for_nothing_may_be_anywhere():
    quality = look(pods_of("basic", 6), range(6))
    assert quality.is_sound
    assert quality.pods == 6
    assert (quality.deviation_per_node, quality.deviation_per_zone) == (0, 0)


def test_a_node_with_too_little_cpu_is_overfilled():
    quality = look(pods_of("basic", 41), [0] * 41)
    assert quality.violations == {"room": 1}
    assert quality.examples == ("node-0: 4.1 cpu used, 4 given",)
    assert look(pods_of("basic", 40), [0] * 40).is_sound


def test_a_node_with_too_little_memory_is_overfilled():
    small = copy.deepcopy(NODES)
    small[0]["status"]["allocatable"]["memory"] = "999Mi"
    assert look(pods_of("basic", 2), [0, 0], nodes=small).violations == {"room": 1}
    assert look(pods_of("basic", 2), [0, 1], nodes=small).is_sound


def test_a_node_with_too_many_pods_is_overfilled():
    small = copy.deepcopy(NODES)
    small[0]["status"]["allocatable"]["pods"] = "2"
    quality = look(pods_of("basic", 3), [0, 0, 0], nodes=small)
    assert quality.examples == ("node-0: 3 pods used, 2 given",)


def test_pods_in_place_take_room_and_finished_ones_do_not():
    before = [on(pod, "node-0") for pod in SCENARIOS["basic"].make_init_pods(40, 1)]
    quality = look(pods_of("basic", 1), [0], before=before)
    assert (quality.violations, quality.refused) == ({"room": 1}, 1)
    before[0]["status"] = {"phase": "Succeeded"}
    assert look(pods_of("basic", 1), [0], before=before).is_sound


def test_a_node_that_is_not_there_is_no_place():
    nodes = NODES[:5]
    assert look(pods_of("basic", 1), [5], nodes=nodes).violations == {"node": 1}


def test_a_second_pod_on_a_node_breaks_anti_affinity():
    quality = look(pods_of("anti", 3), [0, 1, 0])
    assert quality.violations == {"anti-affinity": 2}  # both want to be apart
    assert "pod-2 on node-0" in quality.examples[0]
    assert look(pods_of("anti", 3), [0, 1, 2]).is_sound


def test_those_in_place_want_to_be_apart_too():
    before = [on(related_pod("shy", BLUE, side="podAntiAffinity", key=ZONE_LABEL), "node-0")]
    newcomer = [plain_pod("come", labels=BLUE)]
    quality = look(newcomer, [3], before=before)
    assert quality.violations == {"anti-affinity": 1}
    assert "want to be apart from color=blue" in quality.examples[0]
    assert look(newcomer, [4], before=before).is_sound
    assert look([plain_pod("other")], [3], before=before).is_sound


def test_a_zone_without_its_like_breaks_affinity():
    quality = look(pods_of("aff", 3), [0, 3, 1])
    assert quality.violations == {"affinity": 1}
    assert quality.examples[0].endswith("no pod of color=blue is in zone-1")
    assert look(pods_of("aff", 3), [1, 4, 1]).is_sound


def test_only_who_is_its_own_like_may_be_the_first():
    fan = related_pod("fan", BLUE, side="podAffinity", key=ZONE_LABEL)
    fan["metadata"]["labels"] = {"color": "red"}
    assert look([fan], [0]).violations == {"affinity": 1}
    before = [on(plain_pod("star", labels=BLUE), "node-3")]
    assert look([fan], [0], before=before).is_sound


def test_an_end_that_no_order_allows_breaks_the_spread():
    quality = look(pods_of("spread", 6), [0] * 6)
    assert quality.violations == {"topology spread": 1}
    assert quality.unordered_skews == 1
    assert "maxSkew is 5" in quality.examples[0]
    assert look(pods_of("spread", 5), [0] * 5).is_sound


def test_a_skew_that_the_order_of_the_writes_explains_is_counted_apart():
    quality = look(pods_of("spread", 8), [0, 0, 0, 0, 0, 0, 1, 2])
    assert (quality.is_sound, quality.unordered_skews) == (True, 1)
    quality = look(pods_of("spread", 8), [1, 2, 0, 0, 0, 0, 0, 0])
    assert (quality.is_sound, quality.unordered_skews) == (True, 0)


def test_the_spread_looks_at_the_label_of_the_node():
    bare = copy.deepcopy(NODES)
    del bare[5]["metadata"]["labels"][ZONE_LABEL]
    quality = look(pods_of("spread", 1), [5], nodes=bare)
    assert (quality.violations, quality.unordered_skews) == ({"topology spread": 1}, 0)


def test_soft_constraints_may_be_broken():
    pod = spread_pod("soft", BLUE, key=HOSTNAME_LABEL, action="ScheduleAnyway", max_skew=1)
    others = [pod | {"metadata": pod["metadata"] | {"name": f"soft-{n}"}} for n in range(3)]
    assert look(others, [0, 0, 0]).is_sound
    assert look(pods_of("prefanti", 2), [0, 0]).is_sound


def bound_volumes(count, nodes, pairs):
    """Return the claims and volumes of a run in which these claims got these volumes."""
    objects = SCENARIOS["localpv"].make_objects(nodes, count)
    named = {item["metadata"]["name"]: item for item in objects}
    for claim, volume in pairs.items():
        named[f"claim-{claim}"]["spec"]["volumeName"] = f"volume-{volume}"
        named[f"claim-{claim}"]["metadata"]["annotations"] = {
            "pv.kubernetes.io/bind-completed": "yes"
        }
        named[f"claim-{claim}"]["status"] = {"phase": "Bound"}
        named[f"volume-{volume}"]["status"] = {"phase": "Bound"}
        named[f"volume-{volume}"]["spec"]["claimRef"] = {
            "name": f"claim-{claim}",
            "namespace": "default",
        }
    return {
        kind: [
            {k: v for k, v in item.items() if k != "kind"}
            for item in objects
            if item["kind"] == kind
        ]
        for kind in ("PersistentVolume", "PersistentVolumeClaim")
    }


def test_pods_with_their_volumes_on_their_nodes_are_sound():
    pods, scenario = pods_of("localpv", 3), SCENARIOS["localpv"]
    objects = bound_volumes(3, 6, {0: 2, 1: 0, 2: 1})
    quality = look(pods, [2, 0, 1], scenario=scenario, objects=objects)
    assert quality.is_sound
    # Each was judged as long as its volume was free and those of the others were taken.
    assert (quality.judged, quality.refused) == (3, 0)


@pytest.mark.parametrize(
    ("pairs", "places", "told"),
    [
        ({0: 0}, [0, 1], "claim-1 is bound to no volume"),
        ({0: 0, 1: 1}, [0, 2], "volume-1 is on another node"),
    ],
)
def test_a_volume_that_is_not_there_is_found_missing(pairs, places, told):
    objects = bound_volumes(2, 6, pairs)
    quality = look(pods_of("localpv", 2), places, scenario=SCENARIOS["localpv"], objects=objects)
    assert quality.violations == {"volume": 1}
    assert told in quality.examples[0]


def test_two_claims_can_not_have_one_volume():
    objects = bound_volumes(2, 6, {0: 0, 1: 0})
    quality = look(pods_of("localpv", 2), [0, 0], scenario=SCENARIOS["localpv"], objects=objects)
    assert quality.violations == {"volume": 1}


def test_a_node_whose_volume_is_taken_is_refused():
    objects = bound_volumes(2, 6, {0: 0})
    quality = look(pods_of("localpv", 2), [0, 0], scenario=SCENARIOS["localpv"], objects=objects)
    assert quality.refused == 1


def test_claims_have_to_be_listed():
    with pytest.raises(ValueError, match="PersistentVolumeClaim"):
        look(pods_of("localpv", 1), [0], scenario=SCENARIOS["localpv"])


# Scores


def best_places(pods, nodes=NODES):
    """Return where this project's core would put them."""
    cluster = Cluster(profile_in_force(None))
    cluster.start(nodes)
    places = []
    for pod in pods:
        cluster.apply(pod)
        totals = cluster.judge(cluster.pod(f"default/{pod['metadata']['name']}")).totals
        node = max(sorted(totals), key=totals.__getitem__)
        cluster.apply(on(pod, node))
        places.append(int(node.removeprefix("node-")))
    return places


@pytest.mark.parametrize("name", ["basic", "spread", "prefspread", "anti", "aff", "prefanti"])
def test_the_best_nodes_have_the_best_score(name):
    pods = pods_of(name, 6)
    quality = look(pods, best_places(pods), scenario=SCENARIOS[name])
    assert quality.is_sound
    assert quality.mean_score == quality.mean_best_score
    assert (quality.judged, quality.refused, quality.best_share) == (6, 0, 1.0)


def test_a_worse_placement_scores_less_and_is_less_even():
    pods = pods_of("prefspread", 12)
    best, worse = look(pods, best_places(pods)), look(pods, [0] * 12)
    assert worse.is_sound
    assert worse.mean_score < best.mean_score
    assert worse.mean_score < worse.mean_best_score
    assert worse.best_share < 0.5
    assert worse.deviation_per_node > best.deviation_per_node
    assert worse.deviation_per_zone > best.deviation_per_zone


def test_what_breaks_a_constraint_is_refused_by_the_core_too():
    quality = look(pods_of("anti", 3), [0, 1, 0])
    assert (quality.judged, quality.refused) == (3, 1)


def test_owners_are_known_to_the_core():
    # Without its service and its ReplicaSet nothing would spread the pods of this shape.
    scenario = SCENARIOS["mixed"]
    owned = [scenario.measured(f"pod-{number}", 6) for number in range(2)]
    assert look(owned, [0, 0], scenario=scenario).best_share == 0.5
    together, apart = (look(owned, [0, node], scenario=scenario) for node in (3, 1))
    assert together.mean_score < apart.mean_score


def test_a_sample_is_judged():
    quality = look(pods_of("basic", 30), [n % 6 for n in range(30)], sample=7)
    assert (quality.pods, quality.judged) == (30, 7)


def test_the_same_pods_are_judged_whoever_bound_them_in_whatever_order():
    """Pods of one shape score more than those of another, wherever they are."""
    scenario = SCENARIOS["mixed"]
    shapes = [0, 2] * 12
    pods = [scenario.measured(f"pod-{number}", shape) for number, shape in enumerate(shapes)]
    places = dict(zip((p["metadata"]["name"] for p in pods), best_places(pods), strict=True))
    sorted_out = sorted(pods, key=lambda pod: shapes[int(pod["metadata"]["name"][4:])])
    means = []
    for order in (pods, sorted_out):
        where = [places[pod["metadata"]["name"]] for pod in order]
        means.append(look(order, where, scenario=scenario, sample=4).mean_best_score)
    assert means[0] == pytest.approx(means[1], abs=5)


def test_nothing_is_judged_where_pods_had_to_go():
    scenario = SCENARIOS["preemption"]
    pods = pods_of("preemption", 2)
    bound = [on(pods[0], "node-0")]
    # The other one was preempted after it had been bound.
    quality = inspect(scenario, NODES, bound, [("pod-0", "node-0"), ("pod-1", "node-1")])
    assert (quality.pods, quality.judged) == (1, 0)
    assert math.isnan(quality.mean_score)
    overfull = [on(pod, "node-0") for pod in SCENARIOS["preemptionbasic"].make_pods(2)]
    order = [(pod["metadata"]["name"], "node-0") for pod in overfull]
    assert inspect(scenario, NODES, overfull, order).violations == {"room": 1}


# What can't be looked at


def test_a_pod_that_is_gone_or_elsewhere_is_told_of():
    pod = on(plain_pod("pod-0"), "node-1")
    with pytest.raises(ValueError, match="pod-0 was bound to node-0 and is listed on node-1"):
        inspect(BASIC, NODES, [pod], [("pod-0", "node-0")])
    with pytest.raises(ValueError, match="pod-7 was bound to node-0 and is not listed"):
        inspect(BASIC, NODES, [pod], [("pod-7", "node-0")])


def change_spec(pod):
    pod["spec"]["nodeSelector"] = {"a": "b"}


def change_affinity(pod):
    pod["spec"]["affinity"]["nodeAffinity"] = {"preferred": []}


def change_term(pod):
    term = pod["spec"]["affinity"]["podAntiAffinity"]
    term["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaceSelector"] = {}


def change_selector(pod):
    term = pod["spec"]["affinity"]["podAntiAffinity"]
    term["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"] = {}


@pytest.mark.parametrize("change", [change_spec, change_affinity, change_term, change_selector])
def test_what_is_not_read_is_not_waved_through(change):
    pod = pods_of("anti", 1)[0]
    change(pod)
    with pytest.raises(UnreadableError, match="pod default/pod-0: "):
        look([pod], [0])


def test_what_the_core_can_not_read_is_told_of():
    pod = plain_pod("odd")
    pod["spec"]["tolerations"] = "none"
    with pytest.raises(ValueError, match="Pod default/odd"):
        look([pod], [0])


def test_a_pod_that_was_bound_by_the_log_and_is_on_no_node_is_not_passed_over():
    pods = [
        {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}},
        {"metadata": {"name": "q"}, "spec": {}},
    ]
    assert placements(["p"], pods, may_be_gone=False) == [("p", "n")]
    assert placements(["gone", "p"], pods, may_be_gone=True) == [("p", "n")]
    for order, may_be_gone in ((["p", "q"], True), (["p", "gone"], False)):
        with pytest.raises(TestbedError, match=f"1 pods .* are on no node: {order[-1]}"):
            placements(order, pods, may_be_gone=may_be_gone)
