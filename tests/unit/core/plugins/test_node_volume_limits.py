"""NodeVolumeLimits, rule by rule."""

import pytest

from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.plugins.node_volume_limits import NodeVolumeLimits
from tests.unit.core.plugins.storage_bench import (
    StorageBench,
    attachment,
    claim,
    csi,
    csi_driver,
    csi_node,
    pod,
    storage_class,
    volume,
)

TOO_MANY = ("node(s) exceed max volume count", True)
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
AWS = "kubernetes.io/aws-ebs"


@pytest.fixture
def bench():
    """Two nodes that can attach one volume of csi.a; claims c1..c3 of one volume each."""
    found = StorageBench(NodeVolumeLimits(), a={}, b={})
    found.put(csi_node("a", csi_a=1), csi_node("b", csi_a=1))
    for number in (1, 2, 3):
        name = f"h{number}"
        found.put(claim(f"c{number}", to=name), volume(name, **csi("csi.a", name)))
    return found


class TestLimits:
    """What is used plus what is new must not be more than the driver can attach."""

    def test_up_to_the_limit(self, bench):
        assert bench.rejections(pod("c1")) == [None, None]
        assert bench.rejections(pod("c1", "c2")) == [TOO_MANY, TOO_MANY]

    def test_a_full_node_takes_what_it_has_even_beyond_its_limit(self, bench):
        bench.place(pod("c1", "c2", name="other", node="a"))
        assert bench.rejections(pod("c1")) == [None, None]

    def test_two_claims_of_one_volume_count_once(self, bench):
        bench.put(claim("again", to="h1"))
        assert bench.rejections(pod("c1", "again")) == [None, None]

    def test_a_volume_of_two_placed_pods_counts_once(self, bench):
        bench.put(csi_node("a", csi_a=2))
        bench.place(pod("c1", name="x", node="a"), pod("c1", name="y", node="a"))
        assert bench.rejections(pod("c2")) == [None, None]

    def test_a_pod_that_leaves_makes_room(self, bench):
        bench.place(pod("c2", name="other", node="a"))
        row = bench.cache.nodes.row_of("a")
        delta = bench.cache.delta(row)
        delta.remove(bench.cache.pods_on(row)[0])
        prepared = bench.prepare(pod("c1"))
        assert bench.judge(prepared, "a") == [TOO_MANY]
        assert bench.judge(prepared, "a", delta=delta) == [None]

    @pytest.mark.parametrize(
        "node",
        [
            pytest.param(csi_node("a"), id="no driver"),
            pytest.param(csi_node("a", csi_a=None), id="a driver without a limit"),
            pytest.param(csi_node("a", csi_b=0), id="another driver's limit"),
        ],
    )
    def test_no_limit(self, bench, node):
        bench.put(node)
        assert bench.rejections(pod("c1", "c2"), "a") == [None]

    def test_a_limit_of_none_at_all(self, bench):
        bench.put(csi_node("a", csi_a=0))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]

    def test_a_node_without_csi_node(self):
        bench = StorageBench(NodeVolumeLimits(), a={})
        bench.put(claim("c", to="h"), volume("h", **csi("csi.a", "h")))
        assert bench.rejections(pod("c")) == [None]

    def test_limits_that_change_are_seen(self, bench):
        assert bench.rejections(pod("c1", "c2"), "a") == [TOO_MANY]
        bench.put(csi_node("a", csi_a=2))
        assert bench.rejections(pod("c1", "c2")) == [None, TOO_MANY]


