"""Preemptions under way: who has to leave for whom, and how far that has come.

        promises to lesser pods taken back ─▶ all victims but the last ─▶ the last ─▶ over
                                             └─ one can't be evicted ─▶ over, the pod is tried again

While it lasts, the pod is kept out of the queue's reach: trying it before its victims are gone
would only preempt more. The last victim goes alone so that the pod can't be told that all is done
before it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.numbering import Numbers
from k8s_scheduler.core.messages.checkpoint import EvictionEntry
from k8s_scheduler.core.messages.incoming import RequestResult
from k8s_scheduler.core.messages.outgoing import (
    ClearNomination,
    EventType,
    Evict,
    Instruction,
    PodReference,
    RecordEvent,
)
from k8s_scheduler.core.queue.queued_pod import QueuedPod

# What a `RequestResult` says of a victim that was gone already.
GONE = "NotFound"


@dataclass(slots=True)
class Eviction:
    """One preemption."""

    uid: PodUid
    attempt: int
    namespace: str
    name: str
    scheduler_name: str
    node: NodeName
    others: tuple[PodReference, ...]
    victims: tuple[PodReference, ...]
    stage: int = -1
    # By request that is not answered yet: the pod it is about.
    requests: dict[int, PodUid] = field(default_factory=dict)
    # Something went wrong, so the pod is tried again at the end; a victim stayed, so it ends here.
    failed: bool = False
    stopped: bool = False

    @property
    def pod(self) -> PodReference:
        """For whom it is."""
        return PodReference(self.namespace, self.name, self.uid)


class Evictions:
    """All preemptions under way, by the pod they are for."""

    def __init__(self, numbers: Numbers) -> None:
        self._evictions: dict[PodUid, Eviction] = {}
        self._numbers = numbers

    def start(
        self,
        pod: Pod,
        *,
        attempt: int,
        node: NodeName,
        others: tuple[Pod, ...],
        victims: tuple[Pod, ...],
    ) -> Iterator[Instruction]:
        """Begin; with nobody to evict there is nothing to wait for."""
        metadata = pod.metadata
        eviction = Eviction(
            uid=PodUid(metadata.uid),
            attempt=attempt,
            namespace=metadata.namespace,
            name=metadata.name,
            scheduler_name=pod.spec.scheduler_name,
            node=node,
            others=tuple(map(reference, others)),
            victims=tuple(map(reference, victims)),
        )
        if eviction.victims or eviction.others:
            self._evictions[eviction.uid] = eviction
            yield from self._advance(eviction)

    def answered(self, result: RequestResult) -> Iterator[Instruction]:
        """Take an answer; other attempts' answers are nobody's."""
        eviction = self._evictions.get(result.uid)
        if eviction is None or result.request not in eviction.requests:
            return
        about = eviction.requests.pop(result.request)
        victim = next((v for v in eviction.victims if v.uid == about), None)
        if not result.done:
            # A promise that can't be taken back from a status is no reason to stop.
            eviction.failed = True
            eviction.stopped |= victim is not None
        elif victim is not None and result.message != GONE:
            yield _preempted(victim, eviction)
        if not eviction.requests:
            yield from self._advance(eviction)

    def owns(self, result: RequestResult) -> bool:
        """Return whether an answer is about a preemption."""
        eviction = self._evictions.get(result.uid)
        return eviction is not None and result.request in eviction.requests

    def is_under_way(self, uid: PodUid) -> bool:
        """Return whether a pod's victims are still being evicted."""
        return uid in self._evictions

    def take_ended(self) -> list[Eviction]:
        """Return the preemptions that have come to their end, and forget them."""
        ended = [e for e in self._evictions.values() if not e.requests]
        for eviction in ended:
            del self._evictions[eviction.uid]
        return ended

    def drop(self, uid: PodUid) -> None:
        """Forget the preemption for a pod that is gone."""
        self._evictions.pop(uid, None)

    # Checkpoints

    def entries(self) -> tuple[EvictionEntry, ...]:
        """Return all of them as checkpoint data."""
        return tuple(
            EvictionEntry(
                uid=e.uid,
                attempt=e.attempt,
                namespace=e.namespace,
                name=e.name,
                scheduler_name=e.scheduler_name,
                node=e.node,
                victims=tuple((v.namespace, v.name, v.uid) for v in e.victims),
                others=tuple((v.namespace, v.name, v.uid) for v in e.others),
                stage=e.stage,
                requests=dict(e.requests),
                failed=e.failed,
                stopped=e.stopped,
            )
            for e in self._evictions.values()
        )

    def restore(self, entry: EvictionEntry) -> None:
        """Put a preemption where a checkpoint says it was."""
        self._evictions[entry.uid] = Eviction(
            uid=entry.uid,
            attempt=entry.attempt,
            namespace=entry.namespace,
            name=entry.name,
            scheduler_name=entry.scheduler_name,
            node=entry.node,
            victims=tuple(PodReference(*v) for v in entry.victims),
            others=tuple(PodReference(*v) for v in entry.others),
            stage=entry.stage,
            requests=dict(entry.requests),
            failed=entry.failed,
            stopped=entry.stopped,
        )

    # Stages

    def _advance(self, eviction: Eviction) -> Iterator[Instruction]:
        """Ask for what comes next; a stage with nothing to do is over at once."""
        stages = (self._take_back, self._evict_most, self._evict_last)
        while not eviction.requests and not eviction.stopped and eviction.stage + 1 < len(stages):
            eviction.stage += 1
            yield from stages[eviction.stage](eviction)

    def _take_back(self, eviction: Eviction) -> Iterator[Instruction]:
        for other in eviction.others:
            yield ClearNomination(
                uid=eviction.uid,
                namespace=eviction.namespace,
                name=eviction.name,
                attempt=eviction.attempt,
                request=self._request(eviction, other),
                other=other,
            )

    def _evict_most(self, eviction: Eviction) -> Iterator[Instruction]:
        for victim in eviction.victims[:-1]:
            yield self._evict(eviction, victim)

    def _evict_last(self, eviction: Eviction) -> Iterator[Instruction]:
        for victim in eviction.victims[-1:]:
            yield self._evict(eviction, victim)

    def _evict(self, eviction: Eviction, victim: PodReference) -> Evict:
        return Evict(
            uid=eviction.uid,
            namespace=eviction.namespace,
            name=eviction.name,
            attempt=eviction.attempt,
            request=self._request(eviction, victim),
            victim=victim,
            scheduler_name=eviction.scheduler_name,
        )

    def _request(self, eviction: Eviction, about: PodReference) -> int:
        number = self._numbers.next()
        eviction.requests[number] = about.uid
        return number


