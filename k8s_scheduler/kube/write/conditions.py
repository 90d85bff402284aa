"""Status patches of pods that are not bound yet: their encoding, and the queue in which they wait.

A patch sets the PodScheduled condition of a pod that was not placed, and the node that is nominated
for a pod. The queue is bounded and keeps one patch per pod. A newer patch replaces a waiting one
and takes over what only the older one sets; when too many pods wait, the oldest patch is dropped
and counted. Nothing is lost for good: the caller compares with the pod's status as it is, so the
next failed attempt writes the patch again.

                 put (newer one: replaces it in place)
     nothing ───────────────► WAITING ──── take ───► BUSY ── done ──► nothing
        ▲                        │                     │
        └ overflow, withdraw, end┘                     └ put: WAITING as well, taken after `done`

Invariant: at most one patch per pod is BUSY, so two of them never overtake each other.
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.timestamps import second_time

# A patch in the queue, besides its message.
_PATCH_BYTES: Final = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPatch:
    """PodScheduled=False for one pod; without a reason, the condition is left alone.

    `last_transition_time` is the standing one, to be kept where the status was False already;
    None stamps the time of writing. `nominated_node_name` is left alone by None and cleared by "".
    """

    uid: PodUid
    namespace: str
    name: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    nominated_node_name: str | None = None

    @property
    def nbytes(self) -> int:
        """About how much memory it takes; a character of a message takes up to four bytes."""
        return _PATCH_BYTES + len(self.message.encode(errors="replace"))

    def after(self, older: "ConditionPatch") -> "ConditionPatch":
        """Return this, with what only an older patch says."""
        nominated = self.nominated_node_name
        if nominated is None:
            nominated = older.nominated_node_name
        return replace(self if self.reason else older, nominated_node_name=nominated)


def status_path(patch: ConditionPatch) -> str:
    return f"/api/v1/namespaces/{patch.namespace}/pods/{patch.name}/status"


def encode_condition(patch: ConditionPatch, *, wall_ns: int) -> bytes:
    """Return the strategic merge patch; the uid makes the server refuse a namesake."""
    status: dict[str, object] = {}
    if patch.reason:
        status["conditions"] = [_condition(patch, wall_ns=wall_ns)]
    if patch.nominated_node_name is not None:
        # A null removes the field, as its absence in kube-scheduler's new status does.
        status["nominatedNodeName"] = patch.nominated_node_name or None
    return msgspec.json.encode({"metadata": {"uid": patch.uid}, "status": status})


def _condition(patch: ConditionPatch, *, wall_ns: int) -> dict[str, object]:
    condition: dict[str, object] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": patch.reason,
        "message": patch.message,
        "lastProbeTime": None,
        "lastTransitionTime": patch.last_transition_time or second_time(wall_ns),
    }
    if patch.observed_generation:
        condition["observedGeneration"] = patch.observed_generation
    return condition


class ConditionQueue:
    """Patches that wait for a worker, oldest first, one per pod."""

    def __init__(self, limit: int, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        # About what those take that wait, and how many had to go.
        self.nbytes = 0
        self.dropped = 0
        self._waiting: dict[PodUid, ConditionPatch] = {}
        self._busy: dict[PodUid, ConditionPatch] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def put(self, patch: ConditionPatch) -> list[ConditionPatch]:
        """Add or replace a patch; return those that had to go to make room, the oldest."""
        # One that is being written is given up for a newer one, if it does not work at once.
        older = self._waiting.get(patch.uid) or self._busy.get(patch.uid)
        if older is not None:
            patch = patch.after(older)
        standing = self._waiting.get(patch.uid)
        self.nbytes += patch.nbytes - (0 if standing is None else standing.nbytes)
        self._waiting[patch.uid] = patch
        dropped = []
        while len(self._waiting) > self._limit or (
            self.nbytes > self._max_bytes and len(self._waiting) > 1
        ):
            oldest = self._pop(next(iter(self._waiting)))
            if oldest is not None:
                dropped.append(oldest)
        self.dropped += len(dropped)
        return dropped

    def _pop(self, uid: PodUid) -> ConditionPatch | None:
        patch = self._waiting.pop(uid, None)
        if patch is not None:
            self.nbytes -= patch.nbytes
        return patch

    def end(self) -> int:
        count = len(self._waiting)
        self._waiting.clear()
        self.nbytes = 0
        return count

    def take(self) -> ConditionPatch | None:
        """Return a patch of a pod that is not busy, and make it busy; None if there is none."""
        uid = self._first()
        patch = None if uid is None else self._pop(uid)
        if patch is not None:
            self._busy[patch.uid] = patch
        return patch

    def done(self, uid: PodUid) -> None:
        self._busy.pop(uid, None)

    def withdraw(self, uid: PodUid) -> bool:
        """Forget the waiting patch of a pod, overtaken by events; return whether it is not busy."""
        self._pop(uid)
        return uid not in self._busy

    def is_waiting(self, uid: PodUid) -> bool:
        return uid in self._waiting

    def _first(self) -> PodUid | None:
        return next((uid for uid in self._waiting if uid not in self._busy), None)
