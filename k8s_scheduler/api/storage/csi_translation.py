"""Disks of the old in-tree volume plugins, as the CSI drivers that took over see them.

Each in-tree plugin has a driver, a rule for the driver's handle of a disk, and for some a topology
key in place of the zone label. Of the seven, five are handed over on every node with a CSINode;
for the other two (Azure files, vSphere) scheduling never looks at the driver.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import msgspec

from k8s_scheduler.api.meta import Labels
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.selectors.types import NodeSelector, NodeSelectorTerm, SelectorRequirement
from k8s_scheduler.api.storage.objects import (
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

ZONE_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_VOLUME: Final = re.compile(r"vol-[^/]*")

# A volume of a pod, or what a persistent volume is; both name their sources alike.
DiskSource: TypeAlias = Volume | PersistentVolumeSpec


class TranslationError(ValueError):
    """A disk that its CSI driver could not be told about."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """One of the old plugins: the field it is known by, and what took its place.

    `topology_key` is the driver's label for zones; None where zones are not translated.
    """

    name: str
    driver: str
    field: str
    migrated: bool
    topology_key: str | None
    # The source is of the type that belongs to the field.
    handle: Callable[[Any, Labels | None], str]

    def handle_in(self, source: DiskSource, labels: Labels | None = None) -> str:
        """Return the driver's handle of a disk; `labels` are those of a persistent volume."""
        return self.handle(getattr(source, self.field), labels)


def in_tree_plugin(source: DiskSource) -> InTreePlugin | None:
    """Return the in-tree plugin that used to serve a disk; None if it never was one's business."""
    return next((p for p in IN_TREE_PLUGINS if getattr(source, p.field) is not None), None)


def translated_affinity(
    volume: PersistentVolume, plugin: InTreePlugin
) -> VolumeNodeAffinity | None:
    """Return from where a volume can be reached, in the driver's words for zones.

    Raises TranslationError if the disk itself can't be translated.
    """
    plugin.handle_in(volume.spec, volume.metadata.labels)
    affinity = volume.spec.node_affinity
    if plugin.topology_key is None:
        return affinity
    required = None if affinity is None else affinity.required
    terms = list((required.node_selector_terms if required is not None else None) or ())
    zone_key, is_beta = _zone_key(terms, volume.metadata.labels or {})
    if _has_values(terms, zone_key):
        terms = _renamed(terms, zone_key, plugin.topology_key)
    elif zones := _zones(volume.metadata.labels, zone_key):
        reachable = SelectorRequirement(key=plugin.topology_key, operator="In", values=zones)
        terms = [_with_expression(term, reachable) for term in terms or [NodeSelectorTerm()]]
    if is_beta and _has_values(terms, BETA_REGION):
        terms = _renamed(terms, BETA_REGION, REGION)
    if not terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


# Topology


def _zone_key(terms: list[NodeSelectorTerm], labels: Mapping[str, str]) -> tuple[str, bool]:
    """Return the label that zones are under in this volume, and whether it is the old one."""
    keys = {e.key for term in terms for e in term.match_expressions or ()}
    for known in (keys, labels):
        if ZONE in known:
            return ZONE, False
        if BETA_ZONE in known:
            return BETA_ZONE, True
    return ZONE, False


def _has_values(terms: list[NodeSelectorTerm], key: str) -> bool:
    return any(e.key == key and e.values for term in terms for e in term.match_expressions or ())


