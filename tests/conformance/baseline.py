"""Which decisions would be others with another kube-scheduler?

    python -m tests.conformance.baseline VERSION [--show N]

Builds the oracle for that release, lets it answer the recorded scenarios and sequences, and
prints what it decides otherwise than the release they were recorded with: by family, and by
part (feasible nodes, reasons, message, scores by plugin, preemption). A report, not a test: it
exits 0 however much changes.
"""

import argparse
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import TestbedError
from tests.conformance.oracle.asking import ask, ask_sequences
from tests.conformance.oracle.building import ensure_oracle
from tests.conformance.oracle.compare import (
    MISSING,
    UNASKED,
    Decision,
    Key,
    describe,
    differing_parts,
    family_of,
    read_decisions,
    read_lines,
)
from tests.conformance.oracle.modules import pinned, release
from tests.conformance.recorded_sets import SCENARIOS, SEQUENCES, RecordedSet

_TOTAL = ""


@dataclass(slots=True)
class Changes:
    """What changed between two releases."""

    total: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    parts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, key: Key, before: Decision | None, after: Decision | None) -> list[str]:
        """Count a decision; return the parts that changed."""
        family = family_of(key[0])
        self.total[family] += 1
        parts = changed_parts(before, after)
        if parts:
            self.changed[family] += 1
            for part in parts:
                self.parts[part][family] += 1
        return parts

    def table(self) -> Iterator[str]:
        """Yield the lines of the report."""
        for family, total in self.total.items():
            parts = [f"{part} {n[family]}" for part, n in sorted(self.parts.items()) if n[family]]
            count = self.changed[family]
            yield f"{family:14} {count:6} of {total:<6} {', '.join(parts)}".rstrip()
        yield f"changed {self.changed.total()} of {self.total.total()}"
        for part, families in sorted(self.parts.items()):
            yield f"  {part}: {families.total()}"


def changed_parts(before: Decision | None, after: Decision | None) -> list[str]:
    """Return the names of the parts that changed; scores and reasons by the plugin they are of."""
    if before is None:
        return [UNASKED]
    if after is None:
        return [MISSING]
    parts = []
    for part in differing_parts(before, after):
        if part == "scores":
            parts += [f"scores.{plugin}" for plugin in _scored_otherwise(before, after)]
        elif part == "rejected":
            parts += [f"reasons.{plugin}" for plugin in _rejected_otherwise(before, after)]
        else:
            parts.append(part)
    return parts


def _scored_otherwise(before: Decision, after: Decision) -> list[str]:
    """Return the plugins whose scores changed; the total counts only where no plugin's did."""
    old, new = before.get("scores") or {}, after.get("scores") or {}
    pairs: dict[str, list[tuple[int | None, int | None]]] = defaultdict(list)
    for node in old.keys() & new.keys():
        for plugin in old[node].keys() | new[node].keys():
            pair = old[node].get(plugin), new[node].get(plugin)
            if pair[0] != pair[1]:
                pairs[plugin].append(pair)
    if len(pairs) > 1:
        pairs.pop(_TOTAL, None)
    return sorted(_named(plugin, found) for plugin, found in pairs.items()) or ["other nodes"]


def _named(plugin: str, pairs: list[tuple[int | None, int | None]]) -> str:
    """Return a plugin's name, and whether it merely gives 0 where it was not asked before."""
    name = plugin or "total"
    if all(set(pair) == {0, None} for pair in pairs):
        return f"{name} (0 or none)"
    return name


def _rejected_otherwise(before: Decision, after: Decision) -> list[str]:
    old, new = before.get("rejected") or {}, after.get("rejected") or {}
    plugins = {
        verdict["plugin"]
        for node in old.keys() | new.keys()
        if old.get(node) != new.get(node)
        for verdict in (old.get(node), new.get(node))
        if verdict is not None
    }
    return sorted(plugins)


def compare_release(oracle: Path, recorded: RecordedSet, version: str, *, show: int) -> Changes:
    """Let an oracle answer a recorded set; print the first changes and return all."""
    before = read_decisions(recorded.decisions)
    questions = read_lines(recorded.questions)
    answers = (ask_sequences if recorded.is_sequence else ask)(oracle, questions)
    after = {(decision["id"], decision["pod"]): decision for decision in answers}
    changes = Changes()
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key), after.get(key)
        parts = changes.add(key, old, new)
        if parts and show > 0:
            show -= 1
            print(f"--- {key[0]} {key[1]}: {', '.join(parts)}")
            bad = differing_parts(old, new) if old and new else parts
            print(*describe(old, new, bad, labels=(pinned().version, version)), sep="\n")
    return changes


def main() -> int:
    """Report what another release decides otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.baseline")
    parser.add_argument("version", help="of kube-scheduler, such as v1.36.4")
    parser.add_argument("--show", type=int, default=3, help="changed decisions to print of a set")
    arguments = parser.parse_args()
    try:
        wanted = release(arguments.version).version
        oracle = ensure_oracle(wanted)
        for recorded in (SCENARIOS, SEQUENCES):
            changes = compare_release(oracle, recorded, wanted, show=arguments.show)
            print(f"{recorded.name}, recorded with {pinned().version}, answered by {wanted}:")
            print(*(f"  {line}" for line in changes.table()), sep="\n", flush=True)
    except (TestbedError, subprocess.TimeoutExpired) as error:
        print(f"baseline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
