"""VolumeBinding's scores: utilisation by class, through the shape."""

import pytest

from k8s_scheduler.core.framework.plugin import Same
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

FILL = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
OTHER = storage_class("other", "kubernetes.io/no-provisioner")


def nodes(arguments=FILL):
    return StorageBench(made("VolumeBinding", **arguments), a={}, b={})


def on(name, amount, node, **more):
    return capacity(name, "fast", amount, {"matchLabels": {HOST: node}}, **more)


class TestVolumes:
    """Volumes that were found weigh by class: what is asked of what they have."""

    def test_how_well_the_volume_is_used(self):
        bench = nodes().put(LOCAL, claim("c", of="local", size="1Gi"))
        bench.put(volume("p1", of="local", size="2Gi", pin=["a"]))
        bench.put(volume("p2", of="local", size="3Gi", pin=["b"]))
        assert bench.scores(pod("c")) == [50, 33]

    def test_empty_volumes_are_preferred_unless_told_otherwise(self):
        bench = nodes({}).put(LOCAL, claim("c", of="local"))
        bench.put(volume("p1", of="local", size="2Gi", pin=["a"]))
        bench.put(volume("p2", of="local", size="3Gi", pin=["b"]))
        # A fall is cut towards zero as well: 100 - 33.
        assert bench.scores(pod("c")) == [50, 67]

    def test_volumes_of_one_class_add_up(self):
        bench = nodes().put(LOCAL, claim("c", of="local"), claim("d", of="local", size="2Gi"))
        bench.put(volume("p1", of="local", size="1Gi"), volume("p2", of="local", size="3Gi"))
        assert bench.scores(pod("c", "d")) == [75, 75]

    def test_the_mean_over_classes_is_rounded(self):
        bench = nodes().put(LOCAL, OTHER, claim("c", of="local"), claim("d", of="other"))
        bench.put(volume("p1", of="local", size="2Gi"), volume("p2", of="other", size="3Gi"))
        # (50 + 33) / 2 = 41.5
        assert bench.scores(pod("c", "d")) == [42, 42]

    def test_an_empty_volume_for_no_size_is_full(self):
        bench = nodes().put(LOCAL, claim("c", of="local", size=None))
        bench.put(volume("p1", of="local", size="0"))
        assert bench.scores(pod("c")) == [100, 100]

    def test_beside_volumes_capacities_do_not_count(self):
        bench = nodes().put(LOCAL, storage_class("fast"), csi_driver("csi.a", storageCapacity=True))
        bench.put(claim("c", of="local"), claim("d", of="fast"), on("one", "100Gi", "a"))
        bench.put(volume("p1", of="local", size="2Gi"))
        assert bench.scores(pod("c", "d"), "a") == [50]

    def test_a_class_whose_volumes_are_all_taken_scores_nothing(self):
        bench = nodes().put(storage_class("fast"), claim("c", of="fast"))
        bench.put(volume("p1", of="fast", phase="Bound"))
        assert bench.scores(pod("c")) == [0, 0]

    def test_bound_claims_score_nothing(self):
        bench = nodes().put(claim("c", to="pv"), volume("pv"))
        assert bench.pre_score(pod("c")) == Same(0)


class TestCapacities:
    """Where volumes have to be made, the capacity from which they are made counts."""

    @pytest.fixture
    def bench(self):
        bench = nodes().put(storage_class("fast"), csi_driver("csi.a", storageCapacity=True))
        return bench.put(claim("c", of="fast"), claim("d", of="fast"))

    def test_what_is_asked_of_the_capacity(self, bench):
        bench.put(on("one", "2Gi", "a"), on("two", "4Gi", "b"))
        assert bench.scores(pod("c")) == [50, 25]

    def test_two_claims_share_it(self, bench):
        bench.put(on("one", "2Gi", "a"), on("two", "4Gi", "b"))
        assert bench.scores(pod("c", "d")) == [100, 50]

    def test_more_than_there_is_counts_as_full(self, bench):
        bench.put(on("one", "1Gi", "a"), on("two", "0", "b", maximumVolumeSize="9Gi"))
        assert bench.scores(pod("c", "d")) == [100, 100]

    def test_nothing_is_known_of_drivers_that_do_not_report(self, bench):
        bench.put(csi_driver("csi.a", storageCapacity=False), on("one", "2Gi", "a"))
        assert bench.scores(pod("c")) == [0, 0]

    def test_the_shape_bends(self, bench):
        shape = [
            {"utilization": 0, "score": 10},
            {"utilization": 40, "score": 2},
            {"utilization": 80, "score": 6},
        ]
        bent = nodes({"shape": shape}).put(
            storage_class("fast"), csi_driver("csi.a", storageCapacity=True)
        )
        bent.put(claim("c", of="fast"), on("one", "3Gi", "a"), on("two", "1Gi", "b"))
        # 33 of 100: 100 - 80 * 33 / 40; beyond the last point it stays.
        assert bent.scores(pod("c")) == [34, 60]
