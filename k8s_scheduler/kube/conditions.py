"""The PodScheduled condition of pods that were not placed: what is written, and who waits.

The queue is bounded and keeps one patch per pod. A newer patch takes the place of a waiting one;
when too many pods wait, the oldest patch is dropped and counted. That loses nothing for good: the
caller compares with the pod as it stands, so the next failed attempt writes it again.

                 put (newer one: replaces it in place)
     nothing ───────────────► WAITING ──── take ───► BUSY ── done ──► nothing
        ▲                        │                     │
        └── overflow, withdraw ──┘                     └ put: WAITING as well, taken after `done`

Invariant: at most one patch per pod is BUSY, so two of them never overtake each other.
"""

import asyncio
from dataclasses import dataclass

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.timestamps import second_time


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPatch:
    """PodScheduled=False for one pod.

    `last_transition_time` is the standing one, to be kept where the status was False already;
    None stamps the time of writing. `nominated_node_name` is left alone by None and cleared by "".
    """

    uid: PodUid
    namespace: str
    name: str
    reason: str
    message: str
    observed_generation: int = 0
    last_transition_time: str | None = None
    nominated_node_name: str | None = None


def status_path(patch: ConditionPatch) -> str:
    """Return the path of the pod's status."""
    return f"/api/v1/namespaces/{patch.namespace}/pods/{patch.name}/status"


def encode_condition(patch: ConditionPatch, *, wall_ns: int) -> bytes:
    """Return the strategic merge patch; the uid makes the server refuse a namesake."""
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
    status: dict[str, object] = {"conditions": [condition]}
    if patch.nominated_node_name is not None:
        # A null removes the field, as its absence in kube-scheduler's new status does.
        status["nominatedNodeName"] = patch.nominated_node_name or None
    return msgspec.json.encode({"metadata": {"uid": patch.uid}, "status": status})


class ConditionQueue:
    """Patches that wait for a worker, oldest first, one per pod."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[PodUid, ConditionPatch] = {}
        self._busy: set[PodUid] = set()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def put(self, patch: ConditionPatch) -> ConditionPatch | None:
        """Add or replace a patch; return the one that had to go to make room."""
        dropped = None
        if patch.uid not in self._waiting and len(self._waiting) >= self._limit:
            dropped = self._waiting.pop(next(iter(self._waiting)))
        self._waiting[patch.uid] = patch
        self._wake.set()
        return dropped

    async def take(self) -> ConditionPatch:
        """Wait for a patch of a pod that is not busy, and make it busy."""
        while (uid := self._first()) is None:
            self._wake.clear()
            await self._wake.wait()
        self._busy.add(uid)
        return self._waiting.pop(uid)

    def done(self, uid: PodUid) -> None:
        """End the busy time of a pod."""
        self._busy.discard(uid)
        self._wake.set()

    def withdraw(self, uid: PodUid) -> None:
        """Forget the waiting patch of a pod, which is overtaken by events."""
        self._waiting.pop(uid, None)

    def is_waiting(self, uid: PodUid) -> bool:
        """Return whether a newer patch waits."""
        return uid in self._waiting

    def is_busy(self, uid: PodUid) -> bool:
        """Return whether a patch of this pod is being written."""
        return uid in self._busy

    def _first(self) -> PodUid | None:
        return next((uid for uid in self._waiting if uid not in self._busy), None)
