"""VolumeBinding, rule by rule: which nodes can give a pod its volumes, and which volumes."""

import pytest

from k8s_scheduler.core.framework.plugin import SKIP, Same
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.rows_view import RowsView
from tests.unit.core.plugins.plugin_bench import made
from tests.unit.core.plugins.storage_bench import (
    HOST,
    LOCAL,
    ZONE,
    StorageBench,
    affinity,
    capacity,
    claim,
    csi,
    csi_driver,
    csi_node,
    pod,
    storage_class,
    volume,
)

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SELECTED = {"volume.kubernetes.io/selected-node": "a"}
DELETED = "2026-01-01T00:00:00Z"


@pytest.fixture
def bench():
    return StorageBench(made("VolumeBinding"), a={ZONE: "z1"}, b={ZONE: "z2"})


def bound_on(bench, raw, node):
    """Return claim -> volume for what would be bound on a node."""
    found = bench.plugin.volumes_on(bench.prepare(raw), bench.view(node))
    return {c.metadata.name: v.metadata.name for c, v in found.bindings}


def provisioned_on(bench, raw, node):
    """Return claim -> capacity for what would be provisioned on a node."""
    found = bench.plugin.volumes_on(bench.prepare(raw), bench.view(node))
    return {c.metadata.name: cap and cap.metadata.name for c, cap in found.provisions}


class TestClaims:
    """Some claims keep a pod from every node."""

    @pytest.mark.parametrize(
        ("found", "text"),
        [
            pytest.param([], 'persistentvolumeclaim "c" not found', id="missing"),
            pytest.param(
                [claim("c", to="pv", phase="Lost")],
                'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"',
                id="lost",
            ),
            pytest.param(
                [claim("c", deletionTimestamp=DELETED)],
                'persistentvolumeclaim "c" is being deleted',
                id="being deleted",
            ),
            pytest.param(
                [storage_class("now", mode="Immediate"), claim("c", of="now")],
                "pod has unbound immediate PersistentVolumeClaims",
                id="of a class that does not wait",
            ),
            pytest.param(
                [claim("c", of="gone")],
                "pod has unbound immediate PersistentVolumeClaims",
                id="of an unknown class",
            ),
            pytest.param(
                [LOCAL, claim("c", of="local", to="pv", annotations={})],
                "pod has unbound immediate PersistentVolumeClaims",
                id="half bound",
            ),
        ],
    )
    def test_what_ends_it(self, bench, found, text):
        assert bench.put(*found).refusal(pod("c")) == text

    def test_an_ephemeral_claim_that_is_not_there_yet(self, bench):
        text = (
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            '"p-scratch"'
        )
        assert bench.refusal(pod({"name": "scratch", "ephemeral": {}})) == text

    def test_an_ephemeral_claim_of_somebody_else(self, bench):
        bench.put(claim("p-v0"))
        text = "PVC default/p-v0 was not created for pod default/p (pod is not owner)"
        assert bench.refusal(pod({"ephemeral": {}})) == text

    def test_an_ephemeral_claim_of_the_pod(self, bench):
        owner = {"uid": "uid-p", "controller": True}
        bench.put(volume("pv", pin=["a"]), claim("p-v0", to="pv", ownerReferences=[owner]))
        assert bench.rejections(pod({"ephemeral": {}})) == [None, (OUT_OF_REACH, False)]

    def test_a_class_that_does_not_say_when_it_binds_fails_the_cycle(self, bench):
        bench.put(storage_class("odd", mode=None), claim("c", of="odd"))
        with pytest.raises(StatusError, match='VolumeBindingMode not set for StorageClass "odd"'):
            bench.prepare(pod("c"))

    def test_pods_without_claims_are_skipped_but_scored(self, bench):
        disk = pod({"emptyDir": {}})
        assert bench.prepare(disk) is SKIP
        assert bench.pre_score(disk) == Same(0)


