"""`make tenants`: every row of the table, at 5,000 nodes, and what came of it.

    python -m tests.tenants [--nodes 5000] [--memory-nodes 1000] [--only TEXT] [--jobs 1]

Each row has a process of its own, forked from one that has made the world: whatever is left over
from one harm is no part of the next. Exit code 1 if a row does not hold.
"""

import argparse
import gc
import multiprocessing
import sys
import traceback
import tracemalloc
from collections.abc import Callable, Iterator

from tests.tenants.delays import DELAYING, DELAYS, delayed
from tests.tenants.table import ROWS
from tests.tenants.world import World
from tests.tenants.yardstick import Finding, cost, kept

# Where processes that are forked find it.
_worlds: list[World] = []
_HEAD = f"{'what one tenant does':64} {'longest':>8} {'others':>6} {'':11} {'memory':>6}  verdict"


def _cost(number: int) -> Finding:
    return cost(ROWS[number], *_worlds, count=ROWS[number].count)


def _kept(number: int) -> Finding:
    row = ROWS[number]
    return Finding(row.name, memory=kept(row, _worlds[0], count=row.count))


def _delay(number: int) -> Finding:
    case = list(DELAYING)[number]
    return Finding(case, delays=delayed(_worlds[0], DELAYING[case]))


def _guarded(task: tuple[Callable[[int], Finding], int]) -> Finding:
    measure, number = task
    try:
        return measure(number)
    except Exception:  # noqa: BLE001  it is shown, and the row fails
        return Finding("", error=traceback.format_exc(limit=-3))


def _each(
    measure: Callable[[int], Finding], numbers: list[int], *, nodes: int, jobs: int, worlds: int = 1
) -> Iterator[Finding]:
    """Yield a finding for each row, each from a process of its own."""
    if not numbers:
        return
    _worlds[:] = [World(nodes) for _ in range(worlds)]
    gc.collect()
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(_guarded, [(measure, number) for number in numbers], chunksize=1)
    gc.unfreeze()
    _worlds.clear()


def _say(name: str, text: str) -> None:
    print(f"{name:64} {text}", flush=True)


def _measured(numbers: list[int], arguments: argparse.Namespace) -> list[Finding]:
    findings = []
    nodes, jobs = arguments.nodes, arguments.jobs
    costs = _each(_cost, numbers, nodes=nodes, jobs=jobs, worlds=2)
    for number, found in zip(numbers, costs, strict=True):
        found.row = ROWS[number].name
        _say(found.row, f"CPU: {found}")
        findings.append(found)
    tracemalloc.start()
    measured = _each(_kept, numbers, nodes=arguments.memory_nodes, jobs=jobs)
    for finding, found in zip(findings, measured, strict=True):
        finding.memory = found.memory
        finding.error += found.error
        _say(finding.row, f"memory: {finding.memory:.2f}")
    tracemalloc.stop()
    return findings


def _delays(arguments: argparse.Namespace) -> list[Finding]:
    cases = list(DELAYING)
    numbers = [number for number, case in enumerate(cases) if arguments.only in case]
    found = _each(_delay, numbers, nodes=arguments.nodes, jobs=arguments.jobs)
    findings = []
    for number, finding in zip(numbers, found, strict=True):
        finding.row = cases[number]
        findings.append(finding)
    return findings


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.tenants")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--memory-nodes", type=int, default=1000)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    numbers = [n for n, row in enumerate(ROWS) if row.count and arguments.only in row.name]
    findings = _measured(numbers, arguments)
    delays = _delays(arguments)
    print(f"\n{_HEAD}")
    for finding in findings:
        _say(finding.row, finding.line())
    print(f"\n{'how much longer pods of others wait, in ms':64} {' '.join(DELAYS)}")
    for finding in delays:
        _say(finding.row, finding.line())
    return 1 if any(finding.failures() for finding in [*findings, *delays]) else 0


if __name__ == "__main__":
    sys.exit(main())
