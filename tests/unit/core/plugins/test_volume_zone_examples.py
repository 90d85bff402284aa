"""VolumeZone by example: a volume with zone labels is used only from nodes of its zone."""

import pytest

from tests.unit.core.plugins.plugin_bench import made
from tests.unit.core.plugins.storage_bench import ZONE, StorageBench, claim, pod, volume

ELSEWHERE = ("node(s) had no available volume zone", False)


@pytest.fixture
def bench():
    """Nodes in zones z1 and z2, and one without a zone; a claim `c` with a volume in z1."""
    found = StorageBench(made("VolumeZone"), a={ZONE: "z1"}, b={ZONE: "z2"}, bare={})
    return found.put(claim("c", to="pv"), volume("pv", labels={ZONE: "z1"}))


def test_a_pod_without_claims_may_go_anywhere(bench):
    assert bench.skips(pod({"emptyDir": {}}))


def test_only_nodes_of_another_zone_are_rejected(bench):
    assert bench.rejections(pod("c")) == [None, ELSEWHERE, None]


def test_a_volume_of_several_zones_names_them_all(bench):
    bench.put(volume("pv", labels={ZONE: "z1__z2"}))
    assert bench.rejections(pod("c")) == [None, None, None]


def test_a_claim_without_a_volume_and_a_class_keeps_the_pod_off_every_node(bench):
    bench.put(claim("new"))
    text = "PersistentVolumeClaim had no pv name and storageClass name"
    assert bench.refusal(pod("new")) == text