class TestAttachments:
    """What VolumeAttachments name counts, unless a pod of the node uses it too."""

    def test_an_attached_volume_counts(self, bench):
        bench.put(attachment("va", "a", "csi.a", "h2"))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]

    def test_also_if_it_is_the_one_that_is_wanted(self, bench):
        bench.put(attachment("va", "a", "csi.a", "h1"))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]

    def test_not_again_if_a_pod_uses_it(self, bench):
        bench.put(csi_node("a", csi_a=2), attachment("va", "a", "csi.a", "h2"))
        bench.place(pod("c2", name="other", node="a"))
        assert bench.rejections(pod("c1")) == [None, None]

    @pytest.mark.parametrize(
        "found",
        [
            pytest.param(attachment("va", "a", "", "h2"), id="no attacher"),
            pytest.param(attachment("va", "a", "csi.a", ""), id="no volume"),
            pytest.param(attachment("va", "a", "csi.a", "gone"), id="an unknown volume"),
            pytest.param(attachment("va", "a", "csi.a", "nfs"), id="not a CSI volume"),
            pytest.param(attachment("va", "a", "csi.b", "h2"), id="another driver"),
            pytest.param(attachment("va", "c", "csi.a", "h2"), id="another node"),
        ],
    )
    def test_what_does_not_count(self, bench, found):
        bench.put(volume("nfs"), found)
        assert bench.rejections(pod("c1")) == [None, None]

    def test_attachments_that_change_are_seen(self, bench):
        assert bench.rejections(pod("c1")) == [None, None]
        bench.put(attachment("va", "a", "csi.a", "h2"))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]

    def test_nodes_in_other_rows_are_seen(self, bench):
        bench.put(attachment("va", "a", "csi.a", "h2"))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]
        turned = StorageBench(bench.plugin, b={}, a={})
        turned.cache.objects = bench.cache.objects
        assert turned.rejections(pod("c1")) == [None, TOO_MANY]


class TestClaims:
    """A claim without a volume counts as one that its class's driver will make."""

    def test_a_claim_to_be_provisioned(self, bench):
        bench.put(storage_class("fast"), claim("new", of="fast"))
        assert bench.rejections(pod("c1", "new")) == [TOO_MANY, TOO_MANY]

    def test_the_same_claim_counts_once_for_all_pods(self, bench):
        bench.put(storage_class("fast"), claim("new", of="fast"))
        bench.place(pod("new", name="other", node="a"))
        assert bench.rejections(pod("new")) == [None, None]

    def test_a_claim_whose_volume_is_gone_counts_by_its_class(self, bench):
        bench.put(storage_class("fast"), claim("new", of="fast", to="gone"))
        assert bench.rejections(pod("c1", "new")) == [TOO_MANY, TOO_MANY]

    @pytest.mark.parametrize(
        "of", [pytest.param("", id="no class"), pytest.param("gone", id="an unknown class")]
    )
    def test_a_claim_of_nobody_counts_nothing(self, bench, of):
        bench.put(claim("new", of=of))
        assert bench.rejections(pod("c1", "new")) == [None, None]

    def test_a_missing_claim_of_the_pod(self, bench):
        text = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
        assert bench.rejections(pod("gone")) == [(text, False), (text, False)]

    def test_a_missing_claim_of_a_placed_pod_is_passed_over(self, bench):
        bench.place(pod("gone", "c2", name="other", node="a"))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]

    def test_a_claim_without_a_name(self, bench):
        with pytest.raises(StatusError, match="PersistentVolumeClaim had no name"):
            bench.rejections(pod(""))

    def test_an_ephemeral_volume_of_the_pod(self, bench):
        owner = {"uid": "uid-p", "controller": True}
        bench.put(claim("p-v1", to="h2", ownerReferences=[owner]))
        assert bench.rejections(pod("c1", {"ephemeral": {}})) == [TOO_MANY, TOO_MANY]

    def test_an_ephemeral_volume_of_somebody_else(self, bench):
        bench.put(claim("p-v0", to="h2"))
        text = r"PVC default/p-v0 was not created for pod default/p \(pod is not owner\)"
        with pytest.raises(StatusError, match=text):
            bench.rejections(pod({"ephemeral": {}}))

    def test_an_ephemeral_volume_of_a_placed_pod(self, bench):
        owner = {"uid": "uid-other", "controller": True}
        bench.put(claim("other-v0", to="h2", ownerReferences=[owner]))
        bench.place(pod({"ephemeral": {}}, name="other", node="a"))
        assert bench.rejections(pod("c1")) == [TOO_MANY, None]


