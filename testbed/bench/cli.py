"""`make bench`: this scheduler, kube-scheduler and a null binder, side by side in one run.

    python -m testbed.bench [--workload NAME ...] [--nodes N] [--pods P] [--repeats R] [--full]
                            [--out FILE.json] [--plots FOLDER]

Every figure is the median of the repeats. The machine is shared and noisy, so schedulers take
turns: compare the lines of one table, never figures of two.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from testbed.bench.arena import Arena
from testbed.bench.contestants import BatchChoice
from testbed.bench.outputs import check_file, check_folder, kept, write_json
from testbed.bench.plots import write_plots
from testbed.bench.provenance import provenance
from testbed.bench.report import NULL, OURS, RECORDED, UPSTREAM, Outcome, as_json, table
from testbed.bench.scenarios import DEFAULT, SCENARIOS, Counts, Scenario
from testbed.errors import TestbedError

CONTESTANTS = {"ours": OURS, "kube": UPSTREAM, "null": NULL}
# Only if it is asked for: recording takes CPU time, and its figures are its own.
_ON_DEMAND = {"recorded": RECORDED}
# Five workloads with three repeats then end in under 20 minutes on two cores. Where pods have
# constraints, it is kube-scheduler's turns that take the time.
PODS = 1200
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
    save = _Save(options, outcomes)
    failure = None
    try:
        check_file(options.out, "OUT")
        check_folder(options.plots, "PLOTS")
        plan = matches(options, _say)
        for line in save.places():
            _say(line)
        save.origin = provenance()
        _compete(plan, options, outcomes, save)
    except (TestbedError, ValueError, OSError) as error:
        failure = str(error)
    if failure is not None:
        # What was measured before is worth as much as without the failure.
        _try(lambda: save(failure))
    if any(outcome.runs or outcome.failures for outcome in outcomes):
        print("\n".join(("", *table(outcomes))))
        print(f"It took {save.took_seconds / 60:.1f} minutes.", *save.places(), sep="\n")
    if failure is not None:
        print(f"\nbench: {failure}", file=sys.stderr)
        return 1
    return 0 if all(outcome.is_sound for outcome in outcomes) else 1


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr)


def _try(do: Callable[[], object]) -> None:
    """Do it if it can be done: something else has failed already."""
    try:
        do()
    except OSError as error:
        _say(str(error))


class _Save:
    """Writes what there is so far, after every workload."""

    def __init__(self, options: argparse.Namespace, outcomes: Sequence[Outcome]) -> None:
        self._options = options
        self._outcomes = outcomes
        self._began = time.monotonic()
        self.origin: dict[str, Any] | None = None

    @property
    def took_seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def places(self) -> Iterator[str]:
        """Yield where it is written, or that it is not."""
        return kept({"OUT": self._options.out, "PLOTS": self._options.plots})

    def __call__(self, error: str | None = None) -> None:
        if self.origin is None:
            return
        settings = {key: value for key, value in vars(self._options).items() if key in _SETTINGS}
        found = as_json(self._outcomes, settings, self.origin, took=self.took_seconds, error=error)
        write_json(self._options.out, found)
        if self._options.plots is not None and found["outcomes"]:
            list(write_plots(found, self._options.plots))


@dataclass(frozen=True, slots=True)
class Match:
    """One workload as it is to be run."""

    scenario: Scenario
    counts: Counts
    contestants: tuple[str, ...]
    batches: tuple[BatchChoice, ...]
    # Pods per second that arrive later.
    rate: float


def matches(options: argparse.Namespace, say: Callable[[str], None]) -> list[Match]:
    """Return what is to be run, before anything is; ValueError if a workload has no room."""
    names = options.workload or (tuple(SCENARIOS) if options.full else DEFAULT)
    return [_match(SCENARIOS[name], options, say) for name in names]


def _match(scenario: Scenario, options: argparse.Namespace, say: Callable[[str], None]) -> Match:
    # Where each pod needs a node for itself, there is none left for those that would arrive.
    rate = min(options.rate, scenario.most_per_second)
    spare = 0 if scenario.evicts_all else int(rate * options.steady_seconds)
    pods = options.pods
    if pods is None:
        pods = scenario.pods if options.full else min(PODS, scenario.pods)
    counts = scenario.counts(options.nodes, pods, spare=spare)
    if (counts.pods, counts.arriving) != (pods, spare):
        say(
            f"{scenario.name}: {counts.pods} pods instead of {pods}, and {counts.arriving} that "
            f"arrive later instead of {spare} (--steady-seconds): {counts.nodes} nodes have no "
            "room for more"
        )
    known = CONTESTANTS | _ON_DEMAND
    chosen = tuple(known[key] for key in options.only or CONTESTANTS)
    if scenario.evicts:
        # Who only binds has nobody evicted.
        chosen = tuple(contestant for contestant in chosen if contestant != NULL)
    return Match(scenario, counts, chosen, tuple(options.batch), rate)


def _compete(
    plan: Sequence[Match],
    options: argparse.Namespace,
    outcomes: list[Outcome],
    save: Callable[[], None],
) -> None:
    """Run one workload after the other; `outcomes` has what there is, also after an error."""
    bar = Bar(sys.stderr)
    for number, match in enumerate(plan, start=1):
        progress = partial(_show, bar, f"[{number}/{len(plan)}]")
        arena = Arena(match.scenario, match.counts, progress)
        found = [Outcome(match.scenario.name, name, match.counts) for name in match.contestants]
        found += [
            Outcome(match.scenario.name, batch.contestant, match.counts, batch=batch)
            for batch in match.batches
        ]
        outcomes += found
        arena.compete(found, repeats=options.repeats, rate=match.rate)
        save()


def _show(bar: Bar, place: str, label: str, done: int, total: int) -> None:
    bar.show(f"{place} {label}", done, total)


def _batch(text: str) -> BatchChoice:
    try:
        return BatchChoice.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--workload", action="append", choices=list(SCENARIOS))
    parser.add_argument(
        "--full", action="store_true", help="all workloads, with scheduler_perf's numbers of pods"
    )
    parser.add_argument("--nodes", type=int, help="as many nodes; otherwise the workload's usual")
    parser.add_argument("--pods", type=int, help=f"as many pods; otherwise {PODS}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=[*CONTESTANTS, *_ON_DEMAND])
    parser.add_argument(
        "--batch",
        action="append",
        default=[],
        type=_batch,
        metavar="PODS/MS",
        help="this scheduler with another `batch` beside; may be given again",
    )
    parser.add_argument("--rate", type=float, default=50.0, help="pods per second, steady arrival")
    parser.add_argument("--steady-seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, help="write everything there as JSON")
    parser.add_argument("--plots", type=Path, help="draw the figures into this folder")
    return parser
