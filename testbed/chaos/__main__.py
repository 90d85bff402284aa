"""`python -m testbed.chaos`: run, judge, report. Exit 0 without violations, 1 with, 2 misuse."""

import argparse
import signal
import sys
from functools import partial
from pathlib import Path
from types import FrameType

from testbed.chaos.archive import read_evidence
from testbed.chaos.auditor import judge
from testbed.chaos.report import render
from testbed.chaos.run import run
from testbed.errors import TestbedError
from tests.conformance.oracle.asking import ask
from tests.conformance.oracle.building import ensure_oracle

_FOLDER = Path(".chaos")


def main(arguments: list[str]) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _as_interrupt)
    folder: Path = options.audit or options.out or _FOLDER / f"seed-{options.seed}"
    try:
        if options.audit is None:
            # Before anything runs: the first time it has to be built.
            oracle = ensure_oracle()
            run(
                options.seed,
                seconds=options.minutes * 60,
                folder=folder.resolve(),
                answers=partial(ask, oracle),
                say=_say,
            )
        evidence = read_evidence(folder)
    except (TestbedError, AssertionError) as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except FileNotFoundError as error:
        print(f"chaos: {error.filename}: not there; is this the folder of a run?", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("chaos: interrupted; everything is stopped", file=sys.stderr)
        return 130
    verdict = judge(evidence)
    report = render(evidence, verdict, folder=folder)
    (folder / "report.txt").write_text(report, encoding="utf-8")
    print(f"\n{report}", end="", flush=True)
    return 1 if verdict.findings else 0


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text, flush=True)


def _minutes(text: str) -> float:
    minutes = float(text)
    if minutes <= 0:
        raise argparse.ArgumentTypeError(f"{text}: minutes are more than 0")
    return minutes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed.chaos",
        description="Two replicas, kube-scheduler and steady traffic on a real control plane, and "
        "faults by a plan that is drawn from the seed; then an auditor judges what happened.",
    )
    parser.add_argument(
        "--minutes", type=_minutes, default=3.0, help="how long things go wrong (default: 3)"
    )
    parser.add_argument("--seed", type=int, default=1, help="which plan (default: 1)")
    parser.add_argument(
        "--out", type=Path, help="folder for the evidence (default: .chaos/seed-<seed>)"
    )
    parser.add_argument(
        "--audit", type=Path, metavar="FOLDER", help="run nothing, judge an earlier run again"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
