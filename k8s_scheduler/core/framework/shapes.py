"""Shapes: pods that scheduling can't tell apart share one judgement.

The key holds everything `PodView` lets plugins see: its labels, and everything else. Who the pod is
(uid, name), how important (priority) and how often it was tried are in no shape. Pods that differ
in their labels alone often share a judgement all the same: see `engine.shapes.families`.
"""

from typing import NamedTuple

import msgspec

from k8s_scheduler.api.meta import OwnerReference
from k8s_scheduler.api.node_features import required_features
from k8s_scheduler.api.pod import Container, Pod


class ShapeKey(NamedTuple):
    """What tells shapes apart."""

    spec: bytes
    labels: bytes


_encode = msgspec.msgpack.Encoder(order="sorted").encode


def shape_of(pod: Pod) -> ShapeKey:
    """Return the key of the pod's shape."""
    metadata, spec = pod.metadata, pod.spec
    # Claims made for a pod are named after it and belong to it: such a pod is a shape of its own.
    itself = (metadata.name, metadata.uid) if _has_own_claims(pod) else None
    return ShapeKey(
        _encode(
            (
                metadata.namespace,
                [_owner(o) for o in metadata.owner_references or () if o.controller],
                itself,
                spec.scheduler_name,
                spec.node_name,
                [_facts_of(c) for c in spec.containers or ()],
                [_facts_of(c) for c in spec.init_containers or ()],
                spec.resources.requests if spec.resources else None,
                spec.overhead,
                spec.tolerations,
                spec.node_selector,
                spec.affinity,
                spec.topology_spread_constraints,
                spec.volumes,
                spec.resource_claims,
                required_features(pod),
            )
        ),
        _encode(metadata.labels),
    )


def _owner(owner: OwnerReference) -> tuple[str, str, str]:
    return owner.api_version, owner.kind, owner.name


def _has_own_claims(pod: Pod) -> bool:
    return any(volume.ephemeral is not None for volume in pod.spec.volumes or ())


def _facts_of(container: Container) -> tuple[object, ...]:
    requests = container.resources.requests if container.resources else None
    return (requests, container.restart_policy, container.image, container.ports)
