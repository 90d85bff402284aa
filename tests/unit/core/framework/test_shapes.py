"""Which pods are of one shape."""

import pytest

from k8s_scheduler.core.framework.shapes import shape_of
from tests.builders import PodBuilder, make_pod


def with_volume(pod: PodBuilder, name: str, **source: object) -> PodBuilder:
    pod.raw["spec"].setdefault("volumes", []).append({"name": name, **source})
    return pod


def of_owner(pod: PodBuilder, version: str, kind: str, name: str) -> PodBuilder:
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}
    pod.raw["metadata"]["ownerReferences"] = [owner]
    return pod


def limited(pod: PodBuilder, cpu: str) -> PodBuilder:
    for container in pod.raw["spec"]["containers"] + pod.raw["spec"].get("initContainers", []):
        container["resources"]["limits"] = {"cpu": cpu}
    pod.raw["spec"].setdefault("resources", {})["limits"] = {"cpu": cpu}
    return pod


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("q", lambda pod: pod),
        ("p", lambda pod: pod.uid("another")),
        ("p", lambda pod: pod.priority(5)),
        ("p", lambda pod: limited(pod, "9")),
        ("p", lambda pod: with_volume(pod, "kube-api-access-x7k2p", projected={})),
        ("p", lambda pod: with_volume(pod, "settings", configMap={"name": "settings"})),
        ("p", lambda pod: with_volume(pod, "secrets", csi={"driver": "secrets.example.com"})),
        ("p", lambda pod: of_owner(pod, "batch/v1", "Job", "run-28")),
    ],
    ids=[
        "name",
        "uid",
        "priority",
        "limits",
        "token",
        "config map",
        "inline CSI volume",
        "job",
    ],
)
def test_what_decisions_do_not_read_is_in_no_shape(name, more):
    plain = limited(make_pod("p").request(cpu="1").init(cpu="2"), "4")
    other = more(limited(make_pod(name).request(cpu="1").init(cpu="2"), "4"))
    assert plain.raw != other.raw
    assert shape_of(plain.obj()) == shape_of(other.obj())


@pytest.mark.parametrize(
    "more",
    [
        lambda pod: pod.request(cpu="1"),
        lambda pod: pod.init(cpu="3"),
        lambda pod: pod.pod_level(cpu="1"),
        lambda pod: pod.overhead(cpu="1"),
        lambda pod: pod.label(app="a"),
        lambda pod: pod.tolerates("k"),
        lambda pod: of_owner(pod, "apps/v1", "ReplicaSet", "rs"),
        lambda pod: with_volume(pod, "v", persistentVolumeClaim={"claimName": "c"}),
        lambda pod: with_volume(pod, "v", gcePersistentDisk={"pdName": "d"}),
        lambda pod: with_volume(pod, "v", image={"reference": "i"}),
        lambda pod: with_volume(pod, "v", ephemeral={}),
    ],
    ids=[
        "container",
        "init container",
        "pod level",
        "overhead",
        "label",
        "toleration",
        "replica set",
        "claim",
        "disk",
        "image",
        "claim of its own",
    ],
)
def test_what_they_read_is(more):
    assert shape_of(make_pod("p").obj()) != shape_of(more(make_pod("p")).obj())


@pytest.mark.parametrize(
    ("source", "is_read"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, False),
        ({"image": {"reference": "i"}}, False),
        ({"rbd": {"image": "i", "monitors": ["m"]}}, False),
        ({"ephemeral": {}}, True),
        ({"azureDisk": {"diskURI": "u"}}, True),
    ],
    ids=["claim", "image", "disk", "claim of its own", "disk of a driver"],
)
def test_the_name_of_a_volume_matters_where_a_text_or_a_claim_has_it(source, is_read):
    pods = [with_volume(make_pod("p"), name, **source).obj() for name in ("a", "b")]
    assert (shape_of(pods[0]) != shape_of(pods[1])) is is_read


def test_pods_that_differ_in_the_claims_they_name_alone_are_kin():
    def pod(claim, cpu="1"):
        named = {"persistentVolumeClaim": {"claimName": claim}}
        return shape_of(with_volume(make_pod("p").request(cpu=cpu), "v", **named).obj())

    assert pod("a").spec != pod("b").spec
    assert pod("a").partial == pod("b").partial
    # Then only what reads volumes is asked for each, which says nothing of a size.
    assert pod("a").partial != pod("a", cpu="2").partial


def test_pods_without_claims_that_differ_in_size_alone_are_kin():
    shapes = [shape_of(make_pod("p").request(cpu=cpu).obj()) for cpu in ("1", "2")]
    assert shapes[0].spec != shapes[1].spec
    assert shapes[0].partial == shapes[1].partial
