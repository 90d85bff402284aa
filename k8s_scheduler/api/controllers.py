"""Owners of pods whose selectors scheduling reads: pods of one such owner are spread by default."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ObjectMeta

# By (apiVersion, kind); the API server knows no other version.
_READ: Final[Mapping[tuple[str, str], Kind]] = {
    ("v1", "ReplicationController"): Kind.REPLICATION_CONTROLLER,
    ("apps/v1", "ReplicaSet"): Kind.REPLICA_SET,
    ("apps/v1", "StatefulSet"): Kind.STATEFUL_SET,
}


class Controller(NamedTuple):
    """An owner that manages a pod, in the pod's namespace."""

    kind: Kind
    name: str


def controller_of(metadata: ObjectMeta) -> Controller | None:
    """Return the owner that manages a pod, if its selector is read.

    Of other owners nothing is read, not even the name: each run of a CronJob has a Job of its own.
    """
    for owner in metadata.owner_references or ():
        if owner.controller:
            kind = _READ.get((owner.api_version, owner.kind))
            return None if kind is None else Controller(kind, owner.name)
    return None