class TestBoundVolumes:
    """A bound volume must be within reach."""

    @pytest.mark.parametrize(
        ("terms", "reached"),
        [
            pytest.param([{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}], "ab"),
            pytest.param([], "", id="no term at all"),
            pytest.param([{}], "", id="an empty term"),
            pytest.param(
                [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z2"]}]},
                    {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["x"]}]},
                ],
                "b",
                id="one of two terms",
            ),
            pytest.param(
                [
                    {
                        "matchExpressions": [
                            {"key": ZONE, "operator": "In", "values": ["z2"]},
                            {"key": HOST, "operator": "In", "values": ["a"]},
                        ]
                    }
                ],
                "",
                id="both of two expressions",
            ),
            pytest.param(
                [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["nobody"]}
                        ]
                    }
                ],
                "ab",
                id="fields are not looked at",
            ),
            pytest.param(
                [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}],
                "",
                id="but must make sense",
            ),
        ],
    )
    def test_reach(self, bench, terms, reached):
        within = {"required": {"nodeSelectorTerms": terms}}
        bench.put(claim("c", to="pv"), volume("pv", nodeAffinity=within))
        assert bench.rejections(pod("c")) == [
            None if name in reached else (OUT_OF_REACH, False) for name in "ab"
        ]

    def test_a_volume_without_affinity_is_reached_from_everywhere(self, bench):
        bench.put(claim("c", to="pv"), volume("pv"))
        assert bench.rejections(pod("c")) == [None, None]

    def test_a_missing_volume(self, bench):
        bench.put(claim("c", to="gone"))
        assert bench.rejections(pod("c")) == [(MISSING, False), (MISSING, False)]

    def test_the_first_bad_volume_of_a_node_decides(self, bench):
        bench.put(claim("c", to="pv"), volume("pv", pin=["a"]), claim("d", to="gone"))
        assert bench.rejections(pod("c", "d")) == [(MISSING, False), (OUT_OF_REACH, False)]
        assert bench.rejections(pod("d", "c")) == [(MISSING, False), (MISSING, False)]

    def test_what_is_wrong_with_waiting_claims_is_told_too(self, bench):
        bench.put(claim("c", to="pv"), volume("pv", pin=["a"]), LOCAL, claim("d", of="local"))
        assert bench.rejections(pod("c", "d")) == [
            (NO_VOLUME, False),
            (OUT_OF_REACH, NO_VOLUME, False),
        ]


class TestHandedOver:
    """Where an in-tree plugin was handed over to CSI, the driver's labels count."""

    AWS = "kubernetes.io/aws-ebs"
    EBS_ZONE = "topology.ebs.csi.aws.com/zone"

    def bench(self, **disk):
        """Return two nodes with the driver's label only, of which `moved` has handed over."""
        found = StorageBench(
            made("VolumeBinding"), moved={self.EBS_ZONE: "z1"}, still={self.EBS_ZONE: "z1"}
        )
        found.put(csi_node("moved", self.AWS), csi_node("still", "kubernetes.io/gce-pd"))
        source = {"awsElasticBlockStore": {"volumeID": disk.pop("disk", "vol-1")}}
        return found.put(claim("c", to="pv"), volume("pv", **source, **disk))

    def test_zones_in_the_affinity(self):
        within = affinity({"key": ZONE, "operator": "In", "values": ["z1"]})
        bench = self.bench(nodeAffinity=within)
        assert bench.rejections(pod("c")) == [None, (OUT_OF_REACH, False)]

    def test_zones_in_labels(self):
        bench = self.bench(labels={ZONE: "z2__z3"})
        assert bench.rejections(pod("c")) == [(OUT_OF_REACH, False), None]

    def test_a_disk_that_can_not_be_translated_fails_the_cycle(self):
        bench = self.bench(disk="aws://z1/what")
        prepared = bench.prepare(pod("c"))
        with pytest.raises(StatusError, match="could not translate pv"):
            bench.judge(prepared)
        assert bench.judge(prepared, "still") == [None]

    def test_but_not_where_an_earlier_volume_is_out_of_reach_already(self):
        bench = self.bench(disk="aws://z1/what")
        bench.put(claim("first", to="far"), volume("far", pin=["nobody"]))
        assert bench.rejections(pod("first", "c")) == [(OUT_OF_REACH, False)] * 2


