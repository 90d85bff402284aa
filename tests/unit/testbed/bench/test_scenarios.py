"""The workloads: of any size, and all of it can be placed."""

import json
from collections import Counter

import pytest

from k8s_scheduler.simulate.cluster import Cluster
from k8s_scheduler.simulate.profiles import profile_in_force
from testbed.bench.scenario_pods import SHAPES
from testbed.bench.scenarios import BENCH_SCHEDULER, DEFAULT, SCENARIOS
from testbed.workload import ZONE_LABEL

NAMES = [
    "basic",
    "spread",
    "prefspread",
    "anti",
    "aff",
    "prefanti",
    "deployment",
    "mixed",
    "churn",
    "preemption",
    "preemptionbasic",
    "unschedulable",
    "localpv",
]
# Those that have to be allowed to preempt before they can be placed.
BY_FORCE = {"preemptionbasic"}


def place_all(name, nodes, pods):
    """Place all pods of a workload, one after the other; return how many of them fit."""
    scenario = SCENARIOS[name]
    counts = scenario.counts(nodes, pods)
    cluster = Cluster(profile_in_force(None))
    cluster.start(
        [
            *scenario.make_nodes(counts.nodes),
            *scenario.make_objects(counts.nodes, counts.pods),
            *scenario.make_init_pods(counts.init_pods, counts.nodes),
        ]
    )
    placed, taken = 0, set()
    for pod in scenario.make_pods(counts.pods):
        cluster.apply(pod)
        totals = cluster.judge(cluster.pod(f"default/{pod['metadata']['name']}")).totals
        if totals:
            placed += 1
            # The worst choice, and the first of the equal ones: room has to be there for any.
            node = min(totals, key=lambda name: (totals[name], name))
            cluster.apply({**pod, "spec": pod["spec"] | {"nodeName": node}})
            if scenario.name == "localpv":
                bind_claim(cluster, scenario.make_objects(nodes, counts.pods), pod, node, taken)
    assert cluster.problem == ""
    return placed, counts


def bind_claim(cluster, objects, pod, node, taken):
    """Bind the pod's claim to a volume on its node that is not taken yet."""
    claim_name = pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    claim = next(o for o in objects if o["metadata"]["name"] == claim_name)
    volume = next(
        o
        for o in objects
        if o["kind"] == "PersistentVolume"
        and f'["{node}"]' in json.dumps(o)
        and o["metadata"]["name"] not in taken
    )
    taken.add(volume["metadata"]["name"])
    volume["spec"]["claimRef"] = {"name": claim_name, "namespace": "default", "uid": "u"}
    claim["spec"]["volumeName"] = volume["metadata"]["name"]
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["status"] = {"phase": "Bound"}
    cluster.apply(volume)
    cluster.apply(claim)


def test_all_workloads_are_there():
    assert list(SCENARIOS) == NAMES
    assert set(DEFAULT) <= set(NAMES)
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BY_FORCE])
@pytest.mark.parametrize("nodes", [1, 2, 4, 7])
def test_everything_that_is_to_be_placed_can_be_placed(name, nodes):
    placed, counts = place_all(name, nodes, 1_000_000)
    assert placed == counts.pods > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_usual_size_has_room(name):
    scenario = SCENARIOS[name]
    counts = scenario.counts()
    assert (counts.nodes, counts.init_pods, counts.pods, counts.background) == (
        scenario.nodes,
        scenario.init_pods,
        scenario.pods,
        scenario.background_pods,
    )