def _renamed(terms: list[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    return [
        msgspec.structs.replace(
            term,
            match_expressions=[
                msgspec.structs.replace(e, key=new) if e.key == old else e
                for e in term.match_expressions or ()
            ],
        )
        for term in terms
    ]


def _with_expression(term: NodeSelectorTerm, added: SelectorRequirement) -> NodeSelectorTerm:
    return msgspec.structs.replace(term, match_expressions=[*(term.match_expressions or ()), added])


def _zones(labels: Labels | None, key: str) -> list[str]:
    parts = (labels or {}).get(key, "").split(ZONE_DELIMITER)
    return sorted({part.strip() for part in parts} - {""})


# Handles


def _ebs_handle(source: Any, _labels: Labels | None) -> str:
    """Return the EBS id in `aws://zone/vol-...`; anything else is taken as it is."""
    written: str = source.volume_id
    if not written.startswith("aws://"):
        return written
    beyond_host = re.split(r"[?#]", written.removeprefix("aws://"))[0].partition("/")[2]
    found = unquote(beyond_host).strip("/")
    if not _EBS_VOLUME.fullmatch(found):
        raise TranslationError(
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({written})"
        )
    return found


def _gce_handle(source: Any, labels: Labels | None) -> str:
    """Return the disk's path; where it is comes from the volume's labels, if anywhere."""
    known = labels or {}
    zones = (known.get(BETA_ZONE) or known.get(ZONE) or "").split(ZONE_DELIMITER)
    place = f"zones/{zones[0] or _UNSPECIFIED}"
    if len(zones) > 1:
        place = f"regions/{_gce_region(zones)}"
    return f"projects/{_UNSPECIFIED}/{place}/disks/{source.pd_name}"


def _gce_region(zones: list[str]) -> str:
    regions = []
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:  # locale, region, zone
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.append("-".join(parts[:2]))
    if len(set(regions)) != 1:
        raise TranslationError(
            "failed to get region from zones: "
            f"multiple or no regions gotten from zones, got: {sorted(set(regions))}"
        )
    return regions[0]


def _azure_disk_handle(source: Any, _labels: Labels | None) -> str:
    if source.kind.lower() != "managed":
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    found: str = source.disk_uri
    return found


def _volume_id(source: Any, _labels: Labels | None) -> str:
    found: str = source.volume_id
    return found


def _never_asked(_source: Any, _labels: Labels | None) -> str:
    raise TranslationError("nodes do not hand this plugin over to its CSI driver")


IN_TREE_PLUGINS: Final = (
    InTreePlugin(
        name="kubernetes.io/gce-pd",
        driver="pd.csi.storage.gke.io",
        field="gce_persistent_disk",
        migrated=True,
        topology_key="topology.gke.io/zone",
        handle=_gce_handle,
    ),
    InTreePlugin(
        name="kubernetes.io/aws-ebs",
        driver="ebs.csi.aws.com",
        field="aws_elastic_block_store",
        migrated=True,
        topology_key="topology.ebs.csi.aws.com/zone",
        handle=_ebs_handle,
    ),
    InTreePlugin(
        name="kubernetes.io/cinder",
        driver="cinder.csi.openstack.org",
        field="cinder",
        migrated=True,
        topology_key="topology.cinder.csi.openstack.org/zone",
        handle=_volume_id,
    ),
    InTreePlugin(
        name="kubernetes.io/azure-disk",
        driver="disk.csi.azure.com",
        field="azure_disk",
        migrated=True,
        topology_key=None,
        handle=_azure_disk_handle,
    ),
    InTreePlugin(
        name="kubernetes.io/portworx-volume",
        driver="pxd.portworx.com",
        field="portworx_volume",
        migrated=True,
        topology_key=None,
        handle=_volume_id,
    ),
    InTreePlugin(
        name="kubernetes.io/azure-file",
        driver="file.csi.azure.com",
        field="azure_file",
        migrated=False,
        topology_key=None,
        handle=_never_asked,
    ),
    InTreePlugin(
        name="kubernetes.io/vsphere-volume",
        driver="csi.vsphere.vmware.com",
        field="vsphere_volume",
        migrated=False,
        topology_key=None,
        handle=_never_asked,
    ),
)
IN_TREE_BY_NAME: Final[Mapping[str, InTreePlugin]] = {p.name: p for p in IN_TREE_PLUGINS}