class TestInTreeDisks:
    """Disks of old plugins count for the driver that took over, on nodes with a CSINode."""

    def test_a_disk_in_the_pod(self, bench):
        bench.put(csi_node("a", ebs_csi_aws_com=0))
        assert bench.rejections(pod(EBS)) == [TOO_MANY, None]

    def test_one_disk_under_two_names(self, bench):
        bench.put(csi_node("a", ebs_csi_aws_com=1))
        bench.place(pod(EBS, name="other", node="a"))
        same = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
        assert bench.rejections(pod(same), "a") == [None]
        other = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-2"}}
        assert bench.rejections(pod(other), "a") == [TOO_MANY]

    def test_a_volume(self, bench):
        bench.put(csi_node("a", ebs_csi_aws_com=0), claim("c", to="old"), volume("old", **EBS))
        assert bench.rejections(pod("c")) == [TOO_MANY, None]

    def test_a_class(self, bench):
        bench.put(csi_node("a", ebs_csi_aws_com=0), storage_class("old", AWS), claim("c", of="old"))
        assert bench.rejections(pod("c")) == [TOO_MANY, None]

    def test_a_volume_that_can_not_be_translated_counts_nothing(self, bench):
        broken = {"awsElasticBlockStore": {"volumeID": "aws://zone/what"}}
        bench.put(csi_node("a", ebs_csi_aws_com=0), claim("c", to="old"), volume("old", **broken))
        assert bench.rejections(pod("c")) == [None, None]

    def test_a_disk_in_the_pod_that_can_not_be_translated_fails_the_cycle(self, bench):
        broken = {"awsElasticBlockStore": {"volumeID": "aws://zone/what"}}
        with pytest.raises(StatusError, match=r"converting volume\(v0\) from inline to csi"):
            bench.rejections(pod(broken))

    def test_but_not_on_nodes_without_csi_node(self):
        bench = StorageBench(NodeVolumeLimits(), a={})
        broken = {"awsElasticBlockStore": {"volumeID": "aws://zone/what"}}
        assert bench.rejections(pod(broken)) == [None]

    def test_plugins_that_are_never_handed_over_count_nothing(self, bench):
        bench.put(csi_node("a", csi_vsphere_vmware_com=0))
        assert bench.rejections(pod({"vsphereVolume": {"volumePath": "p"}})) == [None, None]

    def test_pods_without_any_such_volume_are_skipped(self, bench):
        assert bench.prepare(pod({"emptyDir": {}}, {"iscsi": {}}, {"csi": {}})) is SKIP


class TestMissingDrivers:
    """A driver may insist on being installed."""

    REASON = ("csi.a CSI driver is not installed on the node", True)

    def test_a_driver_that_insists(self, bench):
        bench.put(csi_driver("csi.a", preventPodSchedulingIfMissing=True), csi_node("a", csi_b=1))
        assert bench.rejections(pod("c1")) == [self.REASON, None]

    def test_also_where_there_is_no_csi_node(self):
        bench = StorageBench(NodeVolumeLimits(), a={})
        bench.put(csi_driver("csi.a", preventPodSchedulingIfMissing=True))
        bench.put(claim("c", to="h"), volume("h", **csi("csi.a", "h")))
        assert bench.rejections(pod("c")) == [self.REASON]

    @pytest.mark.parametrize("wish", [{}, {"preventPodSchedulingIfMissing": False}])
    def test_a_driver_that_does_not(self, bench, wish):
        bench.put(csi_driver("csi.a", **wish), csi_node("a", csi_b=1))
        assert bench.rejections(pod("c1")) == [None, None]

    def test_a_driver_that_the_pod_does_not_need(self, bench):
        bench.put(csi_driver("csi.b", preventPodSchedulingIfMissing=True))
        assert bench.rejections(pod("c1")) == [None, None]
