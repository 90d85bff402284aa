"""A sample of decisions, put to kube-scheduler's own code: was the node right?

Each is rebuilt twice. By the *history*: the cluster at the versions the replica had seen, put
together by the auditor; the node has to be feasible. By the *recording*: the state that the
replica's own core had (`replay --scenario`), with all that scheduling reads; the node has to be
feasible and none may have a higher score. The first finds a core that had seen something and lost
it, the second one that judges wrongly.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from testbed.chaos.archive import read_evidence, write_lines
from testbed.chaos.evidence import Decision, Evidence, Opinion
from testbed.chaos.replays import Ask, ask_program
from testbed.chaos.scenarios import Scenario, scenario_of
from testbed.chaos.seen_worlds import seen_worlds

SAMPLE = 200
HISTORY = "history"
RECORDING = "recording"

Answers = Callable[[Iterable[Scenario]], Iterable[dict[str, Any]]]


def ask_for_opinions(folder: Path, *, answers: Answers, ask: Ask = ask_program) -> int:
    """Write what the oracle says of a sample of a run's decisions; return how many were asked."""
    evidence = read_evidence(folder)
    sample = draw_sample(evidence)
    questions = {**_by_history(evidence, sample), **_by_recording(folder, sample, ask=ask)}
    opinions = list(_opinions(sample, questions, answers))
    write_lines(folder / "opinions.jsonl", opinions)
    return len(opinions)


def draw_sample(evidence: Evidence) -> list[Decision]:
    """Return some of the decisions, by the run's seed."""
    decisions = list(evidence.decisions or ())
    draw = random.Random(f"oracle {evidence.seed}")
    return draw.sample(decisions, min(SAMPLE, len(decisions)))


def _by_history(evidence: Evidence, sample: Sequence[Decision]) -> dict[str, Scenario]:
    wanted = set(map(_name, sample))
    questions: dict[str, Scenario] = {}
    for seen in seen_worlds(evidence):
        name = f"{HISTORY} {_name(seen.decision)}"
        if _name(seen.decision) in wanted and (question := scenario_of(name, seen)) is not None:
            questions[name] = question
    return questions


def _by_recording(folder: Path, sample: Sequence[Decision], *, ask: Ask) -> dict[str, Scenario]:
    questions: dict[str, Scenario] = {}
    target = folder / "scenarios"
    target.mkdir(exist_ok=True)
    for process in sorted({decision.replica for decision in sample}):
        asked = [decision for decision in sample if decision.replica == process]
        files = {_name(each): target / f"{process}-{each.number}.jsonl" for each in asked}
        arguments = ["replay", str(folder / "record" / f"{process}.tape"), "--quiet"]
        for each in asked:
            arguments += ["--scenario", str(each.number), str(files[_name(each)])]
        ask(arguments)
        for name, file in files.items():
            if file.exists():
                question = json.loads(file.read_text(encoding="utf-8"))
                questions[f"{RECORDING} {name}"] = question | {"id": f"{RECORDING} {name}"}
    return questions


def _opinions(
    sample: Sequence[Decision], questions: dict[str, Scenario], answers: Answers
) -> Iterator[Opinion]:
    by_name = {_name(decision): decision for decision in sample}
    answered = {answer["id"]: answer for answer in answers(questions.values())}
    for name, decision in by_name.items():
        for source in (HISTORY, RECORDING):
            answer = answered.get(f"{source} {name}")
            yield Opinion(
                source=source,
                replica=decision.replica,
                namespace=decision.namespace,
                name=decision.name,
                node=decision.node,
                complaint=_complaint(decision, answer, best=source == RECORDING),
            )


def _complaint(decision: Decision, answer: dict[str, Any] | None, *, best: bool) -> str:
    """Return what is wrong with a decision; empty if it is right."""
    if answer is None:
        return "could not be rebuilt"
    if "error" in answer:
        return f"the oracle fails: {answer['error']}"
    if decision.node not in answer["feasible"]:
        return f"not feasible: {answer.get('rejected', {}).get(decision.node, 'unknown node')}"
    return _complaint_of_scores(decision, answer) if best else ""


def _complaint_of_scores(decision: Decision, answer: dict[str, Any]) -> str:
    totals = {node: scores[""] for node, scores in answer.get("scores", {}).items()}
    if decision.node not in totals:
        return "the oracle gives it no score"
    if totals[decision.node] < max(totals.values()):
        return f"scores {totals[decision.node]}, and another node {max(totals.values())}"
    return ""


def _name(decision: Decision) -> str:
    return f"{decision.replica}/{decision.number}"
