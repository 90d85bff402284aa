import threading
from collections import Counter
from datetime import UTC, datetime

import pytest

from testbed.workload import (
    SHAPES,
    collection_path,
    create_all,
    make_binding,
    make_node,
    make_nodes,
    make_pod,
    make_pods,
    object_path,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class TestNode:
    """A node as its kubelet would have reported it."""

    def test_gives_all_it_has_and_is_ready(self):
        node = make_node("n", cpu="4", memory="8Gi", pods=10, now=NOW)
        status = node["status"]
        assert status["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "10"}
        assert status["allocatable"] == status["capacity"]
        (ready,) = status["conditions"]
        assert (ready["type"], ready["status"]) == ("Ready", "True")
        assert ready["lastHeartbeatTime"] == "2026-01-02T03:04:05Z"

    def test_can_be_not_ready_and_cordoned(self):
        node = make_node("n", ready=False, unschedulable=True)
        assert node["status"]["conditions"][0]["status"] == "False"
        assert node["spec"] == {"unschedulable": True}

    def test_carries_labels_zone_taints_and_extended_resources(self):
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        node = make_node(
            "n",
            labels={"disk": "ssd"},
            zone="z1",
            taints=[taint],
            extended_resources={"example.com/gpu": "2"},
        )
        labels = node["metadata"]["labels"]
        assert labels["disk"] == "ssd"
        assert labels["topology.kubernetes.io/zone"] == "z1"
        assert labels["kubernetes.io/hostname"] == "n"
        assert node["spec"]["taints"] == [taint]
        assert node["status"]["allocatable"]["example.com/gpu"] == "2"

    def test_is_managed_by_kwok(self):
        assert make_node("n")["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}

    def test_many_have_sortable_names_and_are_dealt_over_zones(self):
        nodes = make_nodes(12)
        names = [node["metadata"]["name"] for node in nodes]
        assert names == sorted(names)
        assert (names[0], names[-1]) == ("node-00", "node-11")
        zones = Counter(n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes)
        assert set(zones.values()) == {4}

    def test_none_is_none(self):
        assert make_nodes(0) == []


class TestPod:
    """A pod that says only what it was asked to say."""

    def test_plain_pod_leaves_every_choice_to_the_server(self):
        spec = make_pod("p")["spec"]
        assert spec["containers"][0]["resources"] == {"requests": {"cpu": "100m", "memory": "64Mi"}}
        assert set(spec) == {"containers", "terminationGracePeriodSeconds"}

    def test_can_ask_for_nothing(self):
        pod = make_pod("p", cpu=None, memory=None)
        assert "resources" not in pod["spec"]["containers"][0]

    def test_carries_what_steers_a_scheduler(self):
        spec = make_pod(
            "p",
            scheduler_name="s",
            node_name="n",
            node_selector={"disk": "ssd"},
            tolerations=[{"operator": "Exists"}],
            priority_class="high",
        )["spec"]
        assert spec["schedulerName"] == "s"
        assert spec["nodeName"] == "n"
        assert spec["nodeSelector"] == {"disk": "ssd"}
        assert spec["tolerations"] == [{"operator": "Exists"}]
        assert spec["priorityClassName"] == "high"

    def test_many_are_dealt_over_the_shapes_with_unique_names(self):
        pods = make_pods(10, namespace="ns", scheduler_name="s")
        assert len({pod["metadata"]["name"] for pod in pods}) == 10
        shapes = Counter(pod["metadata"]["labels"]["app"] for pod in pods)
        assert set(shapes) == {shape.name for shape in SHAPES}
        assert {pod["spec"]["schedulerName"] for pod in pods} == {"s"}


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (make_node("n"), "/api/v1/nodes/n"),
        (make_pod("p", namespace="ns"), "/api/v1/namespaces/ns/pods/p"),
    ],
)
def test_objects_know_where_they_live(item, path):
    assert object_path(item) == path
    assert path.startswith(collection_path(item))


def test_binding_insists_on_the_pods_uid():
    pod = make_pod("p", namespace="ns")
    pod["metadata"]["uid"] = "u"
    binding = make_binding(pod, "n")
    assert binding["metadata"] == {"name": "p", "namespace": "ns", "uid": "u"}
    assert binding["target"]["name"] == "n"


def test_creation_is_parallel_and_answers_are_in_order():
    together = threading.Barrier(4, timeout=10)

    class Client:
        def create(self, _path, item):
            together.wait()  # passes only with four at once
            return item["metadata"]["name"]

    pods = make_pods(8)
    assert create_all(Client(), pods, threads=4) == [pod["metadata"]["name"] for pod in pods]