class TestMatching:
    """A waiting claim gets the smallest free volume that suits it and is within reach."""

    def test_the_smallest_then_the_first_by_name(self, bench):
        bench.put(LOCAL, claim("c", of="local", size="2Gi"))
        for name in "dbca":
            bench.put(volume(name, of="local", size={"d": "1Gi", "c": "2Gi"}.get(name, "3Gi")))
        assert bound_on(bench, pod("c"), "a") == {"c": "c"}
        bench.put(volume("c", of="local", size="3Gi"))
        assert bound_on(bench, pod("c"), "a") == {"c": "a"}

    def test_only_what_is_within_reach(self, bench):
        bench.put(LOCAL, claim("c", of="local"), volume("pv", of="local", pin=["b", "elsewhere"]))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False), None]

    @pytest.mark.parametrize(
        ("wish", "offer"),
        [
            pytest.param({}, {"size": "1023Mi"}, id="too small"),
            pytest.param({}, {"of": "other"}, id="another class"),
            pytest.param({}, {"phase": "Released"}, id="not available"),
            pytest.param({}, {"deletionTimestamp": DELETED}, id="being deleted"),
            pytest.param({}, {"volumeMode": "Block"}, id="another mode"),
            pytest.param({}, {"volumeAttributesClassName": "gold"}, id="attributes not asked for"),
            pytest.param({"volumeAttributesClassName": "gold"}, {}, id="lacking attributes"),
            pytest.param({"mode": "ReadWriteMany"}, {}, id="another access mode"),
            pytest.param({}, {"claimRef": {"namespace": "default", "name": "d"}}, id="kept"),
            pytest.param(
                {"selector": {"matchLabels": {"kind": "x"}}}, {"labels": {"kind": "y"}}, id="labels"
            ),
            pytest.param(
                {},
                {"annotations": {"volume.beta.kubernetes.io/storage-class": "other"}},
                id="another class by annotation",
            ),
        ],
    )
    def test_what_does_not_suit(self, bench, wish, offer):
        bench.put(LOCAL, claim("c", **{"of": "local"} | wish))
        bench.put(volume("pv", **{"of": "local"} | offer))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False)] * 2

    def test_a_selector(self, bench):
        wish = {"matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["x"]}]}
        bench.put(LOCAL, claim("c", of="local", selector=wish))
        bench.put(volume("p1", of="local", labels={"kind": "x"}), volume("p2", of="local"))
        assert bound_on(bench, pod("c"), "a") == {"c": "p2"}

    def test_a_selector_without_sense_fails_the_cycle(self, bench):
        wish = {"matchExpressions": [{"key": "kind", "operator": "Gt", "values": ["1"]}]}
        bench.put(LOCAL, claim("c", of="local", selector=wish))
        with pytest.raises(StatusError, match="internal label selector for claim: default/c"):
            bench.rejections(pod("c"))

    def test_a_claim_that_asks_for_nothing_takes_any_size(self, bench):
        bench.put(LOCAL, claim("c", of="local", size=None), volume("pv", of="local", size="0"))
        assert bound_on(bench, pod("c"), "a") == {"c": "pv"}

    def test_volumes_are_given_out_once_and_to_the_smallest_claim_first(self, bench):
        bench.put(LOCAL, claim("big", of="local", size="2Gi"), claim("small", of="local"))
        bench.put(*(volume(f"p{n}", of="local", size="2Gi", pin=["a"]) for n in (1, 2)))
        bench.put(volume("p3", of="local", size="2Gi", pin=["b"]))
        both = pod("big", "small")
        assert bench.rejections(both) == [None, (NO_VOLUME, False)]
        assert bound_on(bench, both, "a") == {"small": "p1", "big": "p2"}

    def test_a_claim_in_two_volumes_takes_two(self, bench):
        bench.put(LOCAL, claim("c", of="local"), volume("p1", of="local"))
        assert bench.rejections(pod("c", "c")) == [(NO_VOLUME, False)] * 2

    def test_the_old_annotation_names_the_class(self, bench):
        named = {"volume.beta.kubernetes.io/storage-class": "local"}
        bench.put(LOCAL, claim("c", of="other", annotations=named))
        bench.put(volume("p1", of="other"), volume("p2", of="other", annotations=named))
        assert bound_on(bench, pod("c"), "a") == {"c": "p2"}

    def test_new_volumes_are_seen(self, bench):
        bench.put(LOCAL, claim("c", of="local"), volume("p1", of="local", pin=["a"]))
        assert bench.rejections(pod("c")) == [None, (NO_VOLUME, False)]
        bench.put(volume("p2", of="local", pin=["b"]))
        assert bench.rejections(pod("c")) == [None, None]

    def test_new_labels_are_seen(self, bench):
        within = affinity({"key": "rack", "operator": "In", "values": ["r1"]})
        bench.put(LOCAL, claim("c", of="local"), volume("pv", of="local", nodeAffinity=within))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False)] * 2
        other = StorageBench(bench.plugin, a={}, b={"rack": "r1"})
        bench.cache.put_node(other.cache.nodes.node_at(other.cache.nodes.row_of("b")))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False), None]

    def test_the_term_of_another_decision_would_be_stale(self, bench, monkeypatch):
        monkeypatch.setattr(RowsView, "moment", ())
        with pytest.raises(AssertionError):
            self.test_new_labels_are_seen(bench)


