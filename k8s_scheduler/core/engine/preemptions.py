"""Preemptions that are carried out: for which pods, who has to leave, how far each has come.

Several may be for one pod: a late answer to an earlier attempt holds back nothing that sees it has
worked. What moves them on is `preemption.evictions`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.messages.checkpoint import PreemptionEntry, as_entry
from k8s_scheduler.core.messages.incoming import RequestResult
from k8s_scheduler.core.messages.outgoing import PodAttempt, PodReference


@dataclass(slots=True, eq=False)
class OngoingPreemption:
    """Room that is made for one pod, in one attempt."""

    uid: PodUid
    attempt: int
    namespace: str
    name: str
    scheduler_name: str
    node: NodeName
    # The plugin that makes the room.
    plugin: str
    # Less important pods that were promised room on the node.
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
    # The last victim was only sent back to the queue: the watch will not show it leaving.
    last_in_memory: bool = False
    # Nothing more is asked for it.
    is_answered: bool = False

    @property
    def is_waiting(self) -> bool:
        return bool(self.requests or self.joined)

    @property
    def pod(self) -> PodReference:
        return PodReference(self.namespace, self.name, self.uid)

    @property
    def about(self) -> PodAttempt:
        return PodAttempt(
            uid=self.uid, namespace=self.namespace, name=self.name, attempt=self.attempt
        )

    def entry(self) -> PreemptionEntry:
        return as_entry(
            PreemptionEntry,
            self,
            victims=tuple(map(msgspec.structs.astuple, self.victims)),
            others=tuple(map(msgspec.structs.astuple, self.others)),
            joined=tuple(self.joined),
        )

    @staticmethod
    def from_entry(entry: PreemptionEntry) -> "OngoingPreemption":
        found = OngoingPreemption(
            **msgspec.structs.asdict(entry)
            | {
                "victims": tuple(PodReference(*v) for v in entry.victims),
                "others": tuple(PodReference(*v) for v in entry.others),
                "generations": entry.generations or (0,) * len(entry.victims),
                "requests": dict(entry.requests),
                "joined": dict.fromkeys(entry.joined),
            }
        )
        # Between two messages, one that waits for no answer has got them all.
        found.is_answered = not found.is_waiting
        return found


class Preemptions:
    """All of them, by the pod they are for and by victim."""

    def __init__(self) -> None:
        self._by_pod: dict[PodUid, list[OngoingPreemption]] = {}
        self._by_victim: dict[PodUid, list[OngoingPreemption]] = {}
        # Victims that were asked to leave without an answer yet, and those of which the server has
        # said that they leave and the watch has not. Dicts stand for ordered sets.
        self.asked: dict[PodUid, None] = {}
        self.granted: dict[PodUid, None] = {}

    def of(self, uid: PodUid) -> Iterable[OngoingPreemption]:
        return self._by_pod.get(uid, ())

    def of_victim(self, uid: PodUid) -> list[OngoingPreemption]:
        return list(self._by_victim.get(uid, ()))

    def of_answer(self, result: RequestResult) -> OngoingPreemption | None:
        return next((p for p in self.of(result.uid) if result.request in p.requests), None)

    def add(self, preemption: OngoingPreemption) -> None:
        self._by_pod.setdefault(preemption.uid, []).append(preemption)
        for victim in preemption.victims:
            self._by_victim.setdefault(victim.uid, []).append(preemption)

    def remove(self, preemption: OngoingPreemption) -> None:
        _take_out(self._by_pod, preemption.uid, preemption)
        for victim in preemption.victims:
            _take_out(self._by_victim, victim.uid, preemption)

    def __iter__(self) -> Iterator[OngoingPreemption]:
        return (preemption for found in self._by_pod.values() for preemption in found)

    # Checkpoints

    def entries(self) -> tuple[PreemptionEntry, ...]:
        return tuple(preemption.entry() for preemption in self)

    def restore(self, entries: Iterable[PreemptionEntry], granted: Iterable[PodUid]) -> None:
        for preemption in map(OngoingPreemption.from_entry, entries):
            self.add(preemption)
            asked = set(preemption.requests.values())
            self.asked |= dict.fromkeys(v.uid for v in preemption.victims if v.uid in asked)
        self.granted |= dict.fromkeys(granted)


def _take_out(
    lists: dict[PodUid, list[OngoingPreemption]], uid: PodUid, preemption: OngoingPreemption
) -> None:
    found = lists[uid]
    found.remove(preemption)
    if not found:
        del lists[uid]
