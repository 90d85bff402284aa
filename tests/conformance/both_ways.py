"""Fresh random sequences, decided with kept evaluations and from scratch: no difference.

    python -m tests.conformance.both_ways SEED [COUNT] [STEPS]

No oracle is needed: this asks whether anything kept went stale, not whether it was right. Prints
the first differing decisions and, in the end, how many there were and how much was answered from
what was kept; the exit code is 1 if there was one.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from k8s_scheduler.simulate.evaluation import ScenarioEngine
from k8s_scheduler.simulate.files import Sequence
from tests.conformance.oracle.seq import sequences

_SHOWN = 3


class BothWays:
    """Decides sequences in both ways, and counts."""

    def __init__(self) -> None:
        self._keeping = ScenarioEngine()
        self._plain = ScenarioEngine(keeps_evaluations=False)
        self.decisions = 0
        self.different = 0

    def differences(self, seed: int, count: int, steps: int) -> Iterator[tuple[Any, Any]]:
        """Yield (kept, plain) wherever the two decide otherwise."""
        for line in sequences(seed, count, steps):
            sequence = msgspec.convert(line, Sequence)
            pairs = zip(
                self._keeping.sequence(sequence), self._plain.sequence(sequence), strict=True
            )
            for kept, plain in pairs:
                self.decisions += 1
                if kept != plain:
                    self.different += 1
                    yield kept, plain

    @property
    def answered_share(self) -> float:
        """How many of the questions that were asked before were answered from what was kept."""
        tally = self._keeping.tally
        return tally.answered / tally.repeated if tally.repeated else 0.0


def main() -> int:
    """Print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.both_ways")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("steps", type=int, nargs="?", default=40)
    arguments = parser.parse_args()
    both = BothWays()
    for kept, plain in both.differences(arguments.seed, arguments.count, arguments.steps):
        if both.different <= _SHOWN:
            print(f"kept  {kept}\nplain {plain}\n")
    print(
        f"{both.decisions} decisions, {both.different} different; "
        f"{both.answered_share:.1%} of what was asked again answered from what was kept"
    )
    return 1 if both.different else 0


if __name__ == "__main__":
    sys.exit(main())
