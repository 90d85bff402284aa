"""In-tree disks in the words of the CSI drivers that took over."""

import msgspec
import pytest

from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.storage.csi_translation import (
    IN_TREE_BY_NAME,
    TranslationError,
    in_tree_plugin,
    translated_affinity,
)
from k8s_scheduler.api.storage.objects import PersistentVolume

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
EBS = {"awsElasticBlockStore": {"volumeID": "v"}}


def inline(**source):
    return msgspec.convert(source, Volume)


def persistent(source, *terms, **labels):
    spec = dict(source)
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    metadata = {"name": "pv", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": spec}, PersistentVolume)


def handle(volume):
    plugin = in_tree_plugin(volume.spec)
    return plugin.driver, plugin.handle_in(volume.spec, volume.metadata.labels)


class TestPlugins:
    """Every in-tree disk has a plugin, and every plugin a driver."""

    @pytest.mark.parametrize(
        ("source", "name", "driver", "migrated"),
        [
            ("awsElasticBlockStore", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", True),
            ("gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", True),
            ("cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org", True),
            ("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com", True),
            ("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com", True),
            ("azureFile", "kubernetes.io/azure-file", "file.csi.azure.com", False),
            ("vsphereVolume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", False),
        ],
    )
    def test_by_source_and_by_name(self, source, name, driver, migrated):
        plugin = in_tree_plugin(inline(**{source: {}}))
        assert plugin is IN_TREE_BY_NAME[name]
        assert (plugin.driver, plugin.migrated) == (driver, migrated)

    def test_other_volumes_have_none(self):
        assert in_tree_plugin(inline(rbd={})) is None
        assert in_tree_plugin(inline(csi={"driver": "ebs.csi.aws.com"})) is None


class TestHandles:
    """The driver's name of a disk."""

    @pytest.mark.parametrize(
        ("written", "found"),
        [
            ("vol-1", "vol-1"),
            ("anything", "anything"),
            ("aws://eu-west-1a/vol-1", "vol-1"),
            ("aws:///vol-1", "vol-1"),
            ("aws://eu-west-1a/vol-1/", "vol-1"),
            ("aws://eu-west-1a/vol%2D1", "vol-1"),
        ],
    )
    def test_amazon(self, written, found):
        volume = persistent({"awsElasticBlockStore": {"volumeID": written}})
        assert handle(volume) == ("ebs.csi.aws.com", found)

    @pytest.mark.parametrize("written", ["aws://vol-1", "aws://z/disk-1", "aws://z/a/vol-1"])
    def test_amazon_in_another_form(self, written):
        with pytest.raises(TranslationError, match="Invalid format for AWS volume"):
            handle(persistent({"awsElasticBlockStore": {"volumeID": written}}))

    @pytest.mark.parametrize(
        ("labels", "place"),
        [
            pytest.param({}, "zones/UNSPECIFIED", id="unknown"),
            pytest.param({ZONE: "us-east1-b"}, "zones/us-east1-b", id="one zone"),
            pytest.param({OLD_ZONE: "us-east1-c", ZONE: "x"}, "zones/us-east1-c", id="old first"),
            pytest.param({ZONE: "us-east1-b__us-east1-c"}, "regions/us-east1", id="a region"),
        ],
    )
    def test_google(self, labels, place):
        volume = persistent({"gcePersistentDisk": {"pdName": "d"}}, **labels)
        found = f"projects/UNSPECIFIED/{place}/disks/d"
        assert handle(volume) == ("pd.csi.storage.gke.io", found)

    @pytest.mark.parametrize("zones", ["us-east1-b__us-west1-b", "us-east1-b__nowhere"])
    def test_google_in_no_single_region(self, zones):
        with pytest.raises(TranslationError, match="failed to get region from zones"):
            handle(persistent({"gcePersistentDisk": {"pdName": "d"}}, **{ZONE: zones}))

    @pytest.mark.parametrize("kind", ["Managed", "managed"])
    def test_azure_managed(self, kind):
        volume = persistent({"azureDisk": {"diskURI": "u", "kind": kind}})
        assert handle(volume) == ("disk.csi.azure.com", "u")

    @pytest.mark.parametrize("disk", [{"diskURI": "u"}, {"diskURI": "u", "kind": "Dedicated"}])
    def test_azure_otherwise(self, disk):
        with pytest.raises(TranslationError, match="is not supported in csi migration"):
            handle(persistent({"azureDisk": disk}))

    def test_openstack_and_portworx(self):
        assert handle(persistent({"cinder": {"volumeID": "v"}}))[1] == "v"
        assert handle(persistent({"portworxVolume": {"volumeID": "v"}}))[1] == "v"


def expression(key, *values):
    return (
        {"key": key, "operator": "In", "values": list(values)}
        if values
        else {
            "key": key,
            "operator": "Exists",
        }
    )


def term(*expressions):
    return {"matchExpressions": list(expressions)}


def terms_of(volume):
    affinity = translated_affinity(volume, in_tree_plugin(volume.spec))
    return None if affinity is None else msgspec.to_builtins(affinity.required.node_selector_terms)


class TestTopology:
    """Zones of a volume become the driver's."""

    def test_zones_in_the_affinity_are_renamed(self):
        volume = persistent(
            EBS, term(expression(ZONE, "a"), expression("x", "y")), term(expression(ZONE, "b"))
        )
        assert terms_of(volume) == [
            term(expression(EBS_ZONE, "a"), expression("x", "y")),
            term(expression(EBS_ZONE, "b")),
        ]

    def test_old_zones_and_regions_are_renamed_together(self):
        volume = persistent(EBS, term(expression(OLD_ZONE, "a"), expression(OLD_REGION, "r")))
        assert terms_of(volume) == [term(expression(EBS_ZONE, "a"), expression(REGION, "r"))]

    def test_old_regions_stay_beside_new_zones(self):
        volume = persistent(EBS, term(expression(ZONE, "a"), expression(OLD_REGION, "r")))
        assert terms_of(volume) == [term(expression(EBS_ZONE, "a"), expression(OLD_REGION, "r"))]

    def test_zones_in_labels_are_added_to_every_term(self):
        volume = persistent(
            EBS, term(expression("x", "y")), term(expression("z", "y")), **{ZONE: "b__ a__"}
        )
        added = expression(EBS_ZONE, "a", "b")
        assert terms_of(volume) == [
            term(expression("x", "y"), added),
            term(expression("z", "y"), added),
        ]

    def test_zones_in_labels_make_an_affinity(self):
        volume = persistent(EBS, **{OLD_ZONE: "a"})
        assert terms_of(volume) == [term(expression(EBS_ZONE, "a"))]

    def test_a_zone_without_values_is_no_zone(self):
        volume = persistent(EBS, term(expression(ZONE)), **{ZONE: "a"})
        assert terms_of(volume) == [term(expression(ZONE), expression(EBS_ZONE, "a"))]

    def test_without_zones_nothing_changes(self):
        assert terms_of(persistent(EBS)) is None
        kept = term(expression("x", "y"))
        assert terms_of(persistent(EBS, kept)) == [kept]

    def test_drivers_without_zones_keep_the_affinity(self):
        kept = term(expression(ZONE, "a"))
        disk = {"azureDisk": {"diskURI": "u", "kind": "Managed"}}
        assert terms_of(persistent(disk, kept)) == [kept]
