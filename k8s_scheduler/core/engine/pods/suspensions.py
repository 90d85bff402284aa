"""Decisions that wait for extenders: at most one per profile, holding nothing.

        filtered ─▶ ask the first ─▶ (answer) ─▶ ask the next … ─▶ judge again as it is now ─▶ place
                        filter, one after the other; then prioritize

The pod is out of the queue and has no room yet. Other pods of the profile that extenders have a say
about are set aside meanwhile; all others pass it by.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.framework.extenders import SCALE, ConfiguredExtender, Opinion, refusal
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.messages.checkpoint import SuspensionEntry, as_entry
from k8s_scheduler.core.messages.incoming import ExtenderAnswer
from k8s_scheduler.core.messages.outgoing import AskExtender, Verb, attempt_at
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue


class ExtenderError(Exception):
    """An extender that can't be done without gave no answer."""


@dataclass(slots=True)
class Suspension:
    """One decision that waits."""

    queued: QueuedPod
    extenders: tuple[str, ...]
    started: float
    changes_seen: int
    allowed: tuple[NodeName, ...]
    refused: dict[NodeName, Verdict] = field(default_factory=dict)
    bonus: dict[NodeName, int] = field(default_factory=dict)
    verb: Verb = Verb.FILTER
    # How far it has come among the extenders, and which question is open.
    position: int = -1
    request: int = 0

    @property
    def opinion(self) -> Opinion:
        return Opinion(self.allowed, self.refused, self.bonus)


class Suspensions:
    """All decisions that wait, by profile."""

    def __init__(
        self, extenders: tuple[ConfiguredExtender, ...], queue: SchedulingQueue, out: Outbox
    ) -> None:
        self._extenders: Mapping[str, ConfiguredExtender] = {e.name: e for e in extenders}
        self._waiting: dict[str, Suspension] = {}
        self._queue = queue
        self._out = out

    def interested(self, pod: Pod) -> tuple[str, ...]:
        """Return the extenders that have a say about a pod; those that can fail it go first."""
        if not self._extenders:
            return ()
        found = [e for e in self._extenders.values() if e.is_interested(pod)]
        return tuple(e.name for e in sorted(found, key=lambda e: e.ignorable))

    def is_busy(self, profile: str) -> bool:
        return profile in self._waiting

    def start(self, suspension: Suspension) -> AskExtender | None:
        """Suspend a decision; None if there is nothing to ask."""
        self._waiting[suspension.queued.pod.spec.scheduler_name] = suspension
        return self._next(suspension)

    def answered(self, suspension: Suspension, answer: ExtenderAnswer) -> AskExtender | None:
        """Return the next question; None if all have been asked. Raises ExtenderError."""
        extender = self._extenders[suspension.extenders[suspension.position]]
        if answer.error:
            if suspension.verb is Verb.FILTER and not extender.ignorable:
                raise ExtenderError(answer.error)
        elif suspension.verb is Verb.FILTER:
            _take_refusals(suspension, answer)
        else:
            for name, score in answer.scores.items():
                known = suspension.bonus.get(name, 0)
                suspension.bonus[name] = known + score * extender.weight * SCALE
        return self._next(suspension)

    def suspended(self, answer: ExtenderAnswer) -> Suspension | None:
        """Return the decision that an answer belongs to; None for any other attempt."""
        suspension = self._by_uid(answer.uid)
        if suspension is None or suspension.request != answer.request:
            return None
        return suspension if suspension.queued.attempts == answer.attempt else None

    def release(self, profile: str) -> None:
        """End the suspended decision of a profile: the next one may begin."""
        self._waiting.pop(profile, None)
        self._queue.bring_back(profile)

    def drop(self, uid: PodUid) -> None:
        """Give up a suspended decision: its pod is gone, or was placed by another scheduler."""
        suspension = self._by_uid(uid)
        if suspension is not None:
            self.release(suspension.queued.pod.spec.scheduler_name)

    def take_back(self) -> None:
        """Begin all suspended decisions anew: half of each would be made by other rules."""
        taken, self._waiting = [s.queued for s in self._waiting.values()], {}
        for queued in taken:
            self._queue.set_aside(queued)
            self._queue.bring_back(queued.pod.spec.scheduler_name)

    def update(self, pod: Pod) -> None:
        """Take a newer version of a pod if its decision waits."""
        suspension = self._by_uid(PodUid(pod.metadata.uid))
        if suspension is None:
            return
        shape = suspension.queued.shape
        suspension.queued.replace_pod(pod)
        if suspension.queued.shape != shape:
            # A pod that is judged otherwise now has seen nothing of the cluster yet.
            suspension.changes_seen = -1

    def queued(self, uid: PodUid) -> QueuedPod | None:
        suspension = self._by_uid(uid)
        return None if suspension is None else suspension.queued

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([suspension.queued for suspension in self._waiting.values()])

    def __len__(self) -> int:
        return len(self._waiting)

    # Checkpoints

    def entries(self) -> tuple[SuspensionEntry, ...]:
        return tuple(map(_entry, self._waiting.values()))

    def restore(self, entry: SuspensionEntry) -> None:
        """Put a decision where a checkpoint says it was."""
        queued = QueuedPod.from_entry(entry.queued)
        self._waiting[queued.pod.spec.scheduler_name] = Suspension(
            **msgspec.structs.asdict(entry)
            | {
                "queued": queued,
                "refused": {n: refusal(text, resolvable=r) for n, text, r in entry.refused},
                "bonus": dict(entry.bonus),
                "verb": Verb(entry.verb),
            }
        )

    # Helpers

    def _next(self, suspension: Suspension) -> AskExtender | None:
        """Return the next question; None if all have been asked."""
        while suspension.allowed:
            suspension.position += 1
            if suspension.position == len(suspension.extenders):
                if suspension.verb is Verb.PRIORITIZE:
                    return None
                suspension.verb, suspension.position = Verb.PRIORITIZE, -1
                continue
            extender = self._extenders[suspension.extenders[suspension.position]]
            if extender.filters if suspension.verb is Verb.FILTER else extender.prioritizes:
                return self._ask(suspension, extender.name)
        return None

    def _ask(self, suspension: Suspension, extender: str) -> AskExtender:
        suspension.request = self._out.number()
        return AskExtender(
            **attempt_at(suspension.queued.pod, suspension.queued.attempts),
            request=suspension.request,
            extender=extender,
            verb=suspension.verb,
            nodes=suspension.allowed,
        )

    def _by_uid(self, uid: PodUid) -> Suspension | None:
        if not self._waiting:
            # As always where there are no extenders; and every pod is asked about.
            return None
        return next((s for s in self._waiting.values() if s.queued.uid == uid), None)


def _entry(suspension: Suspension) -> SuspensionEntry:
    refused = tuple(
        (node, verdict.reasons[0].text, verdict.resolvable)
        for node, verdict in suspension.refused.items()
    )
    queued = suspension.queued.entry()
    return as_entry(SuspensionEntry, suspension, queued=queued, refused=refused)


def _take_refusals(suspension: Suspension, answer: ExtenderAnswer) -> None:
    passed = frozenset(answer.nodes)
    for name in suspension.allowed:
        if name not in passed:
            final = name in answer.unresolvable
            text = answer.unresolvable.get(name) or answer.refused.get(name, "")
            suspension.refused[name] = refusal(text, resolvable=not final)
    suspension.allowed = tuple(name for name in suspension.allowed if name in passed)
