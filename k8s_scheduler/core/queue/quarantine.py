"""Pods in quarantine: a process ended while it tried them, so they are tried last and alone.

    held ──── its time has come ───▶ due ──── nothing else can be tried ───▶ popped, and free again

Only pods that could be tried are in here; a gated or parked pod of the quarantine stays where it
is until it may be tried again. Being popped ends the quarantine: if the process survives the
attempt the pod is like any other, and if it does not, the next leader begins a new one.
"""

from collections.abc import Iterable

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.checkpoint import QuarantineEntry
from k8s_scheduler.core.queue.queued_pod import QueuedPod


class QuarantinedPods:
    """The pods that are tried last."""

    def __init__(self) -> None:
        # How many processes ended, and when the pod may be tried at the earliest.
        self._deaths: dict[PodUid, int] = {}
        self._not_before: dict[PodUid, float] = {}
        self._held: dict[PodUid, QueuedPod] = {}
        self._due: dict[PodUid, QueuedPod] = {}

    def begin(self, uid: PodUid, *, deaths: int, not_before: float) -> None:
        self._deaths[uid] = deaths
        self._not_before[uid] = not_before

    def hold(self, queued: QueuedPod) -> None:
        self._held[queued.uid] = queued

    def take(self, uid: PodUid) -> bool:
        """Release a pod that leaves or moves; return whether it was held here."""
        return (self._held.pop(uid, None) or self._due.pop(uid, None)) is not None

    def end(self, uid: PodUid) -> None:
        if self._deaths.pop(uid, None) is not None:
            del self._not_before[uid]

    def tick(self, now: float) -> None:
        for uid in [uid for uid in self._held if self._not_before[uid] <= now]:
            self._due[uid] = self._held.pop(uid)

    @property
    def next_uid(self) -> PodUid | None:
        """Return the pod that `pop` would give: the one that ended the fewest processes."""
        return min(self._due, key=self._deaths.__getitem__) if self._due else None

    def pop(self) -> QueuedPod | None:
        """Take out the next pod, and end its quarantine."""
        uid = self.next_uid
        if uid is None:
            return None
        queued = self._due.pop(uid)
        self.end(uid)
        return queued

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._deaths

    def __len__(self) -> int:
        return len(self._deaths)

    @property
    def uids(self) -> tuple[PodUid, ...]:
        return tuple(self._deaths)

    # Checkpoints

    def entries(self) -> tuple[QuarantineEntry, ...]:
        return tuple(
            QuarantineEntry(uid, deaths, self._not_before[uid], uid in self._due)
            for uid, deaths in self._deaths.items()
        )

    def restore(self, entries: Iterable[QuarantineEntry]) -> None:
        """Know what a checkpoint knew; comes before the pods themselves."""
        for entry in entries:
            self.begin(entry.uid, deaths=entry.deaths, not_before=entry.not_before)

    def restore_due(self, entries: Iterable[QuarantineEntry]) -> None:
        """Say whose time had come; comes after the pods themselves."""
        for entry in entries:
            if entry.is_due and entry.uid in self._held:
                self._due[entry.uid] = self._held.pop(entry.uid)
