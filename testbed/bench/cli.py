"""`make bench`: this scheduler, kube-scheduler and a null binder, side by side in one run.

    python -m testbed.bench [--workload NAME ...] [--nodes N] [--pods P] [--repeats R] [--full]
                            [--out FILE.json] [--plots FOLDER]

Every figure is the median of the repeats. The machine is shared and noisy, so schedulers take
turns: compare the lines of one table, never figures of two.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from testbed.bench.arena import Arena, Steady
from testbed.bench.plots import write_plots
from testbed.bench.provenance import provenance
from testbed.bench.report import NULL, OURS, UPSTREAM, Outcome, as_json, table
from testbed.bench.scenarios import DEFAULT, SCENARIOS, Counts, Scenario
from testbed.errors import TestbedError

CONTESTANTS = {"ours": OURS, "kube": UPSTREAM, "null": NULL}
# Five workloads with three repeats then end in under 20 minutes on two cores. Where pods have
# constraints, it is kube-scheduler's turns that take the time.
PODS = 1500
_SETTINGS = ("workload", "full", "nodes", "pods", "repeats", "only", "rate", "steady_seconds")
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
    outcomes: list[Outcome] = []
    began = time.monotonic()
    try:
        plan = matches(options, lambda note: print(f"bench: {note}", file=sys.stderr))
        origin = provenance()
        for outcome in _outcomes(plan, options.repeats):
            outcomes += outcome
            took = time.monotonic() - began
            settings = {key: value for key, value in vars(options).items() if key in _SETTINGS}
            found = as_json(outcomes, settings, origin, took=took)
            if options.out is not None:
                options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            if options.plots is not None:
                list(write_plots(found, options.plots))
    except (TestbedError, ValueError, OSError) as error:
        print(f"\nbench: {error}", file=sys.stderr)
        return 1
    print("\n".join(("", *table(outcomes))))
    print(f"It took {(time.monotonic() - began) / 60:.1f} minutes.")
    return 0 if all(_is_sound(outcome) for outcome in outcomes) else 1


@dataclass(frozen=True, slots=True)
class Match:
    """One workload as it is to be run."""

    scenario: Scenario
    counts: Counts
    contestants: tuple[str, ...]
    steady: Steady | None


def matches(options: argparse.Namespace, say: Callable[[str], None]) -> list[Match]:
    """Return what is to be run, before anything is; ValueError if a workload has no room."""
    names = options.workload or (tuple(SCENARIOS) if options.full else DEFAULT)
    return [_match(SCENARIOS[name], options, say) for name in names]


def _match(scenario: Scenario, options: argparse.Namespace, say: Callable[[str], None]) -> Match:
    steady = None
    # Where each pod needs a node for itself, there is none left for those that would arrive.
    if options.rate and options.steady_seconds and not scenario.evicts_all:
        steady = Steady(options.rate, options.steady_seconds)
    pods = options.pods
    if pods is None:
        pods = scenario.pods if options.full else min(PODS, scenario.pods)
    spare = 0 if steady is None else steady.pods
    counts = scenario.counts(options.nodes, pods, spare=spare)
    if counts.pods < pods:
        say(
            f"{scenario.name}: {counts.pods} pods instead of {pods}: {counts.nodes} nodes have no "
            f"room for more beside {spare} that arrive later (--steady-seconds)"
        )
    chosen = tuple(CONTESTANTS[key] for key in options.only or CONTESTANTS)
    if scenario.evicts:
        # Who only binds has nobody evicted.
        chosen = tuple(contestant for contestant in chosen if contestant != NULL)
    return Match(scenario, counts, chosen, steady)


def _outcomes(plan: Sequence[Match], repeats: int) -> Iterator[list[Outcome]]:
    """Yield what came of each workload; TestbedError if one can't be run."""
    bar = Bar(sys.stderr)
    for number, match in enumerate(plan, start=1):
        progress = partial(_show, bar, f"[{number}/{len(plan)}]")
        arena = Arena(match.scenario, match.counts, progress)
        yield arena.compete(match.contestants, repeats=repeats, steady=match.steady)


def _show(bar: Bar, place: str, label: str, done: int, total: int) -> None:
    bar.show(f"{place} {label}", done, total)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--workload", action="append", choices=list(SCENARIOS))
    parser.add_argument(
        "--full", action="store_true", help="all workloads, with scheduler_perf's numbers of pods"
    )
    parser.add_argument("--nodes", type=int, help="as many nodes; otherwise the workload's usual")
    parser.add_argument("--pods", type=int, help=f"as many pods; otherwise {PODS}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(CONTESTANTS))
    parser.add_argument("--rate", type=float, default=50.0, help="pods per second, steady arrival")
    parser.add_argument("--steady-seconds", type=float, default=15.0)
    parser.add_argument("--out", type=Path, help="write everything there as JSON")
    parser.add_argument("--plots", type=Path, help="draw the figures into this folder")
    return parser


def _is_sound(outcome: Outcome) -> bool:
    """Whether all pods were placed, and where they may be; of who places blindly nobody asks."""
    placed = all(run.bound == run.pods for run in outcome.runs)
    if outcome.contestant == OURS:
        placed = placed and all(run.told == run.pods for run in outcome.runs)
    is_right = outcome.contestant == NULL or outcome.quality is None or outcome.quality.is_sound
    return placed and is_right
