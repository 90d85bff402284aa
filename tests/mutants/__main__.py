"""Mutants: one token of the package changed by chance, and whether the tests notice.

    python -m tests.mutants --count 20 --seed 1
    python -m tests.mutants --only k8s_scheduler/core/queue --count 5
    python -m tests.mutants --only k8s_scheduler/core/queue/backoff.py:31

Prints one line for each mutant and, at the end, those that no test found. A survivor is either a
test that is missing or a change without effect; that takes a reader to tell. A seed gives the same
mutants again as long as the sources stay the same.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tests.mutants.mutations import Mutation, mutations_of
from tests.mutants.trying import Tree, Trial, stages_for

ROOT = Path(__file__).parents[2]
_PACKAGES = ("k8s_scheduler/core", "k8s_scheduler/kube")


def draw(places: Sequence[str], count: int, seed: int) -> list[Mutation]:
    """Return mutations drawn from all that are possible in files, folders, or single lines."""
    known = [mutation for place in places for mutation in _possible(place)]
    random.Random(seed).shuffle(known)
    return list(islice(filter(Mutation.compiles, known), count))


def _possible(place: str) -> list[Mutation]:
    name, _, line = place.partition(":")
    found = ROOT / name
    return [
        mutation
        for path in ([found] if found.is_file() else sorted(found.rglob("*.py")))
        for mutation in mutations_of(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        if not line or mutation.line == int(line)
    ]


def main() -> int:
    """Try mutants until all are judged."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=_PACKAGES, help="file, folder or file:line")
    parser.add_argument("--minutes", type=float, default=10.0, help="at most, for each mutant")
    arguments = parser.parse_args()
    drawn = draw(arguments.only, arguments.count, arguments.seed)
    survivors = []
    with Tree(ROOT) as tree:
        trial = Trial(tree, seconds=60 * arguments.minutes)
        for number, mutation in enumerate(drawn, start=1):
            outcome = trial.judge(mutation, stages_for(mutation.path, ROOT))
            print(f"{number:4}  {outcome:40}  {mutation}", flush=True)
            if not outcome.is_found:
                survivors.append(mutation)
    print(f"seed {arguments.seed}: {len(drawn)} mutants, {len(survivors)} not found")
    for mutation in survivors:
        print(f"\n{mutation.path}:{mutation.line}\n{mutation.difference()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
