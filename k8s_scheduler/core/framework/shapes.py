"""Shapes: pods that scheduling can't tell apart share one judgement.

The key holds everything `PodView` lets plugins see: its labels, and everything else. Who the pod is
(uid, name), how important (priority) and how often it was tried are in no shape. Pods that differ
in their labels alone often share a judgement all the same: see `engine.shapes.families`. Pods that
differ in what they request, or in the nodes they demand or prefer, and in nothing else, are kin:
see `engine.shapes.kin`.
"""

from typing import NamedTuple

import msgspec

from k8s_scheduler.api.meta import OwnerReference
from k8s_scheduler.api.node_features import required_features
from k8s_scheduler.api.pod import Container, Pod


class ShapeKey(NamedTuple):
    """What tells shapes apart."""

    # The whole spec; what of it all kin have in common.
    spec: bytes
    labels: bytes
    kin: bytes


_encode = msgspec.msgpack.Encoder(order="sorted").encode


def shape_of(pod: Pod) -> ShapeKey:
    """Return the key of the pod's shape."""
    metadata, spec = pod.metadata, pod.spec
    # Claims made for a pod are named after it and belong to it: such a pod is a shape of its own.
    itself = (metadata.name, metadata.uid) if _has_own_claims(pod) else None
    affinity = spec.affinity
    kin = _encode(
        (
            metadata.namespace,
            [_owner(o) for o in metadata.owner_references or () if o.controller],
            itself,
            spec.scheduler_name,
            spec.node_name,
            [_facts_of(c) for c in spec.containers or ()],
            [_facts_of(c) for c in spec.init_containers or ()],
            spec.tolerations,
            spec.node_selector,
            None if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity),
            spec.topology_spread_constraints,
            spec.volumes,
            spec.resource_claims,
            required_features(pod),
        )
    )
    own = _encode(
        (
            [_requests_of(c) for c in spec.containers or ()],
            [_requests_of(c) for c in spec.init_containers or ()],
            spec.resources.requests if spec.resources else None,
            spec.overhead,
            None if affinity is None else affinity.node_affinity,
        )
    )
    # Each says itself where it ends.
    return ShapeKey(kin + own, _encode(metadata.labels), kin)


def _owner(owner: OwnerReference) -> tuple[str, str, str]:
    return owner.api_version, owner.kind, owner.name


def _has_own_claims(pod: Pod) -> bool:
    return any(volume.ephemeral is not None for volume in pod.spec.volumes or ())


def _facts_of(container: Container) -> tuple[object, ...]:
    return (container.restart_policy, container.image, container.ports)


def _requests_of(container: Container) -> object:
    return container.resources.requests if container.resources else None
