"""`k8s-scheduler replay`: the decisions of a recording, made again."""

import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.output_files import OutputFile, check_apart, printing

if TYPE_CHECKING:
    from k8s_scheduler.simulate.decision_records import Decision
    from k8s_scheduler.simulate.replay_report import Account, RebuiltStates


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--check",
    is_flag=True,
    help="Exit with code 1 if anything is decided otherwise than it was, and say where first.",
)
@click.option(
    "--decisions",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write a record of each decision to this file, one JSON object a line.",
)
@click.option(
    "--scenario",
    "scenarios",
    type=(str, click.Path(path_type=Path)),
    multiple=True,
    metavar="WHICH OUT",
    help="Write the state before a decision as a scenario for `evaluate`. WHICH is its number, "
    "NAMESPACE/NAME (the last decision for the pod) or NAMESPACE/NAME@ATTEMPT. May be given "
    "several times.",
)
@click.option("--alone", is_flag=True, help="Leave out FILE.1, FILE.2, ... beside FILE.")
@click.option("--quiet", is_flag=True, help="Print the summary only.")
def replay(
    file: Path,
    *,
    check: bool,
    decisions: Path | None,
    scenarios: tuple[tuple[str, Path], ...],
    alone: bool,
    quiet: bool,
) -> None:
    """Make the decisions of a recording again, and print them.

    FILE is what `run --record FILE` wrote; older segments of it (FILE.1, ...) are replayed before
    it. docs/replay.md has the form of decision records and what scenarios hold.
    """
    # The engine is loaded only now: --help and the other commands stay quick.
    from k8s_scheduler.simulate.replay_report import RebuiltStates, Wanted  # noqa: PLC0415

    try:
        asked = [(Wanted.parse(which), out) for which, out in scenarios]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--scenario") from error
    outputs = [] if decisions is None else [("--decisions", decisions)]
    _check_outputs(file, [*outputs, *((f"--scenario {which}", out) for which, out in scenarios)])
    rebuilding = RebuiltStates(tuple(dict.fromkeys(wanted for wanted, _ in asked)))
    account = _replayed(file, rebuilding, decisions=decisions, alone=alone, quiet=quiet)
    _say(account.summary())
    for wanted, out in asked:
        _write_scenario(rebuilding.found.get(wanted), wanted.text, out)
    if check:
        _say(account.verdict())
        sys.exit(ExitCode.FAILURE if account.replay.differences else ExitCode.OK)


def _check_outputs(file: Path, outputs: list[tuple[str, Path]]) -> None:
    from k8s_scheduler.simulate.replay_files import is_taken  # noqa: PLC0415

    for option, out in outputs:
        if is_taken(out, file):
            raise click.UsageError(
                f"{option} {out}: a recording, or the name of a segment of one; name another file"
            )
    check_apart(outputs)


def _replayed(
    file: Path, rebuilding: "RebuiltStates", *, decisions: Path | None, alone: bool, quiet: bool
) -> "Account":
    """Replay, and tell of each decision; ends the command where that can't be done."""
    from k8s_scheduler.simulate.files import InputFileError  # noqa: PLC0415
    from k8s_scheduler.simulate.replay_files import segments_of  # noqa: PLC0415
    from k8s_scheduler.simulate.replay_report import replay_recording  # noqa: PLC0415
    from k8s_scheduler.simulate.replaying import CoreFailedError  # noqa: PLC0415

    with ExitStack() as stack:
        records: OutputFile | None = None

        def take(decision: "Decision") -> None:
            if not quiet:
                _say(decision.line())
            if records is not None:
                records.write(msgspec.json.encode(decision) + b"\n")

        try:
            segments = segments_of(file, alone=alone, complain=_complain)
            if decisions is not None:
                # Only now: what can't be replayed must not cost an older file.
                records = stack.enter_context(OutputFile(decisions))
            return replay_recording(segments, rebuilding, take=take, complain=_complain)
        except InputFileError as error:
            _complain(str(error))
            sys.exit(ExitCode.USAGE)
        except CoreFailedError as error:
            # Not the user's mistake but ours: mending it needs the traceback.
            traceback.print_exception(error.__cause__)
            _complain(str(error))
            sys.exit(ExitCode.FAILURE)


def _write_scenario(scenario: msgspec.Struct | None, which: str, out: Path) -> None:
    if scenario is None:
        _complain(f"--scenario {which}: there is no such decision in the recording")
        sys.exit(ExitCode.USAGE)
    with OutputFile(out) as target:
        target.write(msgspec.json.encode(scenario) + b"\n")


def _say(text: str) -> None:
    with printing():
        click.echo(text)


def _complain(text: str) -> None:
    click.echo(text, err=True)
