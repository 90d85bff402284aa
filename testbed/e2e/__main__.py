"""`make e2e`: runs the suite with both schedulers and prints how each fared.

Exit code 0 if every spec that passes with kube-scheduler passes with this one, 1 if one does
not, 2 if not all could be compared. Logs, JUnit reports and results stay in .e2e/.
"""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

from testbed.compiling import elapsed
from testbed.e2e.building import ensure_suite
from testbed.e2e.column import OURS, UPSTREAM, Column, Task, run_column
from testbed.e2e.suite import Choice, Outcome, Spec, rehearse
from testbed.e2e.table import reasons, shortfall, table
from testbed.errors import TestbedError

KEPT = Path(__file__).parents[2] / ".e2e"
COLUMNS = (UPSTREAM, OURS)


def main(arguments: list[str]) -> int:
    """Run what was asked for; return the exit code."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _as_interrupt)
    choice = Choice(
        seed=options.seed, limit_seconds=round(options.minutes * 60), focus=options.focus
    )
    try:
        columns, chosen = _run(choice, [options.only] if options.only else list(COLUMNS))
    except TestbedError as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"e2e: stopped; what there is so far is in {KEPT}", file=sys.stderr)
        return 130
    print(f"\n{table(columns, chosen)}")
    if told := reasons(columns):
        print(f"\nWhat did not pass, and why:\n\n{told}")
    print(f"\nlogs and reports: {KEPT}")
    return verdict(columns)


def verdict(columns: list[Column]) -> int:
    """Say how the columns compare; return the exit code."""
    if len(columns) < len(COLUMNS):
        print("one column is no comparison")
        return 0 if all(s.outcome is not Outcome.FAIL for s in columns[0].specs) else 1
    upstream, ours = columns
    passed = sum(spec.outcome is Outcome.PASS for spec in upstream.specs)
    if not passed:
        print(f"e2e: nothing passes with {UPSTREAM}: the bed is at fault", file=sys.stderr)
        return 2
    if missed := shortfall(upstream, ours):
        listed = "\n  ".join(missed)
        print(
            f"{len(missed)} of the {passed} specs that pass with {UPSTREAM} do not pass with "
            f"{OURS}:\n  {listed}"
        )
        return 1
    if not upstream.in_time:
        print(f"e2e: {UPSTREAM} needs more time than it was given (--minutes)", file=sys.stderr)
        return 2
    print(f"all {passed} specs that pass with {UPSTREAM} pass with {OURS}")
    return 0


def _run(choice: Choice, schedulers: list[str]) -> tuple[list[Column], list[str]]:
    """Run the columns side by side: the specs wait more than they work."""
    program = ensure_suite()
    KEPT.mkdir(exist_ok=True)
    chosen = rehearse(program, choice, folder=KEPT)
    print(
        f"running with {' and with '.join(schedulers)}: {len(chosen)} of the suite's specs, "
        f"seed {choice.seed}, at most {elapsed(choice.limit_seconds)}",
        flush=True,
    )
    stop = threading.Event()
    with ThreadPoolExecutor(len(schedulers), thread_name_prefix="column") as pool:
        running = [
            pool.submit(
                run_column,
                scheduler,
                Task(program=program, choice=choice, chosen=chosen, folder=KEPT / scheduler),
                on_spec=_announce(scheduler, len(chosen)),
                stop=stop,
            )
            for scheduler in schedulers
        ]
        try:
            return [column.result() for column in running], chosen
        except BaseException:
            stop.set()  # the other bed is taken down, too
            raise


def _announce(scheduler: str, total: int) -> Callable[[Spec, int], None]:
    """Return what prints a line for each spec as it ends."""

    def announce(spec: Spec, number: int) -> None:
        print(
            f"{scheduler:14} {number:2} of {total}  {spec.outcome.value} "
            f"{spec.seconds:6.1f} s  {spec.name}",
            flush=True,
        )

    return announce


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed.e2e", description=__doc__)
    parser.add_argument("--only", choices=COLUMNS, help="run one column")
    parser.add_argument("--focus", default="", help="only specs whose text matches this (regexp)")
    parser.add_argument("--minutes", type=float, default=15.0, help="limit for the specs (15)")
    parser.add_argument(
        "--seed",
        type=int,
        default=round(time.time()),
        help="the order of the specs; the time unless given",
    )
    return parser


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
