"""Compare decisions with a reference, part by part.

    python -m tests.conformance.oracle.compare ANSWERS [REFERENCE] [--show N]

Both are decision files (JSON lines, .gz or not, `-` for standard input); the reference is the
recorded decisions unless given. Prints the agreement by family and the first N disagreements, and
exits 1 unless every decision agrees.

What must agree: everything but the order of reasons and of victims, the text of an error, and
which one of several equal preemption candidates is picked.
"""

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1]
PARTS = (
    "error",
    "preFilter",
    "rejected",
    "feasible",
    "scores",
    "message",
    "preemption",
    "preemptionPicks",
    "preemptionNotEligible",
)
MISSING = "missing"
UNASKED = "unasked"

Decision = Mapping[str, Any]
Key = tuple[str, str]


def key_of(decision: Decision) -> Key:
    """Return what a decision is about: scenario and pod."""
    return decision["id"], decision.get("pod", "")


def family_of(scenario: str) -> str:
    """Return the family of a scenario or of a step of a sequence."""
    return scenario.partition("-")[0]


def normal(decision: Decision) -> dict[str, Any]:
    """Return the parts that must agree, in a comparable form."""
    return {
        "error": bool(decision.get("error")),
        "preFilter": _verdict(decision.get("preFilter")),
        "rejected": {n: _verdict(v) for n, v in (decision.get("rejected") or {}).items()},
        "feasible": sorted(decision.get("feasible") or []),
        "scores": decision.get("scores") or {},
        "message": decision.get("message", ""),
        "preemption": {
            node: (sorted(c.get("victims") or []), c.get("pdbViolations", 0))
            for node, c in (decision.get("preemption") or {}).items()
        },
        "preemptionPicks": sorted(decision.get("preemptionPicks") or []),
        "preemptionNotEligible": decision.get("preemptionNotEligible", ""),
    }


def differing_parts(want: Decision, got: Decision) -> list[str]:
    """Return the names of the parts that disagree."""
    wanted, found = normal(want), normal(got)
    return [part for part in PARTS if not _agrees(part, wanted[part], found[part])]


def _agrees(part: str, want: Any, got: Any) -> bool:
    if part == "preemptionPicks":
        return bool(want) == bool(got) and set(got) <= set(want)
    return want == got


def _verdict(verdict: Decision | None) -> tuple[str, str, list[str]] | None:
    if not verdict:
        return None
    return verdict["plugin"], verdict["code"], sorted(verdict.get("reasons") or [])


@dataclass(slots=True)
class Tally:
    """How many decisions agree, by family, and in which parts the others differ."""

    total: Counter[str] = field(default_factory=Counter)
    good: Counter[str] = field(default_factory=Counter)
    parts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, key: Key, want: Decision | None, got: Decision | None) -> list[str]:
        """Count a decision; return the parts that differ."""
        family = family_of(key[0])
        self.total[family] += 1
        if want is None:
            bad = [UNASKED]
        elif got is None:
            bad = [MISSING]
        else:
            bad = differing_parts(want, got)
        self.good[family] += not bad
        self.parts.update((family, part) for part in bad)
        return bad

    def merge(self, other: "Tally") -> None:
        """Add what another one counted."""
        self.total += other.total
        self.good.update(other.good)
        self.parts += other.parts

    @property
    def agrees(self) -> bool:
        """Whether there was something to compare and all of it agrees."""
        return bool(self.total) and self.good.total() == self.total.total()

    def table(self) -> Iterator[str]:
        """Yield the lines of a table: agreement by family and, where they differ, by part."""
        for family, total in self.total.items():
            good = self.good[family]
            bad = sorted((n, part) for (f, part), n in self.parts.items() if f == family)
            said = ", ".join(f"{part} {n}" for n, part in reversed(bad))
            yield f"{family:14} {good:6} / {total:<6} {said}".rstrip()
        yield f"agreement {self.good.total()}/{self.total.total()}"


def describe(
    want: Decision | None,
    got: Decision | None,
    parts: Iterable[str],
    *,
    labels: tuple[str, str] = ("want", "got "),
) -> Iterator[str]:
    """Yield two lines for each part that differs."""
    for part in parts:
        if part in (MISSING, UNASKED):
            yield f"  {part}"
            continue
        wanted, found = normal(want or {})[part], normal(got or {})[part]
        if isinstance(wanted, dict):
            wanted, found = _only_differing(wanted, found)
        yield f"  {labels[0]} {part}: {_compact(wanted)}"
        yield f"  {labels[1]} {part}: {_compact(found)}"
        if part == "error" and got is not None and got.get("error"):
            yield f"       {got['error']}"


def _only_differing(
    want: dict[str, Any], got: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [n for n in sorted(want.keys() | got.keys()) if want.get(n) != got.get(n)]
    first, second = {n: want.get(n) for n in names}, {n: got.get(n) for n in names}
    if all(isinstance(v, dict) for v in (*first.values(), *second.values())):
        for name in names:
            first[name], second[name] = _only_differing(first[name], second[name])
    return first, second


def _compact(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 600 else f"{text[:600]}..."


def read_decisions(path: str | Path) -> dict[Key, Decision]:
    """Return the decisions of a file by what they are about."""
    return {key_of(decision): decision for decision in read_lines(path)}


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, one a line."""
    if str(path) == "-":
        yield from (json.loads(line) for line in sys.stdin if line.strip())
        return
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def main() -> int:
    """Compare two files."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.oracle.compare",
        description="Compare decisions with a reference, part by part.",
    )
    parser.add_argument("answers")
    parser.add_argument("reference", nargs="?", default=RECORDED / "decisions.jsonl.gz")
    parser.add_argument("--show", type=int, default=5, help="how many disagreements to print")
    arguments = parser.parse_args()
    reference, answers = read_decisions(arguments.reference), read_decisions(arguments.answers)
    tally, shown = Tally(), 0
    for key in [*reference, *(key for key in answers if key not in reference)]:
        want, got = reference.get(key), answers.get(key)
        bad = tally.add(key, want, got)
        if bad and shown < arguments.show:
            shown += 1
            print(f"--- {key[0]} {key[1]}: {', '.join(bad)}")
            print(*describe(want, got, bad), sep="\n")
    print(*tally.table(), sep="\n")
    return 0 if tally.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
