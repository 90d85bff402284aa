"""A pod's claims: those with a volume, and those that get one where the pod goes."""

from dataclasses import dataclass

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.storage.claims import (
    LOST,
    WAIT_FOR_FIRST_CONSUMER,
    UsedClaim,
    claim_not_found,
    claim_of,
    class_of_claim,
    is_fully_bound,
    not_the_owner,
    unset_binding_mode,
)
from k8s_scheduler.api.storage.objects import PersistentVolumeClaim, StorageClass
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView

UNBOUND_IMMEDIATE = Reason(
    code="VolumeBinding/UnboundImmediate",
    text="pod has unbound immediate PersistentVolumeClaims",
)


def unusable_claim(text: str) -> Reason:
    """Return the reason for a claim that can't be used, now or ever."""
    return Reason(code="VolumeBinding/UnusableClaim", text=text)


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The pod's claims in the order of its volumes; one that is used twice is here twice."""

    bound: tuple[PersistentVolumeClaim, ...]
    waiting: tuple[PersistentVolumeClaim, ...]


def claims_of(pod: PodView, rows: RowsView) -> PodClaims | Reason | None:
    """Return the pod's claims, why they keep it from every node, or None if it has none.

    Raises ValueError for a class that does not say when its claims are bound.
    """
    claims = []
    for volume in pod.volumes:
        used = claim_of(volume, pod)
        if used is None:
            continue
        claim: PersistentVolumeClaim | None = rows.object(
            Kind.PERSISTENT_VOLUME_CLAIM, pod.namespace, used.name
        )
        if problem := _problem(claim, used, pod):
            return unusable_claim(problem)
        claims.append(claim)
    if not claims:
        return None
    return _sorted_out([claim for claim in claims if claim is not None], rows)


def _problem(claim: PersistentVolumeClaim | None, used: UsedClaim, pod: PodView) -> str | None:
    if claim is None:
        if used.ephemeral:
            return (
                "waiting for ephemeral volume controller to create the "
                f'persistentvolumeclaim "{used.name}"'
            )
        return claim_not_found(used.name)
    if claim.status.phase == LOST:
        return (
            f'persistentvolumeclaim "{used.name}" bound to non-existent '
            f'persistentvolume "{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{used.name}" is being deleted'
    if used.ephemeral and not pod.controls(claim.metadata):
        return not_the_owner(claim.metadata, pod.namespace, pod.name)
    return None


def _sorted_out(claims: list[PersistentVolumeClaim], rows: RowsView) -> PodClaims | Reason:
    bound, waiting, immediate = [], [], []
    for claim in claims:
        if is_fully_bound(claim):
            bound.append(claim)
        elif _waits(claim, rows) and not claim.spec.volume_name:
            waiting.append(claim)
        else:
            immediate.append(claim)
    return UNBOUND_IMMEDIATE if immediate else PodClaims(tuple(bound), tuple(waiting))


def _waits(claim: PersistentVolumeClaim, rows: RowsView) -> bool:
    """Return whether a claim's class lets it wait for its pod; an unknown class does not."""
    name = class_of_claim(claim)
    if not name:
        return False
    found: StorageClass | None = rows.object(Kind.STORAGE_CLASS, "", name)
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise StatusError(unset_binding_mode(name))
    return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
