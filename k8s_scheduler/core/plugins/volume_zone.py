"""VolumeZone: a pod goes where its bound volumes are, as far as their zone labels say.

A volume's zone or region label may hold several, joined by two underscores; the node must be in
one of them. A node without any such label passes: a cluster of one zone need not label its nodes.
A volume's old label is compared with the node's new one where the node lacks the old. Claims that
wait for their pod have no volume yet and are left to VolumeBinding. Preemption can't help.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.storage.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_not_found,
    class_not_found,
    class_of_claim,
    named_claims,
    unset_binding_mode,
    volume_not_found,
)
from k8s_scheduler.api.storage.csi_translation import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    ZONE_DELIMITER,
)
from k8s_scheduler.api.storage.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from k8s_scheduler.core.framework.dependencies import Dependency, Object, Row
from k8s_scheduler.core.framework.plugin import SKIP, Reject, Skip
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView

ELSEWHERE = Reason(code="VolumeZone/Elsewhere", text="node(s) had no available volume zone")
NAMELESS_CLAIM = Reason(code="VolumeZone/NamelessClaim", text="PersistentVolumeClaim had no name")
UNBOUND_CLAIM = Reason(code="VolumeZone/UnboundClaim", text="PersistentVolume had no name")
CLASSLESS_CLAIM = Reason(
    code="VolumeZone/ClasslessClaim",
    text="PersistentVolumeClaim had no pv name and storageClass name",
)

# Old and new names of the labels, in kube-scheduler's order.
_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEW_NAMES: Final[Mapping[str, str]] = {BETA_ZONE: ZONE, BETA_REGION: REGION}


def missing(text: str) -> Reason:
    """Return the reason for an object that is not there, or not what it should be."""
    return Reason(code="VolumeZone/Missing", text=text)


@dataclass(frozen=True, slots=True)
class ZoneLabel:
    """A label and the values of which a node must have one."""

    key: str
    values: tuple[str, ...]


class VolumeZone:
    """Rejects nodes in other zones or regions than the labels of the pod's bound volumes say."""

    name: ClassVar[str] = "VolumeZone"
    reasons: ClassVar[tuple[Reason, ...]] = (
        ELSEWHERE,
        NAMELESS_CLAIM,
        UNBOUND_CLAIM,
        CLASSLESS_CLAIM,
    )
    depends_on: ClassVar[tuple[Dependency, ...]] = (
        Row("label/"),
        Object(Kind.PERSISTENT_VOLUME_CLAIM),
        Object(Kind.PERSISTENT_VOLUME),
        Object(Kind.STORAGE_CLASS),
    )

    def prepare(self, pod: PodView, rows: RowsView) -> tuple[ZoneLabel, ...] | Skip | Reject:
        """Collect the places of the pod's bound volumes."""
        places: list[ZoneLabel] = []
        for name in named_claims(pod.volumes):
            found = _volume_of(name, pod.namespace, rows)
            if isinstance(found, Reason):
                return Reject((found,), resolvable=False)
            if found is not None:
                places += _places_of(found)
        return tuple(places) or SKIP

    def filter(self, term: tuple[ZoneLabel, ...], rows: RowsView) -> Codes:
        """Reject labelled nodes that are in none of a volume's places."""
        labels = {key: rows.label(key) for key in _LABELS}
        labelled = np.zeros(len(rows), dtype=np.bool_)
        for ids in labels.values():
            labelled |= ids >= 0
        there = np.ones(len(rows), dtype=np.bool_)
        for place in term:
            ids = labels[place.key]
            if place.key in _NEW_NAMES:
                ids = np.where(ids >= 0, ids, labels[_NEW_NAMES[place.key]])
            there &= (ids >= 0) & np.isin(ids, [rows.label_id(value) for value in place.values])
        return rows.where(labelled & ~there, ELSEWHERE, resolvable=False)


def _volume_of(name: str, namespace: str, rows: RowsView) -> PersistentVolume | Reason | None:
    """Return a claim's volume, None if it may wait for one, or why there is no saying."""
    if not name:
        return NAMELESS_CLAIM
    claim: PersistentVolumeClaim | None = rows.object(Kind.PERSISTENT_VOLUME_CLAIM, namespace, name)
    if claim is None:
        return missing(claim_not_found(name))
    volume_name = claim.spec.volume_name
    if not volume_name:
        return _why_unbound(class_of_claim(claim), rows)
    volume: PersistentVolume | None = rows.object(Kind.PERSISTENT_VOLUME, "", volume_name)
    return missing(volume_not_found(volume_name)) if volume is None else volume


def _why_unbound(class_name: str, rows: RowsView) -> Reason | None:
    """Return what is wrong with a claim of a class that has no volume; None if nothing is."""
    if not class_name:
        return CLASSLESS_CLAIM
    found: StorageClass | None = rows.object(Kind.STORAGE_CLASS, "", class_name)
    if found is None:
        return missing(class_not_found(class_name))
    if found.volume_binding_mode is None:
        return missing(unset_binding_mode(class_name))
    return None if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else UNBOUND_CLAIM


def _places_of(volume: PersistentVolume) -> list[ZoneLabel]:
    """Return a volume's places; a label with an empty part says nothing."""
    labels = volume.metadata.labels or {}
    places = []
    for key in _LABELS:
        if key in labels:
            values = tuple(part.strip() for part in labels[key].split(ZONE_DELIMITER))
            if all(values):
                places.append(ZoneLabel(key, values))
    return places
