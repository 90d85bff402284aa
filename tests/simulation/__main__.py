"""Runs seeds and says what came of them.

python -m tests.simulation --seeds 1000 --first-seed 1 --jobs 2
python -m tests.simulation --seeds 1 --first-seed 4711 --verbose     # one run, with its trace
python -m tests.simulation --seeds 200 --planted lost_delete         # with a bug put in
"""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.batches import Batch, run_seeds
from tests.simulation.planted import PLANTS
from tests.simulation.run import Result


def main() -> int:
    """Run what the command line asks for; 1 if any rule was broken."""
    arguments = _arguments()
    began = time.monotonic()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    summary = Summary()
    batch = Batch(seeds, arguments.verbose, arguments.planted)
    for result in run_seeds(batch, jobs=arguments.jobs):
        summary.take(result, verbose=arguments.verbose)
    summary.print(time.monotonic() - began)
    return 1 if summary.broken else 0


class Summary:
    """What came of many seeds."""

    def __init__(self) -> None:
        self.seeds = 0
        self.broken: list[int] = []
        self._virtual_seconds = 0.0
        self._cpu_seconds = 0.0
        self._faults: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def take(self, outcome: tuple[Result, float], *, verbose: bool) -> None:
        """Add a result; say at once what was broken in it."""
        result, cpu_seconds = outcome
        self.seeds += 1
        self._virtual_seconds += result.virtual_seconds
        self._cpu_seconds += cpu_seconds
        self._faults.update(result.faults)
        self._counts.update(result.counts)
        if verbose:
            print(*result.lines, f"trace {result.trace}", sep="\n")  # noqa: T201
        if result.violations:
            self.broken.append(result.seed)
            print(f"seed {result.seed} broke {len(result.violations)} rule(s):")  # noqa: T201
            for violation in result.violations:
                print(f"  {violation}")  # noqa: T201
            print(f"  again with: {result.replay}", flush=True)  # noqa: T201

    def print(self, wall_seconds: float) -> None:
        """Print the whole."""
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self._faults.items()))
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self._counts.items()))
        each = 1000 * self._cpu_seconds / max(self.seeds, 1)
        cpu = f"{self._cpu_seconds:.0f} s, {each:.0f} ms per seed"
        lines = (
            f"seeds            {self.seeds}",
            f"virtual time     {self._virtual_seconds / 3600:.1f} h",
            f"CPU              {cpu} ({wall_seconds:.0f} s by the clock)",
            f"faults injected  {sum(self._faults.values())}: {faults}",
            f"what happened    {counts}",
            f"violations       {len(self.broken)} seed(s)"
            + (f": {self.broken}" if self.broken else ""),
        )
        print(*lines, sep="\n", flush=True)  # noqa: T201


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=_positive, default=200, help="how many (200)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--jobs", type=_positive, default=1, help="processes at a time (1)")
    parser.add_argument("--verbose", action="store_true", help="print every step of every run")
    parser.add_argument("--planted", choices=sorted(PLANTS), default="", help="put a bug in")
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
