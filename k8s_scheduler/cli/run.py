"""`k8s-scheduler run`: the daemon, with kube-scheduler's flags."""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from k8s_scheduler import __version__
from k8s_scheduler.api.field_errors import ConfigurationError
from k8s_scheduler.app.configuration import load, log_warnings
from k8s_scheduler.app.exit_codes import ExitCode
from k8s_scheduler.app.options import (
    DEFAULT_RECORD_MAX_BYTES,
    DEFAULT_SECURE_PORT,
    ConfigurationFlags,
    Evaluation,
    RunOptions,
)
from k8s_scheduler.cli.flags import GoDuration, IpAddress, Verbosity
from k8s_scheduler.cli.leader_flags import leader_election_options, take_leader_election
from k8s_scheduler.cli.refused_flags import KubeSchedulerCommand
from k8s_scheduler.obs import logging as logs

_FILE = click.Path(path_type=Path)
_SMALLEST_RECORD_BYTES = 1024 * 1024


@click.command("run", cls=KubeSchedulerCommand)
@click.option("--config", "config_file", help="Configuration file (KubeSchedulerConfiguration).")
@click.option("--kubeconfig", help="Kubeconfig file; without one, in-cluster credentials.")
@leader_election_options
@click.option(
    "--bind-address",
    type=IpAddress(),
    default="0.0.0.0",  # noqa: S104  kube-scheduler's default
    show_default=True,
    help="Address on which health and metrics are served.",
)
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_SECURE_PORT,
    show_default=True,
    help="Port on which health and metrics are served over HTTPS; 0 serves nothing.",
)
@click.option("--tls-cert-file", type=_FILE, help="Serving certificate; else a self-signed one.")
@click.option("--tls-private-key-file", type=_FILE, help="Key of the serving certificate.")
@click.option(
    "-v", "--v", "verbosity", type=Verbosity(), default=0, show_default=True, help="Log verbosity."
)
@click.option(
    "--logging-format",
    type=click.Choice(logs.FORMATS),
    default="text",
    show_default=True,
    help="Form of log lines.",
)
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "pod_max_in_unschedulable_pods_seconds",
    type=GoDuration(may_be_negative=False),
    default="5m",
    show_default=True,
    help="A pod that waits longer than this is tried again even if nothing changed.",
)
@click.option(
    "--pod-max-attempts",
    type=click.IntRange(min=1),
    default=None,
    show_default="no limit",
    help="After as many failed attempts an error is no reason to try a pod again.",
)
@click.option(
    "--kube-api-qps", type=float, help="Requests per second; ignored with --config.", default=None
)
@click.option(
    "--kube-api-burst", type=int, help="Requests at once; ignored with --config.", default=None
)
@click.option(
    "--evaluation",
    type=click.Choice([each.value for each in Evaluation]),
    default=Evaluation.INCREMENTAL.value,
    callback=lambda _context, _option, value: Evaluation(value),
    show_default=True,
    help="Judge again only what changed, or every pod from scratch.",
)
@click.option(
    "--verify-cache",
    "verified_share",
    metavar="RATE",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of decisions that are made again from scratch; a difference is logged.",
)
@click.option(
    "--cache-comparison-interval",
    "cache_comparison_seconds",
    type=GoDuration(may_be_negative=False),
    default="30m",
    show_default=True,
    help="How often the caches are compared with the API server; 0 only on SIGUSR2.",
)
@click.option(
    "--hang-timeout",
    "hang_seconds",
    type=GoDuration(may_be_negative=False),
    default="60s",
    show_default=True,
    help="A process whose event loop stands still for so long writes its stacks and ends; 0 never.",
)
@click.option("--record", "record_file", type=_FILE, help="Record every input of the core here.")
@click.option(
    "--record-max-bytes",
    type=click.IntRange(min=_SMALLEST_RECORD_BYTES),
    default=None,
    show_default=str(DEFAULT_RECORD_MAX_BYTES),
    help="Size at which the recording is rotated.",
)
@click.version_option(__version__, prog_name="k8s-scheduler", message="%(prog)s %(version)s")
def run(**parameters: Any) -> None:
    """Schedule pods until told to stop."""
    # Nothing is under way yet; in a container there is no default that would end us.
    signal.signal(signal.SIGTERM, _end_at_once)
    flags = ConfigurationFlags(
        config_file=_path(parameters.pop("config_file")),
        kubeconfig=parameters.pop("kubeconfig") or None,
        kube_api_qps=parameters.pop("kube_api_qps"),
        kube_api_burst=parameters.pop("kube_api_burst"),
        leader_election=take_leader_election(parameters),
    )
    _check(parameters)
    logs.configure(parameters["logging_format"], parameters["verbosity"])
    try:
        configuration = load(flags)
    except ConfigurationError as error:
        click.echo(str(error), err=True)
        sys.exit(ExitCode.USAGE)
    log_warnings(configuration, flags)
    options = RunOptions(
        configuration=configuration,
        configuration_flags=flags,
        **parameters,
    )
    from k8s_scheduler.app.lifecycle import run as run_daemon  # noqa: PLC0415  --help stays quick

    sys.exit(run_daemon(options))


def _end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(ExitCode.OK)


def _check(parameters: dict[str, Any]) -> None:
    """Refuse flags that make sense only together, and put the defaults of the others in."""
    if bool(parameters["tls_cert_file"]) != bool(parameters["tls_private_key_file"]):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
    if parameters["record_max_bytes"] is None:
        parameters["record_max_bytes"] = DEFAULT_RECORD_MAX_BYTES
    elif parameters["record_file"] is None:
        raise click.UsageError("--record-max-bytes needs --record")


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
