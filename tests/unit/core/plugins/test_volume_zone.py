"""VolumeZone, rule by rule."""

import pytest

from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.plugins.volume_zone import VolumeZone
from tests.unit.core.plugins.storage_bench import (
    LOCAL,
    ZONE,
    StorageBench,
    claim,
    pod,
    storage_class,
    volume,
)

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = ("node(s) had no available volume zone", False)


@pytest.fixture
def bench():
    return StorageBench(
        VolumeZone(),
        new={ZONE: "z1", REGION: "r1"},
        old={OLD_ZONE: "z1", OLD_REGION: "r1"},
        far={ZONE: "z2", REGION: "r2"},
        bare={},
    )


def with_volume(bench, **labels):
    return bench.put(claim("c", to="pv"), volume("pv", labels=labels))


class TestPlaces:
    """The node's label must be among the volume's, where the node has any such label."""

    def test_a_zone(self, bench):
        with_volume(bench, **{ZONE: "z1"})
        assert bench.rejections(pod("c")) == [None, ELSEWHERE, ELSEWHERE, None]

    def test_an_old_zone_is_compared_with_the_new_label_where_there_is_no_old_one(self, bench):
        with_volume(bench, **{OLD_ZONE: "z1"})
        assert bench.rejections(pod("c")) == [None, None, ELSEWHERE, None]

    def test_several_zones(self, bench):
        with_volume(bench, **{ZONE: "z1__ z2"})
        assert bench.rejections(pod("c")) == [None, ELSEWHERE, None, None]

    def test_zone_and_region_must_both_hold(self, bench):
        with_volume(bench, **{OLD_ZONE: "z1", OLD_REGION: "r2"})
        assert bench.rejections(pod("c")) == [ELSEWHERE, ELSEWHERE, ELSEWHERE, None]

    def test_a_zone_of_no_node(self, bench):
        with_volume(bench, **{ZONE: "z9"})
        assert bench.rejections(pod("c")) == [ELSEWHERE, ELSEWHERE, ELSEWHERE, None]

    @pytest.mark.parametrize(
        "labels",
        [
            pytest.param({}, id="no label"),
            pytest.param({ZONE: "z1__"}, id="a label with an empty part"),
            pytest.param({"zone": "z1"}, id="another label"),
        ],
    )
    def test_skipped_if_the_volume_says_nothing(self, bench, labels):
        with_volume(bench, **labels)
        assert bench.prepare(pod("c")) is SKIP


class TestClaims:
    """A claim must have a volume, or be one that waits for its pod."""

    def test_waiting_claims_say_nothing(self, bench):
        bench.put(LOCAL, claim("c", of="local"))
        assert bench.prepare(pod("c")) is SKIP

    def test_ephemeral_volumes_say_nothing(self, bench):
        assert bench.prepare(pod({"ephemeral": {}})) is SKIP

    @pytest.mark.parametrize(
        ("objects", "text"),
        [
            pytest.param([], 'persistentvolumeclaim "c" not found', id="no claim"),
            pytest.param([claim("c", to="pv")], 'persistentvolume "pv" not found', id="no volume"),
            pytest.param(
                [claim("c")],
                "PersistentVolumeClaim had no pv name and storageClass name",
                id="no class",
            ),
            pytest.param(
                [claim("c", of="gone")],
                'storageclass.storage.k8s.io "gone" not found',
                id="an unknown class",
            ),
            pytest.param(
                [claim("c", of="now"), storage_class("now", mode="Immediate")],
                "PersistentVolume had no name",
                id="a class that does not wait",
            ),
            pytest.param(
                [claim("c", of="odd"), storage_class("odd", mode=None)],
                'VolumeBindingMode not set for StorageClass "odd"',
                id="a class that does not say",
            ),
        ],
    )
    def test_what_ends_it(self, bench, objects, text):
        assert bench.put(*objects).refusal(pod("c")) == text

    def test_a_claim_without_a_name(self, bench):
        assert bench.refusal(pod("")) == "PersistentVolumeClaim had no name"
