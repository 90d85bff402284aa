"""VolumeBinding by example: nodes from which the pod's volumes can be had."""

import pytest

from tests.unit.core.plugins.plugin_bench import made
from tests.unit.core.plugins.storage_bench import (
    HOST,
    LOCAL,
    StorageBench,
    capacity,
    claim,
    csi_driver,
    pod,
    storage_class,
    volume,
)

OUT_OF_REACH = ("node(s) didn't match PersistentVolume's node affinity", False)
NONE_LEFT = ("node(s) didn't find available persistent volumes to bind", False)
TOO_SMALL = ("node(s) did not have enough free storage", False)


@pytest.fixture
def bench():
    return StorageBench(made("VolumeBinding"), a={}, b={})


class TestFilter:
    """Bound volumes have to be within reach; others have to be found or made."""

    def test_a_pod_without_claims_may_go_anywhere(self, bench):
        assert bench.skips(pod({"emptyDir": {}}))

    def test_a_claim_that_is_not_there_keeps_the_pod_off_every_node(self, bench):
        assert bench.refusal(pod("c")) == 'persistentvolumeclaim "c" not found'

    def test_a_claim_that_should_be_bound_by_now_is_waited_for(self, bench):
        bench.put(storage_class("now", mode="Immediate"), claim("c", of="now"))
        assert bench.refusal(pod("c")) == "pod has unbound immediate PersistentVolumeClaims"

    def test_a_bound_volume_is_used_where_it_is(self, bench):
        bench.put(claim("c", to="pv"), volume("pv", pin=["a"]))
        assert bench.rejections(pod("c")) == [None, OUT_OF_REACH]

    def test_a_claim_that_waits_for_its_pod_takes_a_volume_of_the_node(self, bench):
        bench.put(LOCAL, claim("c", of="local", size="2Gi"))
        bench.put(volume("small", of="local", size="1Gi", pin=["a"]))
        bench.put(volume("large", of="local", size="3Gi", pin=["b"]))
        assert bench.rejections(pod("c")) == [NONE_LEFT, None]

    def test_a_class_with_a_provisioner_makes_volumes_where_its_topology_allows(self, bench):
        allowed = [{"matchLabelExpressions": [{"key": HOST, "values": ["b"]}]}]
        bench.put(storage_class("fast", allowedTopologies=allowed), claim("c", of="fast"))
        assert bench.rejections(pod("c")) == [NONE_LEFT, None]

    def test_a_driver_that_tells_its_capacity_makes_them_where_there_is_enough(self, bench):
        bench.put(storage_class("fast"), csi_driver("csi.a", storageCapacity=True))
        bench.put(claim("c", of="fast", size="5Gi"))
        bench.put(capacity("on-b", "fast", "10Gi", {"matchLabels": {HOST: "b"}}))
        assert bench.rejections(pod("c")) == [TOO_SMALL, None]


class TestScore:
    """How much of the volumes that would be taken is asked for, through the profile's shape."""

    def test_by_default_the_node_with_more_to_spare_is_better(self, bench):
        bench.put(LOCAL, claim("c", of="local", size="1Gi"))
        bench.put(volume("p1", of="local", size="2Gi", pin=["a"]))
        bench.put(volume("p2", of="local", size="4Gi", pin=["b"]))
        assert bench.scores(pod("c")) == [50, 75]

    def test_bound_claims_score_nothing(self, bench):
        bench.put(claim("c", to="pv"), volume("pv"))
        assert bench.scores(pod("c")) == [0, 0]
