"""Telling a core again what another one was told, and watching it decide.

    header ──► the same core ──► messages, one by one ──► decisions, beside what was decided then

The core is the daemon's, built from what the header says, and nothing else comes in: so it decides
the same, or there is a fault to be found, and the first message where it decides otherwise is
where to look. Decisions are seen as they are made, one at a time, although many are made on one
message: each is made on the state that the one before it left.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.inspection import QueuedPod
from k8s_scheduler.core.messages.answers import InstructionSummary, summaries_of
from k8s_scheduler.core.messages.checkpoint import Checkpoint
from k8s_scheduler.core.messages.incoming import Message
from k8s_scheduler.core.messages.outgoing import EventType, Instruction, RecordEvent
from k8s_scheduler.core.messages.recording import Entry, Segment
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.obs.metrics import Metrics, SchedulerMetrics
from k8s_scheduler.simulate.decision_records import Decision, SeenVersions
from k8s_scheduler.simulate.recorded_setup import core_of


@dataclass(frozen=True, slots=True)
class Moment:
    """A decision that is about to be made, and a way to see the state it is made on."""

    number: int
    queued: QueuedPod
    profile: ResolvedProfile
    snapshot: Callable[[], Checkpoint]


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A message on which something else was decided than when it was recorded."""

    segment: str
    message: int
    kind: str
    recorded: tuple[InstructionSummary, ...]
    replayed: tuple[InstructionSummary, ...]

    def text(self) -> str:
        """Return what differs, for people."""
        lines = [
            f"message {self.message} of {self.segment} ({self.kind}) is decided otherwise:",
            *(
                f"  recorded only: {summary}"
                for summary in self.recorded
                if summary not in self.replayed
            ),
            *(
                f"  replayed only: {summary}"
                for summary in self.replayed
                if summary not in self.recorded
            ),
        ]
        if len(lines) == 1:
            lines.append("  the same, in another order or number")
        return "\n".join(lines)


class CoreFailedError(Exception):
    """The core raised: what it was told brought it down, perhaps as it did when recorded."""


# Told of each decision before it is made.
Onlooker: TypeAlias = Callable[[Moment], None]


@dataclass(slots=True)
class _Open:
    """A decision that is being made."""

    number: int
    queued: QueuedPod
    nominated: str | None
    attempt: int
    node: NodeName | None = None


@dataclass(slots=True)
class Replay:
    """Goes through segments; `differences` and counts are those of all of them so far."""

    onlooker: Onlooker = lambda _moment: None
    decisions: int = 0
    messages: int = 0
    answers: int = 0
    differences: list[ReplayDifference] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    # They are not read here.
    _metrics: SchedulerMetrics = field(default_factory=lambda: Metrics().scheduler)

    def segment(self, name: str, segment: Segment) -> Iterator[Decision]:
        """Yield the decisions of a segment; raises RecordingError and CoreFailedError."""
        core: Scheduler = core_of(
            segment.header,
            metrics=self._metrics,
            witness=lambda queued: self._witness(core, queued),
        )
        seen = SeenVersions()
        for index, entry in enumerate(segment.entries()):
            seen.take(entry.message)
            seen.reach(entry.versions)
            instructions = self._told(core, entry.message, name=name, index=index)
            self._compare(entry, instructions, name=name, index=index)
            yield from self._closed(
                core, instructions, seen=seen, segment=name, index=index, now=entry.message.now
            )

    def _told(
        self, core: Scheduler, message: Message, *, name: str, index: int
    ) -> list[Instruction]:
        self.messages += 1
        try:
            return core.handle(message)
        except Exception as error:
            raise CoreFailedError(
                f"message {index} of {name} ({type(message).__name__}) makes the core fail: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _witness(self, core: Scheduler, queued: QueuedPod) -> None:
        self._settle(core)
        pod = queued.pod
        nominated = pod.status.nominated_node_name or None
        self._open.append(_Open(self.decisions, queued, nominated, queued.attempts))
        # By what is in force now: a reload may have come since the header was written.
        name = pod.spec.scheduler_name
        profile = next(p for p in core.setup.profiles if p.scheduler_name == name)
        self.onlooker(Moment(self.decisions, queued, profile, core.snapshot))
        self.decisions += 1

    def _settle(self, core: Scheduler) -> None:
        """Note where the last decision has put its pod, before something else moves it."""
        if self._open:
            last = self._open[-1]
            last.node = core.node_of(last.queued.uid)

    def _closed(
        self,
        core: Scheduler,
        instructions: Iterable[Instruction],
        *,
        seen: SeenVersions,
        segment: str,
        index: int,
        now: float,
    ) -> Iterator[Decision]:
        if not self._open:
            return
        self._settle(core)
        failures = {
            (i.uid, i.attempt): i.note
            for i in instructions
            if isinstance(i, RecordEvent) and i.type is EventType.WARNING
        }
        made, self._open = self._open, []
        for each in made:
            pod = each.queued.pod
            uid = PodUid(pod.metadata.uid)
            yield Decision(
                number=each.number,
                segment=segment,
                message=index,
                now=now,
                uid=uid,
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                scheduler_name=pod.spec.scheduler_name,
                attempt=each.attempt,
                node=each.node,
                failure="" if each.node else failures.get((uid, each.attempt), ""),
                nominated=each.nominated,
                seen=seen.now(),
            )

    def _compare(
        self, entry: Entry, instructions: Iterable[Instruction], *, name: str, index: int
    ) -> None:
        if entry.summaries is None:
            # The recording ends with this message: whether it was answered is not known.
            return
        summaries = summaries_of(instructions)
        if summaries != entry.summaries:
            kind = type(entry.message).__name__
            self.differences.append(ReplayDifference(name, index, kind, entry.summaries, summaries))
        elif summaries:
            self.answers += 1
