"""Shapes: pods that scheduling can't tell apart share one judgement.

The key holds what `PodView` lets plugins see and nothing else: its labels, and all the rest. Who
the pod is (uid, name), how important (priority) and how often it was tried are in no shape, nor is
what admission and controllers add that no plugin looks at: tokens, Jobs as owners, hostnames. Pods
that differ in their labels alone often share a judgement all the same: see
`engine.shapes.variant_cache` and `queue.parked`. Pods that name claims and differ in nothing but
these are of one partial shape: see `engine.shapes.partial_shape`. So are pods without claims that
differ in what they request, or in the nodes they demand or prefer, and in nothing else.
"""

from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from k8s_scheduler.api.controllers import controller_of
from k8s_scheduler.api.kinds import as_text
from k8s_scheduler.api.node_features import required_features
from k8s_scheduler.api.pod import Container, Pod
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.core.framework.views.pod_view import images_of, names_claims


class ShapeKey(NamedTuple):
    """What tells shapes apart; of what is long, a digest."""

    # The whole spec; what of it pods of a partial shape have in common.
    spec: bytes
    labels: bytes
    partial: bytes


# What is longer is digested. Most pods are not: a digest takes as long as all the rest of a key.
LONGEST_BYTES: Final = 512
# No content begins so: msgpack never uses this byte.
_DIGESTED: Final = b"\xc1"
_encode = msgspec.msgpack.Encoder(order="sorted", enc_hook=as_text).encode


def shape_of(pod: Pod) -> ShapeKey:
    metadata, spec = pod.metadata, pod.spec
    # Claims made for a pod are named after it and belong to it: such a pod is a shape of its own.
    itself = (metadata.name, metadata.uid) if spec.volumes and _has_own_claims(pod) else None
    affinity = spec.affinity
    sizes = (
        [_requests_of(c) for c in spec.containers or ()],
        [(c.restart_policy == "Always", _requests_of(c)) for c in spec.init_containers or ()],
        spec.resources.requests if spec.resources else None,
        spec.overhead,
        None if affinity is None else affinity.node_affinity,
    )
    volumes: object = spec.volumes
    own: object = sizes
    if names_claims(pod):
        others = [v for v in spec.volumes or () if v.persistent_volume_claim is None]
        volumes, own = (sizes, others), spec.volumes
    partial = _encode(
        (
            metadata.namespace,
            controller_of(metadata),
            itself,
            spec.scheduler_name,
            spec.node_name,
            images_of(pod),
            host_ports(pod),
            spec.tolerations,
            spec.node_selector,
            None if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity),
            spec.topology_spread_constraints,
            volumes,
            spec.resource_claims,
            required_features(pod),
        )
    )
    # Each says itself where it ends.
    return ShapeKey(
        _short(partial + _encode(own)), _short(_encode(metadata.labels)), _short(partial)
    )


def _short(content: bytes) -> bytes:
    """Return what stands for some content: itself, or its digest, which is like no content.

    Keys are held by every waiting pod and by many maps, also after the pod is gone, and a spec may
    be as large as the API server takes.
    """
    return content if len(content) <= LONGEST_BYTES else _DIGESTED + blake2b(content).digest()


def _has_own_claims(pod: Pod) -> bool:
    return any(volume.ephemeral is not None for volume in pod.spec.volumes or ())


def _requests_of(container: Container) -> object:
    return container.resources.requests if container.resources else None
