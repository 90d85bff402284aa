"""`k8s-scheduler shadow`: how another scheduler's bindings look to this one. Binds nothing."""

import logging
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import click

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.types import ResolvedProfile, SchedulerConfiguration
from k8s_scheduler.app.configuration.interpretation import load, log_warnings
from k8s_scheduler.app.options import ConfigurationFlags, RunOptions
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.shadow.options import ShadowOptions, UnknownProfileError, following_profiles
from k8s_scheduler.cli.flags import GoDuration, Share
from k8s_scheduler.cli.serving_flags import (
    check_serving,
    end_at_once,
    memory_options,
    serving_options,
    take_process,
)

logger = logging.getLogger(__name__)

_FILE = click.Path(path_type=Path)


@click.command("shadow")
@click.option("--config", "config_file", help="Configuration file, as of run.")
@click.option(
    "--kubeconfig",
    help="Kubeconfig file; without one, in-cluster credentials, or else kubectl's: $KUBECONFIG, "
    "~/.kube/config.",
)
@click.option(
    "--scheduler-name",
    "scheduler_names",
    metavar="NAME[=PROFILE]",
    multiple=True,
    show_default="every profile's own name",
    help="A scheduler to follow, and the profile that judges it; may be given several times.",
)
@click.option(
    "--latency",
    "latency_seconds",
    type=GoDuration(may_be_negative=False),
    default="3s",
    show_default=True,
    help="How long a decision may take until its binding is seen; races are looked for within it.",
)
@click.option(
    "--percentage-of-nodes-to-score",
    type=click.IntRange(0, 100),
    default=None,
    show_default="what the profile says",
    help="What the other scheduler is configured with; 0 is its own choice by size.",
)
@click.option(
    "--sample",
    metavar="RATE",
    type=Share(),
    default=1.0,
    show_default=True,
    help="Share of bindings that are judged.",
)
@click.option("--out", type=_FILE, help="Write the final report here, as JSON.")
@click.option(
    "--for",
    "for_seconds",
    type=GoDuration(may_be_negative=False),
    default=None,
    show_default="until stopped",
    help="End after this time.",
)
@click.option("--pods", type=click.IntRange(min=1), help="End when so many bindings are judged.")
@click.option(
    "--report-every",
    "report_seconds",
    type=GoDuration(may_be_negative=False),
    default="30s",
    show_default=True,
    help="Time between two lines in the log.",
)
@memory_options
@serving_options
def shadow(**parameters: Any) -> None:
    """Judge another scheduler's bindings as they happen; bind nothing.

    Each binding is judged on the state just before it, by the engine that decides for run. The end,
    by SIGTERM or SIGINT, --for or --pods, prints a table; --out writes all of it as JSON.
    docs/beside-other-schedulers.md says how to read it.
    """
    signal.signal(signal.SIGTERM, end_at_once)
    file = parameters.pop("config_file")
    flags = ConfigurationFlags(
        config_file=Path(file) if file else None, kubeconfig=parameters.pop("kubeconfig") or None
    )
    names = parameters.pop("scheduler_names")
    _check(parameters)
    process = take_process(parameters)
    try:
        configuration = load(flags)
        following = following_profiles(configuration, names)
    except ConfigurationError as error:
        _refuse(str(error))
    except UnknownProfileError as error:
        _refuse(f"--scheduler-name: {error}")
    log_warnings(configuration, flags)
    if configuration.extras.node_ownership.node_selector is not None:
        _tell_of_ownership(configuration, following)
    served = ("bind_address", "secure_port", "tls_cert_file", "tls_private_key_file")
    common = (*served, "verbosity", "logging_format")
    run_options = RunOptions(
        configuration=configuration,
        configuration_flags=flags,
        **process,
        **{name: parameters.pop(name) for name in common},
    )
    from k8s_scheduler.app.shadow.process import run as run_shadow  # noqa: PLC0415  --help stays quick

    sys.exit(run_shadow(ShadowOptions(run=run_options, following=following, **parameters)))


def _check(parameters: dict[str, Any]) -> None:
    check_serving(parameters)
    if not parameters["report_seconds"]:
        raise click.UsageError("--report-every needs a time above 0")
    out = parameters["out"]
    # Not at the end, when hours of watching would be lost.
    if out is not None and (problem := _problem_with(out)):
        raise click.UsageError(f"--out {out}: {problem}")


def _problem_with(out: Path) -> str:
    """Return why a report could not be written there; empty if it can."""
    if out.is_dir():
        return "is a directory"
    if not out.parent.is_dir():
        return f"there is no directory {out.parent}"
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        return "may not be written"
    return ""


def _tell_of_ownership(
    configuration: SchedulerConfiguration, following: Iterable[ResolvedProfile]
) -> None:
    ours = {profile.scheduler_name for profile in configuration.profiles}
    others = [profile.scheduler_name for profile in following if profile.scheduler_name not in ours]
    if others:
        fields = {"schedulers": others}
        logger.info("nodeOwnership is ours and not counted for others", extra={"fields": fields})


def _refuse(text: str) -> NoReturn:
    click.echo(text, err=True)
    sys.exit(ExitCode.USAGE)