@pytest.mark.parametrize("name", NAMES)
def test_pods_are_the_schedulers_and_have_names_of_their_own(name):
    scenario = SCENARIOS[name]
    counts = scenario.counts(20, 60)
    initial = scenario.make_init_pods(counts.init_pods, counts.nodes)
    pods = scenario.make_pods(counts.pods) + scenario.background(counts.background)
    names = Counter(pod["metadata"]["name"] for pod in initial + pods)
    assert max(names.values()) == 1
    assert {pod["spec"]["schedulerName"] for pod in pods} == {BENCH_SCHEDULER}
    assert not any("nodeName" in pod["spec"] for pod in pods)
    assert [pod["spec"]["nodeName"] for pod in initial[:21]] == [
        f"node-{number % 20}" for number in range(min(21, len(initial)))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_priorities_that_pods_name_exist(name):
    scenario = SCENARIOS[name]
    pods = scenario.make_pods(3) + scenario.background(min(1, scenario.background_pods))
    if scenario.churn is not None:
        pods += [o for o in scenario.churn.at(0, nodes=100).create if o["kind"] == "Pod"]
    named = {pod["spec"].get("priorityClassName") for pod in pods} - {None}
    made = {
        item["metadata"]["name"]
        for item in scenario.make_objects(10, 3)
        if item["kind"] == "PriorityClass"
    }
    assert named == made


def test_sizes_scale_with_nodes_and_pods():
    counts = SCENARIOS["unschedulable"].counts(1000, 500)
    assert (counts.nodes, counts.init_pods, counts.pods, counts.background) == (1000, 20, 500, 500)


def test_one_pod_on_a_node_at_most_stands_alone():
    counts = SCENARIOS["anti"].counts(100, 1000)
    assert (counts.init_pods, counts.pods) == (20, 80)


def test_room_can_be_spared():
    assert SCENARIOS["anti"].counts(100, 1000, spare=30).pods == 50
    assert SCENARIOS["anti"].counts(100, 40, spare=30).pods == 40


def test_what_is_spared_takes_half_of_the_room_at_most_if_the_rest_is_wanted():
    def shared(pods, spare):
        counts = SCENARIOS["anti"].counts(100, pods, spare=spare)
        return counts.pods, counts.arriving

    assert shared(1000, 80) == shared(1000, 1000) == (40, 40)
    assert shared(10, 1000) == (10, 70)
    assert shared(1000, 0) == (80, 0)


def test_pods_that_arrive_later_have_claims_and_volumes_that_nobody_else_has():
    scenario = SCENARIOS["localpv"]
    counts = scenario.counts(5, 10, spare=4)
    pods = [*scenario.make_pods(counts.pods), *scenario.make_arriving(counts)]
    asked = [v["persistentVolumeClaim"]["claimName"] for p in pods for v in p["spec"]["volumes"]]
    objects = scenario.make_objects(counts.nodes, counts.pods + counts.arriving)
    there = [item["metadata"]["name"] for item in objects if item["kind"].endswith("Claim")]
    assert len(set(asked)) == len(pods) == 14
    assert sorted(asked) == sorted(there)
    assert len({pod["metadata"]["name"] for pod in pods}) == 14


def test_preemptors_get_a_node_each():
    counts = SCENARIOS["preemptionbasic"].counts(10, 100)
    assert (counts.init_pods, counts.pods) == (40, 10)


@pytest.mark.parametrize(("nodes", "pods", "told"), [(0, 1, "0 nodes"), (1, 0, "0 pods")])
def test_nothing_is_no_size(nodes, pods, told):
    with pytest.raises(ValueError, match=told):
        SCENARIOS["basic"].counts(nodes, pods)


def test_nodes_are_dealt_over_the_zones_and_have_the_usual_size():
    nodes = SCENARIOS["basic"].make_nodes(7)
    zones = Counter(node["metadata"]["labels"][ZONE_LABEL] for node in nodes)
    assert sorted(zones.values()) == [2, 2, 3]
    assert nodes[0]["status"]["allocatable"] == {"cpu": "4", "memory": "32Gi", "pods": "110"}


def test_a_mixed_cluster_has_fifty_shapes():
    pods = SCENARIOS["mixed"].make_pods(3 * SHAPES)
    shapes = Counter(
        json.dumps([pod["metadata"]["labels"], pod["spec"]], sort_keys=True) for pod in pods
    )
    assert len(shapes) == SHAPES
    assert set(shapes.values()) == {3}


@pytest.mark.parametrize(("name", "count"), [("mixed", SHAPES // 7), ("deployment", 10)])
def test_replica_sets_that_pods_belong_to_exist(name, count):
    scenario = SCENARIOS[name]
    owners = {
        owner["name"]
        for pod in scenario.make_pods(SHAPES)
        for owner in pod["metadata"]["ownerReferences"]
        if owner["kind"] == "ReplicaSet"
    }
    sets = {o["metadata"]["name"] for o in scenario.make_objects(5, 50) if o["kind"] != "Service"}
    services = {o["spec"]["selector"]["app"] for o in scenario.make_objects(5, 50)[::2]}
    assert owners == sets == services
    assert len(owners) == count


@pytest.mark.parametrize("name", NAMES)
def test_every_pod_belongs_to_a_controller_as_in_a_real_cluster(name):
    scenario = SCENARIOS[name]
    for pod in (*scenario.make_pods(20), *scenario.make_init_pods(5, 5)):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["controller"] is True
        labels = pod["metadata"]["labels"]
        assert ("pod-template-hash" in labels) == (owner["kind"] == "ReplicaSet")
        assert ("batch.kubernetes.io/job-name" in labels) == (owner["kind"] == "Job")


def test_what_is_recreated_goes_before_the_next_one_comes():
    churn = SCENARIOS["churn"].churn
    first, second, third = (churn.at(tick, nodes=10) for tick in range(3))
    assert [item["kind"] for item in first.create] == ["Node", "Pod", "Service"]
    assert second.delete == first.create
    assert (first.delete, second.create) == ((), ())
    assert third.create[0]["metadata"]["name"] != first.create[0]["metadata"]["name"]


def test_preemptors_leave_most_nodes_alone():
    churn = SCENARIOS["preemption"].churn
    steps = [churn.at(tick, nodes=20) for tick in range(30)]
    assert [len(step.create) for step in steps] == [1] * 5 + [0] * 25


def test_pods_that_are_too_large_keep_coming():
    churn = SCENARIOS["unschedulable"].churn
    names = {churn.at(tick, nodes=1).create[0]["metadata"]["name"] for tick in range(40)}
    assert len(names) == 40


def test_there_is_a_volume_for_every_claim():
    kinds = Counter(o["kind"] for o in SCENARIOS["localpv"].make_objects(4, 10))
    assert kinds == {"StorageClass": 1, "PersistentVolume": 10, "PersistentVolumeClaim": 10}