class TestKeptVolumes:
    """A volume that is kept for a claim is the claim's, and no other will do."""

    def kept(self, name, *, uid="", **more):
        reference = {"namespace": "default", "name": "c", "uid": uid}
        return volume(name, of="local", claimRef=reference, **more)

    def test_goes_before_smaller_ones(self, bench):
        bench.put(LOCAL, claim("c", of="local"), self.kept("mine", size="9Gi", phase="Pending"))
        bench.put(volume("small", of="local"))
        assert bound_on(bench, pod("c"), "a") == {"c": "mine"}

    def test_out_of_reach_there_is_no_other(self, bench):
        bench.put(LOCAL, claim("c", of="local"), self.kept("mine", pin=["b"]))
        bench.put(volume("other", of="local"))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False), None]

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param({"size": "1Mi"}, id="too small"),
            pytest.param({"volumeMode": "Block"}, id="another mode"),
            pytest.param({"deletionTimestamp": DELETED}, id="being deleted"),
            pytest.param({"uid": "another claim's"}, id="another claim of that name"),
        ],
    )
    def test_one_that_can_not_serve_is_passed_over(self, bench, bad):
        bench.put(LOCAL, claim("c", of="local"), self.kept("mine", **bad))
        bench.put(volume("other", of="local"))
        assert bound_on(bench, pod("c"), "a") == {"c": "other"}

    def test_of_two_the_first_by_name_decides(self, bench):
        bench.put(LOCAL, claim("c", of="local"))
        bench.put(self.kept("m1", size="5Gi", pin=["b"]), self.kept("m2", uid="uid-c"))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False), None]
        assert bound_on(bench, pod("c"), "b") == {"c": "m1"}


