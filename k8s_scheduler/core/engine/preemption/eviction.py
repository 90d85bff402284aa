"""One preemption: for whom, who has to leave, how far it has come, and what victims are told."""

from dataclasses import dataclass, field

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.checkpoint import EvictionEntry
from k8s_scheduler.core.messages.outgoing import EventType, PodReference, RecordEvent


@dataclass(slots=True, eq=False)
class Eviction:
    """One preemption."""

    uid: PodUid
    attempt: int
    namespace: str
    name: str
    scheduler_name: str
    node: NodeName
    # The plugin that makes the room.
    plugin: str
    others: tuple[PodReference, ...]
    victims: tuple[PodReference, ...]
    # Of each victim.
    generations: tuple[int, ...]
    stage: int = -1
    # By request that is not answered yet: the pod it is about.
    requests: dict[int, PodUid] = field(default_factory=dict)
    # Victims that others have asked to leave, without an answer yet; stands for an ordered set.
    joined: dict[PodUid, None] = field(default_factory=dict)
    # Something went wrong, so the pod is tried again at the end; a victim stayed, so it ends here.
    failed: bool = False
    stopped: bool = False
    # The last victim was only sent back to the queue: nobody will see it leave.
    last_in_memory: bool = False
    # Nothing more is asked for it.
    is_answered: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether something that was asked for is not answered."""
        return bool(self.requests or self.joined)

    @property
    def pod(self) -> PodReference:
        """For whom it is."""
        return PodReference(self.namespace, self.name, self.uid)

    def entry(self) -> EvictionEntry:
        """Return this as checkpoint data."""
        return EvictionEntry(
            uid=self.uid,
            attempt=self.attempt,
            namespace=self.namespace,
            name=self.name,
            scheduler_name=self.scheduler_name,
            node=self.node,
            victims=tuple((v.namespace, v.name, v.uid) for v in self.victims),
            others=tuple((v.namespace, v.name, v.uid) for v in self.others),
            stage=self.stage,
            requests=dict(self.requests),
            failed=self.failed,
            stopped=self.stopped,
            plugin=self.plugin,
            generations=self.generations,
            joined=tuple(self.joined),
            last_in_memory=self.last_in_memory,
        )

    @staticmethod
    def from_entry(entry: EvictionEntry) -> "Eviction":
        """Return what `entry` recorded."""
        eviction = Eviction(
            uid=entry.uid,
            attempt=entry.attempt,
            namespace=entry.namespace,
            name=entry.name,
            scheduler_name=entry.scheduler_name,
            node=entry.node,
            plugin=entry.plugin,
            victims=tuple(PodReference(*v) for v in entry.victims),
            others=tuple(PodReference(*v) for v in entry.others),
            generations=entry.generations or (0,) * len(entry.victims),
            stage=entry.stage,
            requests=dict(entry.requests),
            joined=dict.fromkeys(entry.joined),
            failed=entry.failed,
            stopped=entry.stopped,
            last_in_memory=entry.last_in_memory,
        )
        # Between two messages, one that waits for no answer has got them all.
        eviction.is_answered = not eviction.is_waiting
        return eviction


def reference(pod: Pod) -> PodReference:
    """Return a pod as others refer to it."""
    metadata = pod.metadata
    return PodReference(metadata.namespace, metadata.name, PodUid(metadata.uid))


def preempted(victim: PodReference, eviction: Eviction) -> RecordEvent:
    """Return the event of a victim that was deleted."""
    return _tell_victim(victim, eviction)


def in_memory(victim: PodReference, eviction: Eviction) -> RecordEvent:
    """Return the event of a victim that had no room on the API server yet."""
    return _tell_victim(victim, eviction, " (in kube-scheduler memory).")


def _tell_victim(victim: PodReference, eviction: Eviction, suffix: str = "") -> RecordEvent:
    """Return the event that tells a victim why it goes; who reads it may not know the other pod."""
    return RecordEvent(
        uid=victim.uid,
        namespace=victim.namespace,
        name=victim.name,
        attempt=eviction.attempt,
        scheduler_name=eviction.scheduler_name,
        type=EventType.NORMAL,
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {eviction.uid} on node {eviction.node}{suffix}",
        related=eviction.pod,
    )
