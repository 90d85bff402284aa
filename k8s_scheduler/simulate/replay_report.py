"""Replaying the files of a recording from the first to the last, and saying what came of it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from k8s_scheduler.core.messages.recording import RecordingError, Segment
from k8s_scheduler.simulate.decision_records import Decision, time_text
from k8s_scheduler.simulate.files import Scenario
from k8s_scheduler.simulate.rebuilding import scenario_of
from k8s_scheduler.simulate.replay_files import SegmentFile
from k8s_scheduler.simulate.replaying import Moment, Replay


@dataclass(frozen=True, slots=True)
class Wanted:
    """The decision that a user asks for: by its number, or by pod and perhaps attempt."""

    text: str
    number: int | None = None
    pod: str = ""
    attempt: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Wanted":
        """Read `12`, `NAMESPACE/NAME` or `NAMESPACE/NAME@ATTEMPT`; raises ValueError."""
        if text.isdecimal() and text.isascii():
            return cls(text, number=int(text))
        pod, at, attempt = text.rpartition("@") if "@" in text else (text, "", "")
        namespace, slash, name = pod.partition("/")
        if not (namespace and slash and name) or (at and not attempt.isdecimal()):
            raise ValueError(
                f"{text!r} names no decision: write its number, NAMESPACE/NAME or "
                "NAMESPACE/NAME@ATTEMPT"
            )
        return cls(text, pod=pod, attempt=int(attempt) if attempt else None)

    def matches(self, moment: Moment) -> bool:
        if self.number is not None:
            return moment.number == self.number
        metadata = moment.queued.pod.metadata
        is_pod = f"{metadata.namespace}/{metadata.name}" == self.pod
        return is_pod and self.attempt in (None, moment.queued.attempts)


@dataclass(slots=True)
class RebuiltStates:
    """Keeps the states before the decisions that were asked for; of several, the last."""

    wanted: tuple[Wanted, ...]
    found: dict[Wanted, Scenario] = field(default_factory=dict)

    def look(self, moment: Moment) -> None:
        for wanted in self.wanted:
            if wanted.matches(moment):
                pod = moment.queued.pod
                name = f"{pod.metadata.namespace}/{pod.metadata.name}@{moment.queued.attempts}"
                self.found[wanted] = scenario_of(
                    name, moment.snapshot(), pod, profile=moment.profile
                )


@dataclass(slots=True)
class Account:
    """What a whole recording came to."""

    replay: Replay
    segments: int = 0
    placed: int = 0
    first: float | None = None
    last: float = 0.0

    def summary(self) -> str:
        replay = self.replay
        span = ""
        if self.first is not None:
            span = f", decided from {time_text(self.first)} to {time_text(self.last)}"
        return (
            f"{_count(replay.decisions, 'decision')}: {self.placed} with a node, "
            f"{replay.decisions - self.placed} without{span}; "
            f"{_count(replay.messages, 'message')} in {_count(self.segments, 'segment')}"
        )

    def verdict(self) -> str:
        if not self.replay.differences:
            answered = _count(self.replay.answers, "message")
            return f"decided as recorded: {answered} with instructions, all the same"
        return self.replay.differences[0].text()


def replay_recording(
    segments: Iterable[SegmentFile],
    rebuilding: RebuiltStates,
    *,
    take: Callable[[Decision], object],
    complain: Callable[[str], object],
) -> Account:
    """Replay the segments of a recording, oldest first.

    Raises InputFileError, and CoreFailedError where the core fails.
    """
    account = Account(Replay(onlooker=rebuilding.look))
    for file in segments:
        segment = file.read()
        for decision in _decisions(account.replay, file, segment):
            account.placed += decision.node is not None
            account.first = decision.now if account.first is None else account.first
            account.last = decision.now
            take(decision)
        account.segments += 1
        if not segment.is_whole:
            complain(_cut(file, segment))
    return account


def _decisions(replay: Replay, file: SegmentFile, segment: Segment) -> Iterator[Decision]:
    try:
        yield from replay.segment(file.path.name, segment)
    except RecordingError as error:
        raise file.trouble(error) from error


def _cut(file: SegmentFile, segment: Segment) -> str:
    left = segment.total_bytes - segment.read_bytes
    rest = f", {left} more are of no whole message" if left else ""
    return (
        f"{file.path}: its end is missing (the process was killed, runs still, or the file was "
        f"cut): replayed as far as it goes, {segment.read_bytes} of {segment.total_bytes} "
        f"bytes{rest}"
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
