"""`k8s-scheduler evaluate`: what would be decided, for scenarios from a file."""

import sys

import click

from k8s_scheduler.app.options import EvaluationMode
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.output_files import printing


@click.command("evaluate")
@click.argument("file")
@click.option(
    "--sequence",
    "is_sequence",
    is_flag=True,
    help="FILE holds sequences: states of a cluster and the changes they live through.",
)
@click.option(
    "--evaluation",
    type=click.Choice([each.value for each in EvaluationMode]),
    default=EvaluationMode.INCREMENTAL.value,
    show_default=True,
    help="Judge again only what changed, or every pod from scratch.",
)
@click.option(
    "--show-cache",
    is_flag=True,
    help="Say in the end, on standard error, how many questions were answered from the cache.",
)
def evaluate(file: str, *, is_sequence: bool, evaluation: str, show_cache: bool) -> None:
    """Decide for the pending pods of the scenarios in FILE, and bind none of them.

    FILE has one scenario a line, as JSON, gzip or not; - is standard input. Each pending pod gives
    one line of JSON: which plugin rejected which nodes and why, every plugin's score on the
    others, and what preemption could do where none is left. docs/conformance.md has the form of
    both.

    A scenario that cannot be judged gives one line with an error, and exit code 2 in the end.
    """
    # The engine is loaded only now: --help and the other commands stay quick.
    from k8s_scheduler.simulate.evaluation import (  # noqa: PLC0415
        ScenarioEvaluation,
        evaluate_file,
    )
    from k8s_scheduler.simulate.files import InputFileError  # noqa: PLC0415

    output = sys.stdout.buffer

    def write(line: bytes) -> None:
        with printing():
            output.write(line)
            output.flush()

    engine = ScenarioEvaluation(keeps_evaluations=evaluation == EvaluationMode.INCREMENTAL)
    try:
        well = evaluate_file(file, engine, is_sequence=is_sequence, write=write, complain=_complain)
    except InputFileError as error:
        _complain(str(error))
        well = False
    if show_cache:
        _complain(engine.tally.summary())
    sys.exit(ExitCode.OK if well else ExitCode.USAGE)


def _complain(text: str) -> None:
    click.echo(text, err=True)
