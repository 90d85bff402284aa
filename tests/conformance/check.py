"""Do the decisions made here agree with kube-scheduler's? The whole check.

    python -m tests.conformance.check [--seeds N] [--first-seed S] [--keep DIR]

First all recorded decisions, then N seeds of fresh scenarios and sequences over all families,
answered by the oracle. Prints a table for each. What differs is kept as files, one folder for each
scenario or sequence: the question, which `k8s-scheduler evaluate` reads, and both answers. Exits 1
if anything differs.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from tests.conformance.oracle.asking import ask, ask_sequences
from tests.conformance.oracle.building import ensure_oracle
from tests.conformance.oracle.compare import Decision, Tally, describe, read_lines
from tests.conformance.oracle.gen import FAMILIES, scenarios
from tests.conformance.oracle.seq import sequences
from tests.conformance.oracle.undefault import undefaulted_scenarios
from tests.conformance.recorded_sets import (
    SCENARIOS,
    SEQUENCES,
    Compared,
    compared,
    compared_with,
    question_of,
)

_KEEP = Path(".conformance")
_SHOWN = 5


@dataclass(slots=True)
class Check:
    """Counts what agrees and keeps what does not."""

    keep: Path
    differing: int = 0
    shown: int = 0
    _cases: dict[str, list[Compared]] = field(default_factory=lambda: defaultdict(list))

    def take(
        self, title: str, questions: Iterable[dict[str, Any]], decisions: Iterable[Compared]
    ) -> None:
        """Compare decisions on questions, print a table, keep the differing ones."""
        tally = Tally()
        self._cases.clear()
        for decision in decisions:
            parts = tally.add(decision.key, decision.want, decision.got)
            if not parts:
                continue
            self._cases[question_of(decision.key[0])].append(decision)
            if self.shown < _SHOWN:
                self.shown += 1
                print(f"--- {decision.key[0]} {decision.key[1]}: {', '.join(parts)}")
                print(*describe(decision.want, decision.got, parts), sep="\n")
        print(f"{title}:")
        print(*(f"  {line}" for line in tally.table()), sep="\n", flush=True)
        self.differing += tally.total.total() - tally.good.total()
        self._write(questions)

    def _write(self, questions: Iterable[dict[str, Any]]) -> None:
        if not self._cases:
            return
        for question in questions:
            decisions = self._cases.get(question["id"])
            if decisions is None:
                continue
            folder = self.keep / question["id"]
            folder.mkdir(parents=True, exist_ok=True)
            _write_lines(folder / "question.jsonl", [question])
            _write_lines(folder / "want.jsonl", [d.want for d in decisions])
            _write_lines(folder / "got.jsonl", [d.got for d in decisions])


def _write_lines(path: Path, values: Iterable[Decision | None]) -> None:
    lines = (json.dumps(value, separators=(",", ":")) for value in values if value is not None)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> int:
    """Check the recorded sets and fresh seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.check")
    parser.add_argument("--seeds", type=_count, default=3, help="how many fresh seeds")
    parser.add_argument("--first-seed", type=int, help="chosen by chance unless given")
    parser.add_argument("--scenarios", type=_count, default=10, help="of each family and seed")
    parser.add_argument("--keep", type=Path, default=_KEEP, help="where differences are kept")
    arguments = parser.parse_args()
    # The questions are random, so their seeds may be; they are printed, and can be given again.
    first = arguments.first_seed
    if first is None:
        first = random.SystemRandom().randrange(1_000, 1_000_000)
    shutil.rmtree(arguments.keep, ignore_errors=True)
    check = Check(arguments.keep)
    try:
        oracle = ensure_oracle() if arguments.seeds else None
        for recorded in (SCENARIOS, SEQUENCES):
            title = f"recorded {recorded.name}"
            check.take(title, read_lines(recorded.questions), compared(recorded))
        for seed in range(first, first + arguments.seeds):
            if oracle is not None:
                _fresh(check, oracle, seed, arguments.scenarios)
    except (TestbedError, subprocess.TimeoutExpired) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    if check.differing:
        print(f"{check.differing} decisions differ; questions and answers are in {check.keep}/")
        return 1
    print("every decision agrees")
    return 0


def _fresh(check: Check, oracle: Path, seed: int, count: int) -> None:
    questions = list(scenarios(seed, count))
    wanted = ask(oracle, questions)
    check.take(
        f"seed {seed}, scenarios", questions, compared_with(questions, wanted, is_sequence=False)
    )
    questions = list(undefaulted_scenarios(seed, count))
    wanted = ask(oracle, questions)
    check.take(
        f"seed {seed}, scenarios without the API server's defaults",
        questions,
        compared_with(questions, wanted, is_sequence=False),
    )
    questions = list(sequences(seed, len(FAMILIES)))
    wanted = ask_sequences(oracle, questions)
    check.take(
        f"seed {seed}, sequences", questions, compared_with(questions, wanted, is_sequence=True)
    )


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return count


if __name__ == "__main__":
    sys.exit(main())
