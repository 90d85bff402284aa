"""`make bench`: this scheduler, kube-scheduler and a null binder, side by side in one run.

    python -m testbed.bench [--workload NAME ...] [--nodes N] [--pods P] [--repeats R] [--full]

Every figure is the median of the repeats. The machine is shared and noisy, so schedulers take
turns: compare the lines of one table, never figures of two.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TextIO

from testbed.bench.arena import Arena, Steady
from testbed.bench.report import NULL, OURS, UPSTREAM, Outcome, as_json, table
from testbed.bench.scenarios import DEFAULT, SCENARIOS
from testbed.errors import TestbedError

_CONTESTANTS = {"ours": OURS, "kube": UPSTREAM, "null": NULL}
_BAR = 30


class Bar:
    """A line that says how far it is; one line per task where nobody looks at a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._label = ""
        self._shown = 0.0

    def show(self, label: str, done: int, total: int) -> None:
        """Show how far a task is."""
        is_new, self._label = label != self._label, label
        if not self._out.isatty():
            if is_new:
                print(label, file=self._out, flush=True)
            return
        now = time.monotonic()
        if not is_new and done < total and now - self._shown < 0.2:
            return
        self._shown = now
        if is_new:
            print(file=self._out)
        filled = _BAR * done // max(total, 1)
        bar = "#" * filled + "." * (_BAR - filled)
        self._out.write(f"\r{label:60.60} [{bar}] {done}/{total}\033[K")
        self._out.flush()


def main(arguments: list[str]) -> int:
    """Run; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats}: at least one run is needed")
    if options.rate < 0 or options.steady_seconds < 0:
        parser.error("--rate and --steady-seconds can't be negative; 0 leaves steady arrival out")
    names = tuple(SCENARIOS) if options.full else tuple(options.workload or DEFAULT)
    steady = None
    if options.rate and options.steady_seconds:
        steady = Steady(options.rate, options.steady_seconds)
    bar = Bar(sys.stderr)
    outcomes: list[Outcome] = []
    try:
        for name in names:
            scenario = SCENARIOS[name]
            spare = 0 if steady is None else steady.pods
            counts = scenario.counts(options.nodes, options.pods, spare=spare)
            chosen = [_CONTESTANTS[key] for key in options.only or _CONTESTANTS]
            if scenario.evicts:
                # Who only binds has nobody evicted.
                chosen = [contestant for contestant in chosen if contestant != NULL]
            arena = Arena(scenario, counts, bar.show)
            outcomes += arena.compete(chosen, repeats=options.repeats, steady=steady)
            _write(options.out, outcomes, options)
    except (TestbedError, ValueError) as error:
        print(f"\nbench: {error}", file=sys.stderr)
        return 1
    print("\n".join(("", *table(outcomes))))
    return 0 if all(_is_sound(outcome) for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--workload", action="append", choices=list(SCENARIOS))
    parser.add_argument("--full", action="store_true", help="all workloads")
    parser.add_argument("--nodes", type=int, help="as many nodes; otherwise the workload's usual")
    parser.add_argument("--pods", type=int, help="as many pods; otherwise the workload's usual")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(_CONTESTANTS))
    parser.add_argument("--rate", type=float, default=50.0, help="pods per second, steady arrival")
    parser.add_argument("--steady-seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path, help="write everything there as JSON")
    return parser


def _write(path: Path | None, outcomes: list[Outcome], options: argparse.Namespace) -> None:
    if path is not None:
        settings = {key: value for key, value in vars(options).items() if key != "out"}
        path.write_text(json.dumps(as_json(outcomes, settings), indent=1) + "\n", encoding="utf-8")


def _is_sound(outcome: Outcome) -> bool:
    """Whether all pods were placed, and where they may be; of who places blindly nobody asks."""
    placed = all(run.bound == run.pods == run.told for run in outcome.runs)
    is_right = outcome.contestant == NULL or outcome.quality is None or outcome.quality.is_sound
    return placed and is_right