def reference(pod: Pod) -> PodReference:
    """Return a pod as others refer to it."""
    metadata = pod.metadata
    return PodReference(metadata.namespace, metadata.name, PodUid(metadata.uid))


def _preempted(victim: PodReference, eviction: Eviction) -> RecordEvent:
    return _tell_victim(
        victim, eviction.pod, eviction.node, eviction.scheduler_name, attempt=eviction.attempt
    )


def in_memory(victim: Pod, preemptor: QueuedPod, node: NodeName) -> RecordEvent:
    """Return the event of a victim that had no room on the API server yet."""
    pod = preemptor.pod
    return _tell_victim(
        reference(victim),
        reference(pod),
        node,
        pod.spec.scheduler_name,
        attempt=preemptor.attempts,
        suffix=" (in kube-scheduler memory).",
    )


def _tell_victim(
    victim: PodReference,
    preemptor: PodReference,
    node: NodeName,
    scheduler_name: str,
    *,
    attempt: int,
    suffix: str = "",
) -> RecordEvent:
    """Return the event that tells a victim why it goes; who reads it may not know the other pod."""
    return RecordEvent(
        uid=victim.uid,
        namespace=victim.namespace,
        name=victim.name,
        attempt=attempt,
        scheduler_name=scheduler_name,
        type=EventType.NORMAL,
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {preemptor.uid} on node {node}{suffix}",
        related=preemptor,
    )