class TestProvisioning:
    """What is not found is made, where the class can do that."""

    def test_where_the_class_allows(self, bench):
        terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z2", "z3"]}]}]
        bench.put(storage_class("fast", allowedTopologies=terms), claim("c", of="fast"))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False), None]
        assert provisioned_on(bench, pod("c"), "b") == {"c": None}

    @pytest.mark.parametrize("terms", [[{}], [{"matchLabelExpressions": []}]])
    def test_an_empty_topology_allows_nothing(self, bench, terms):
        bench.put(storage_class("fast", allowedTopologies=terms), claim("c", of="fast"))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False)] * 2

    def test_existing_volumes_go_first(self, bench):
        bench.put(storage_class("fast"), claim("c", of="fast"))
        bench.put(volume("pv", of="fast", pin=["a"], **csi("csi.a", "h")))
        assert bound_on(bench, pod("c"), "a") == {"c": "pv"}
        assert provisioned_on(bench, pod("c"), "a") == {}
        assert bound_on(bench, pod("c"), "b") == {}
        assert provisioned_on(bench, pod("c"), "b") == {"c": None}

    def test_a_claim_with_a_node_goes_there_and_is_not_matched(self, bench):
        bench.put(storage_class("fast"), claim("c", of="fast", annotations=SELECTED))
        bench.put(volume("pv", of="fast"))
        assert bench.rejections(pod("c")) == [None, (NO_VOLUME, False)]
        assert bound_on(bench, pod("c"), "a") == {}
        assert provisioned_on(bench, pod("c"), "a") == {"c": None}

    def test_a_claim_with_a_node_needs_a_provisioner_there(self, bench):
        bench.put(LOCAL, claim("c", of="local", annotations=SELECTED), volume("pv", of="local"))
        assert bench.rejections(pod("c")) == [(NO_VOLUME, False)] * 2


class TestCapacity:
    """Drivers that report capacities must have room."""

    @pytest.fixture
    def bench(self, bench):
        bench.put(storage_class("fast"), csi_driver("csi.a", storageCapacity=True))
        return bench.put(claim("c", of="fast"))

    def zone(self, name, amount, value="z1", **more):
        return capacity(name, "fast", amount, {"matchLabels": {ZONE: value}}, **more)

    def test_enough_for_the_claim(self, bench):
        bench.put(self.zone("one", "1Gi"), self.zone("two", "1023Mi", "z2"))
        assert bench.rejections(pod("c")) == [None, (NO_SPACE, False)]
        assert provisioned_on(bench, pod("c"), "a") == {"c": "one"}

    def test_the_largest_volume_goes_before_the_capacity(self, bench):
        bench.put(self.zone("one", "9Gi", maximumVolumeSize="1Mi"))
        bench.put(self.zone("two", "1Mi", "z2", maximumVolumeSize="9Gi"))
        assert bench.rejections(pod("c")) == [(NO_SPACE, False), None]

    @pytest.mark.parametrize(
        ("topology", "reached"),
        [
            pytest.param(None, "", id="absent"),
            pytest.param({}, "ab", id="empty"),
            pytest.param({"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}, "ab"),
            pytest.param({"matchExpressions": [{"key": ZONE, "operator": "In"}]}, "", id="bad"),
            pytest.param({"matchLabels": {ZONE: "z2", HOST: "b"}}, "b", id="two labels"),
        ],
    )
    def test_topology(self, bench, topology, reached):
        bench.put(capacity("one", "fast", "1Gi", topology))
        assert bench.rejections(pod("c")) == [
            None if name in reached else (NO_SPACE, False) for name in "ab"
        ]

    def test_a_capacity_of_another_class(self, bench):
        bench.put(capacity("one", "slow", "1Gi", {}))
        assert bench.rejections(pod("c")) == [(NO_SPACE, False)] * 2

    def test_a_capacity_that_is_not_known(self, bench):
        bench.put(capacity("one", "fast", None, {}))
        assert bench.rejections(pod("c")) == [(NO_SPACE, False)] * 2

    def test_a_claim_that_asks_for_nothing(self, bench):
        bench.put(claim("c", of="fast", size=None))
        assert bench.rejections(pod("c")) == [None, None]

    @pytest.mark.parametrize("spec", [{}, {"storageCapacity": False}])
    def test_a_driver_that_does_not_report(self, bench, spec):
        assert bench.put(csi_driver("csi.a", **spec)).rejections(pod("c")) == [None, None]

    def test_the_first_claim_in_trouble_decides(self, bench):
        bench.put(LOCAL, claim("d", of="local", size="2Gi"))
        assert bench.rejections(pod("d", "c")) == [(NO_SPACE, False)] * 2
        bench.put(claim("d", of="local", size="1Mi"))
        assert bench.rejections(pod("c", "d")) == [(NO_VOLUME, False)] * 2
