"""From a node that was chosen to claims that are bound: what is assumed, written and waited for.

What goes from one step to the next is plain data: which claims get which volumes, and which are to
be provisioned on the node.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from k8s_scheduler.api.annotations import BOUND_BY_CONTROLLER
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.storage.claims import SELECTED_NODE, is_fully_bound, selected_node
from k8s_scheduler.api.storage.matching import is_kept_for
from k8s_scheduler.api.storage.objects import (
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    annotations_of,
)
from k8s_scheduler.core.framework.helpers.node_selection import picks_one
from k8s_scheduler.core.framework.plugin import ObjectPatch
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.volume_binding.matching import PodVolumes


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for a pod: (volume, namespace, claim), and (namespace, claim)."""

    node: str
    bindings: tuple[tuple[str, str, str], ...]
    provisions: tuple[tuple[str, str], ...]

    def note(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "node": self.node,
            "bindings": [list(binding) for binding in self.bindings],
            "provisions": [list(provision) for provision in self.provisions],
        }

    @staticmethod
    def read(note: Mapping[str, Any]) -> "Plan":
        """Return what `note` wrote."""
        return Plan(
            note["node"],
            tuple(map(tuple, note["bindings"])),
            tuple(map(tuple, note["provisions"])),
        )


def plan_of(volumes: PodVolumes, node: str) -> Plan:
    return Plan(
        node,
        tuple(
            (volume.metadata.name, claim.metadata.namespace, claim.metadata.name)
            for claim, volume in volumes.bindings
        ),
        tuple((claim.metadata.namespace, claim.metadata.name) for claim, _ in volumes.provisions),
    )


def assumed_objects(volumes: PodVolumes, node: str) -> Iterator[tuple[Kind, ClusterObject]]:
    """Yield volumes and claims as they will be."""
    for claim, volume in volumes.bindings:
        bound = _bound(volume, claim)
        if bound != volume:
            yield Kind.PERSISTENT_VOLUME, bound
    for claim, _ in volumes.provisions:
        if selected_node(claim) != node:
            annotations = {**annotations_of(claim.metadata), SELECTED_NODE: node}
            metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
            yield (
                Kind.PERSISTENT_VOLUME_CLAIM,
                msgspec.structs.replace(claim, metadata=metadata),
            )


def _bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    metadata, spec = volume.metadata, volume.spec
    known = claim.metadata
    reference = ClaimReference(known.namespace, known.name, known.uid)
    if not is_kept_for(volume, claim) and BOUND_BY_CONTROLLER not in annotations_of(metadata):
        annotations = {**annotations_of(metadata), BOUND_BY_CONTROLLER: "yes"}
        metadata = msgspec.structs.replace(metadata, annotations=annotations)
    if spec.claim_ref != reference:
        spec = msgspec.structs.replace(spec, claim_ref=reference)
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec)


def patches(plan: Plan, rows: RowsView) -> Iterator[ObjectPatch]:
    """Yield the writes that make it so: volumes first, then claims."""
    for name, namespace, claim_name in plan.bindings:
        volume = _volume(name, rows)
        original = rows.original(Kind.PERSISTENT_VOLUME, "", name)
        if volume is original:
            continue
        claim = _claim(namespace, claim_name, rows)
        reference = {
            "apiVersion": "v1",
            "kind": Kind.PERSISTENT_VOLUME_CLAIM.name,
            "namespace": namespace,
            "name": claim_name,
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
        if annotations_of(volume.metadata) != annotations_of(original.metadata):
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        yield ObjectPatch(
            Kind.PERSISTENT_VOLUME,
            "",
            name,
            {"metadata": metadata, "spec": {"claimRef": reference}},
        )
    for namespace, claim_name in plan.provisions:
        claim = _claim(namespace, claim_name, rows)
        if claim is rows.original(Kind.PERSISTENT_VOLUME_CLAIM, namespace, claim_name):
            continue
        yield ObjectPatch(
            Kind.PERSISTENT_VOLUME_CLAIM,
            namespace,
            claim_name,
            {
                "metadata": {
                    "resourceVersion": claim.metadata.resource_version,
                    "annotations": {SELECTED_NODE: plan.node},
                }
            },
        )


def is_done(plan: Plan, rows: RowsView) -> bool:
    """Return whether all claims are bound; StatusError if that can't become true any more."""
    if not len(rows):
        raise StatusError(
            f'binding volumes: failed to get node "{plan.node}": node "{plan.node}" not found'
        )
    return all(_is_bound(binding, plan, rows) for binding in plan.bindings) and all(
        _is_provisioned(provision, plan, rows) for provision in plan.provisions
    )


def _is_bound(binding: tuple[str, str, str], plan: Plan, rows: RowsView) -> bool:
    name, namespace, claim_name = binding
    volume = _volume(name, rows)
    _check_reach(volume, plan, rows)
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        raise StatusError(f'binding volumes: ClaimRef got reset for pv "{name}"')
    return is_fully_bound(_claim(namespace, claim_name, rows))


def _is_provisioned(provision: tuple[str, str], plan: Plan, rows: RowsView) -> bool:
    claim = _claim(*provision, rows, "failed to check provisioning pvc")
    if not claim.metadata.annotations:
        name = claim.metadata.name
        raise StatusError(f'binding volumes: selectedNode annotation reset for PVC "{name}"')
    if selected_node(claim) != plan.node:
        # The provisioner takes the annotation away to say that it did not work here.
        raise StatusError(f'binding volumes: provisioning failed for PVC "{claim.metadata.name}"')
    if claim.spec.volume_name:
        volume = rows.object(Kind.PERSISTENT_VOLUME, "", claim.spec.volume_name)
        if volume is None:
            return False
        _check_reach(volume, plan, rows)
    return is_fully_bound(claim)


def _check_reach(volume: PersistentVolume, plan: Plan, rows: RowsView) -> None:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return
    if not picks_one(affinity.required, rows):
        raise StatusError(
            f'binding volumes: pv "{volume.metadata.name}" node affinity doesn\'t match '
            f'node "{plan.node}": no matching NodeSelectorTerms'
        )


def _volume(name: str, rows: RowsView) -> PersistentVolume:
    found: PersistentVolume | None = rows.object(Kind.PERSISTENT_VOLUME, "", name)
    if found is None:
        raise StatusError(
            f'binding volumes: failed to check binding: persistentvolumes "{name}" not found'
        )
    return found


def _claim(
    namespace: str, name: str, rows: RowsView, errand: str = "failed to check binding"
) -> PersistentVolumeClaim:
    found: PersistentVolumeClaim | None = rows.object(Kind.PERSISTENT_VOLUME_CLAIM, namespace, name)
    if found is None:
        raise StatusError(
            f'binding volumes: {errand}: persistentvolumeclaims "{namespace}/{name}" not found'
        )
    return found
