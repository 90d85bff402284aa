"""Fuzzing: configurations and objects made worse by chance, and whether anything breaks.

    python -m tests.fuzz configs --count 20000 --seed 1
    python -m tests.fuzz objects --count 20000 --seed 1
    python -m tests.fuzz limits --count 2000 --seed 1 --minutes 60

Prints what was tried and the worst CPU time, keeps what broke in `.fuzz/`, and exits 1 if anything
did. A seed gives the same inputs again.
"""

import argparse
import logging
import sys
from functools import partial
from pathlib import Path

from tests.fuzz import configs, objects
from tests.fuzz.at_limits import runs
from tests.fuzz.at_limits.bytes_in_use import begin_anew_with_account

_KEEP = Path(".fuzz")
_SHOWN = 5


def main() -> int:
    """Run one of the three."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("what", choices=("configs", "objects", "limits"))
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=_KEEP, help="where failures are kept")
    parser.add_argument("--minutes", type=float, default=0.0, help="limits: end after so many")
    parser.add_argument("--only", type=int, help="limits: the number of the only case to be tried")
    arguments = parser.parse_args()
    shown = 0
    # What can't be read, and plugins that fail, are what this is about: nobody wants to read it.
    logging.disable(logging.CRITICAL)

    def keep(name: str, data: bytes, problem: str) -> None:
        nonlocal shown
        arguments.keep.mkdir(parents=True, exist_ok=True)
        (arguments.keep / name).write_bytes(data)
        (arguments.keep / f"{name}.problem").write_text(problem, encoding="utf-8")
        shown += 1
        if shown <= _SHOWN:
            print(f"--- {arguments.keep / name}\n{problem}", flush=True)

    if arguments.what == "limits":
        begin_anew_with_account()
        run = partial(runs.run, minutes=arguments.minutes, only=arguments.only)
    else:
        run = configs.run if arguments.what == "configs" else objects.run
    figures = run(arguments.seed, arguments.count, keep=keep)
    listed = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in figures.items())
    print(f"{arguments.what}, seed {arguments.seed}: {listed}")
    return 1 if figures["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
