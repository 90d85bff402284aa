"""Tells of rivals where operators look: in the log, in an Event, by a metric.

The Event is about our own Lease, and names the other one; a process without a Lease tells of its
pod. It is said when it is new or another, and again every ten minutes for as long as it lasts. Each
replica tells: the one that stands by may be the only one that sees it.

What others write on their Leases is quoted in part: few of them, and shortened.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.app.own_pod import OwnPod
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import Forbidden
from k8s_scheduler.kube.events.event import WARNING, EventNote
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.lease.other_leases import MOST_LEASES, RESOURCE, OtherLease
from k8s_scheduler.kube.permissions import missing_permission
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

REASON: Final = "SchedulerNameShared"
ACTION: Final = "Electing"
CONTROLLER: Final = "k8s-scheduler"
AGAIN_SECONDS: Final = 600.0
# How many are named, of Leases and of names.
_MOST_NAMED: Final = 5
_UNCHECKED: Final = "It is not seen whether another Lease serves our schedulerNames"


@dataclass(frozen=True, slots=True)
class Rival:
    """Another Lease, the names that its holder and we serve, and whether it was seen renewed."""

    lease: OtherLease
    shared: tuple[str, ...]
    lives: bool


class RivalNews:
    """Says what is new."""

    def __init__(
        self,
        recorder: EventRecorder,
        *,
        pod: OwnPod | None,
        metrics: KubeMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._recorder = recorder
        self._pod = pod
        self._clock = clock
        self._log = BoundedLog(logger, clock, interval_seconds=AGAIN_SECONDS)
        self._rivals = metrics.rivals
        self._rivals.set(0)
        results = ("complete", "partial", "forbidden", "failure")
        self._looks = {each: metrics.rival_looks.labels(result=each) for each in results}
        self._is_forbidden = False
        self._said: frozenset[tuple[object, ...]] = frozenset()
        self._said_at = float("-inf")

    # How looks went

    def looked(self, *, complete: bool) -> None:
        self._is_forbidden = False
        self._looks["complete" if complete else "partial"].inc()
        if not complete:
            text = "more than %d Leases say that schedulers hold them; the others are not looked at"
            self._log.warning("partial", text, MOST_LEASES)

    def failed(self, error: Exception) -> None:
        """Take note of a look that failed; a right is missed once, until it is there."""
        missing = missing_permission(error, RESOURCE) if isinstance(error, Forbidden) else ""
        if not missing:
            self._looks["failure"].inc()
            self._log.warning("failed", "%s: %s", _UNCHECKED.lower(), error)
            return
        self._looks["forbidden"].inc()
        if not self._is_forbidden:
            self._is_forbidden = True
            fields = {"error": str(error)}
            logger.warning("%s: %s", _UNCHECKED, missing, extra={"fields": fields})

    # What they have shown

    async def tell(self, rivals: Sequence[Rival], *, own: OtherLease | None, refuses: bool) -> None:
        """Tell which Leases serve our names, if that is news; `own` is ours, if it was seen."""
        self._rivals.set(sum(rival.lives for rival in rivals))
        found = frozenset((r.lease.key, r.shared, r.lives, refuses) for r in rivals)
        now = self._clock()
        if found == self._said and (not found or now - self._said_at < AGAIN_SECONDS):
            return
        was_said, self._said, self._said_at = bool(self._said), found, now
        if not rivals:
            if was_said:
                logger.info("No other Lease serves our schedulerNames any more")
            return
        for rival in rivals[:_MOST_NAMED]:
            self._log_one(rival, refuses=refuses, of=len(rivals))
        regarding = await self._regarding(own)
        if regarding is not None:
            self._recorder.record(_event(regarding, rivals, refuses=refuses), is_own=True)

    def _log_one(self, rival: Rival, *, refuses: bool, of: int) -> None:
        fields = {
            "lease": rival.lease.key,
            "holder": rival.lease.holder,
            "scheduler_names": ", ".join(_few(rival.shared)),
            "seen_renewed": rival.lives,
            "rivals": of,
        }
        said = (
            "Not leading: another Lease serves schedulerNames of ours"
            if refuses
            else "Another Lease serves schedulerNames of ours, both decide about the same pods"
        )
        logger.warning(said, extra={"fields": fields})

    async def _regarding(self, own: OtherLease | None) -> ObjectReference | None:
        if own is not None:
            return _reference(own)
        return None if self._pod is None else await self._pod.found()


def _reference(lease: OtherLease) -> ObjectReference:
    return ObjectReference(
        kind="Lease",
        name=lease.name,
        namespace=lease.namespace,
        uid=lease.uid,
        api_version="coordination.k8s.io/v1",
    )


def _event(regarding: ObjectReference, rivals: Sequence[Rival], *, refuses: bool) -> EventNote:
    effect = "not leading meanwhile" if refuses else "both decide about the same pods"
    named = [
        f"Lease {rival.lease.key} (holder {rival.lease.holder}) serves "
        f"{', '.join(_few(rival.shared))}"
        for rival in rivals[:_MOST_NAMED]
    ]
    more = len(rivals) - len(named)
    others = "; ".join([*named, *([f"and {more} more Leases"] if more else [])])
    return EventNote(
        regarding=regarding,
        related=_reference(rivals[0].lease),
        type=WARNING,
        reason=REASON,
        action=ACTION,
        note=f"Another Lease serves schedulerNames of ours, {effect}: {others}",
        reporting_controller=CONTROLLER,
    )


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
