"""Parked pods of one shape that preemption can't tell apart either.

Pods of one shape share what filters say of them. What preemption could do for them, and with it
the end of their message, depends on three more things: their priority, whether they may preempt,
and the node that their status names. Pods that agree in these too are peers: one of them is asked,
and the answer goes for all.
"""

from collections.abc import Iterator
from typing import NamedTuple

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.queue.queued_pod import QueuedPod


class PreemptionKey(NamedTuple):
    """What preemption reads of a pod besides its shape."""

    priority: int
    preemption_policy: str
    nominated_node_name: str


def preemption_key(pod: Pod) -> PreemptionKey:
    spec = pod.spec
    return PreemptionKey(
        spec.priority or 0, spec.preemption_policy or "", pod.status.nominated_node_name or ""
    )


class Peers:
    """The parked pods of one shape and one preemption key, and what is known of their reasons.

    Everything but the pods is worked out anew after a checkpoint (`forget`): it is not part of it.
    """

    def __init__(self, key: PreemptionKey) -> None:
        self.key = key
        # Those whose message was looked at last stand last.
        self._pods: dict[PodUid, QueuedPod] = {}
        # The state of the cluster they were last judged on; None: of no interest, or never.
        self.judged_on: tuple[int, int] | None = None
        # What holds them back, as far as it was judged, and the digest of it.
        self.message = ""
        self.digest = 0
        self.rejectors: tuple[str, ...] = ()
        # So many of them may have been told something else: they have yet to be looked at.
        self.unseen = 0
        # One of them could not be told yet.
        self.owing = False
        # When it was their turn; the lowest number is next.
        self.turn = 0

    def add(self, queued: QueuedPod) -> None:
        self._pods[queued.uid] = queued
        if queued.told not in (0, self.digest):
            self.unseen = len(self._pods)

    def remove(self, uid: PodUid) -> None:
        del self._pods[uid]
        self.unseen = min(self.unseen, len(self._pods))

    def found(
        self, message: str, digest: int, rejectors: tuple[str, ...], state: tuple[int, int]
    ) -> None:
        self.judged_on = state
        self.rejectors = rejectors
        if digest != self.digest:
            self.message, self.digest = message, digest
            self.unseen = len(self._pods)

    @property
    def first_unseen(self) -> QueuedPod | None:
        return next(iter(self._pods.values())) if self.unseen else None

    def seen(self, queued: QueuedPod) -> None:
        """Take note that the first pod was looked at: it comes last from now on."""
        self.unseen -= 1
        self._pods[queued.uid] = self._pods.pop(queued.uid)

    def look_again(self) -> None:
        """Let all of them be looked at once more if one of them could not be told."""
        if self.owing:
            self.owing = False
            self.unseen = len(self._pods)

    def forget(self) -> None:
        """Know nothing but the pods, in the order in which they were parked."""
        self._pods = {q.uid: q for q in sorted(self._pods.values(), key=lambda q: q.sequence)}
        self.judged_on, self.message, self.digest, self.rejectors = None, "", 0, ()
        self.unseen, self.owing, self.turn = len(self._pods), False, 0

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)
