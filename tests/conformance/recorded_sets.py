"""The recorded decisions of kube-scheduler, evaluated here and compared, on all cores.

Lines are dealt out to worker processes in chunks; each runs the evaluation that
`k8s-scheduler evaluate` runs.
"""

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from k8s_scheduler.simulate.evaluation import ScenarioEngine
from k8s_scheduler.simulate.files import Scenario, Sequence
from tests.conformance.oracle.compare import Decision, Key, family_of, key_of, read_lines

HERE = Path(__file__).parent
_CHUNK = 8


@dataclass(frozen=True, slots=True)
class RecordedSet:
    """Questions, and what kube-scheduler answered."""

    name: str
    questions: Path
    decisions: Path
    is_sequence: bool
    size: int


SCENARIOS = RecordedSet(
    "scenarios",
    HERE / "scenarios.jsonl.gz",
    HERE / "decisions.jsonl.gz",
    is_sequence=False,
    size=7_200,
)
SEQUENCES = RecordedSet(
    "sequences",
    HERE / "sequences.jsonl.gz",
    HERE / "sequence-decisions.jsonl.gz",
    is_sequence=True,
    size=15_779,
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One decision as it should be and as it came out."""

    key: Key
    want: Decision | None
    got: Decision | None


def compared(
    recorded: RecordedSet, *, family: str | None = None, processes: int | None = None
) -> Iterator[Compared]:
    """Yield every decision of a set, as recorded and as this scheduler decides it."""
    questions = [
        line
        for line in read_lines(recorded.questions)
        if family is None or family_of(line["id"]) == family
    ]
    asked = {line["id"] for line in questions}
    wanted = (d for d in read_lines(recorded.decisions) if question_of(d["id"]) in asked)
    return compared_with(questions, wanted, is_sequence=recorded.is_sequence, processes=processes)


def compared_with(
    questions: list[dict[str, Any]],
    decisions: Iterable[Decision],
    *,
    is_sequence: bool,
    processes: int | None = None,
) -> Iterator[Compared]:
    """Yield every decision on the questions, as given and as this scheduler decides it."""
    wanted: dict[str, dict[Key, Decision]] = defaultdict(dict)
    for decision in decisions:
        wanted[question_of(decision["id"])][key_of(decision)] = decision
    found = answered(questions, is_sequence=is_sequence, processes=processes)
    for question, answers in zip(questions, found, strict=True):
        want = wanted[question["id"]]
        got = {key_of(answer): answer for answer in answers}
        for key in [*want, *(key for key in got if key not in want)]:
            yield Compared(key, want.get(key), got.get(key))


def answered(
    questions: list[dict[str, Any]], *, is_sequence: bool, processes: int | None = None
) -> Iterator[list[dict[str, Any]]]:
    """Yield the answers to each question, in their order."""
    work = [(line, is_sequence) for line in questions]
    count = processes or os.cpu_count() or 1
    if count == 1:
        yield from map(_answer, work)
        return
    # Started anew: a fork would carry the threads' locks of whoever runs the tests.
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        yield from pool.imap(_answer, work, chunksize=_CHUNK)


_EVALUATIONS: list[ScenarioEngine] = []


def _answer(work: tuple[dict[str, Any], bool]) -> list[dict[str, Any]]:
    """Answer one question, in whatever process this is."""
    if not _EVALUATIONS:
        _EVALUATIONS.append(ScenarioEngine())
    evaluation = _EVALUATIONS[0]
    line, is_sequence = work
    if is_sequence:
        return list(evaluation.sequence(msgspec.convert(line, Sequence)))
    return list(evaluation.scenario(msgspec.convert(line, Scenario)))


def question_of(scenario: str) -> str:
    """Return the scenario or, of a step, the sequence."""
    return scenario.partition("/")[0]
