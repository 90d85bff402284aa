"""Where the decisions made here differ from the recorded ones.

    python -m tests.conformance.differences [--family F] [--limit N] [--sequence]

Prints the first differing decisions and a table of agreement by family and part; exits 1 if
anything differs.
"""

import argparse
import sys
from collections import Counter

from tests.conformance.oracle.compare import Tally, describe
from tests.conformance.recorded_sets import SCENARIOS, SEQUENCES, compared


def main() -> int:
    """Compare one recorded set."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.differences")
    parser.add_argument("--family", help="only this family (interpod, spread, ...)")
    parser.add_argument("--limit", type=int, default=5, help="differing decisions to print")
    parser.add_argument("--part", help="print only decisions that differ in this part")
    parser.add_argument("--sequence", action="store_true", help="sequences instead of scenarios")
    parser.add_argument("--processes", type=int, help="as many as there are cores, unless given")
    arguments = parser.parse_args()
    recorded = SEQUENCES if arguments.sequence else SCENARIOS
    tally, shown = Tally(), 0
    errors: Counter[str] = Counter()
    for decision in compared(recorded, family=arguments.family, processes=arguments.processes):
        parts = tally.add(decision.key, decision.want, decision.got)
        if decision.got and decision.got.get("error"):
            errors[decision.got["error"][:200]] += 1
        if parts and shown < arguments.limit and arguments.part in (None, *parts):
            shown += 1
            print(f"--- {decision.key[0]} {decision.key[1]}: {', '.join(parts)}")
            print(*describe(decision.want, decision.got, parts), sep="\n")
    for text, count in errors.most_common(10):
        print(f"{count:6} errors: {text}")
    print(*tally.table(), sep="\n")
    return 0 if tally.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
