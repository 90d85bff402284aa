"""`k8s-scheduler run`: the daemon, with kube-scheduler's flags."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from k8s_scheduler import __version__
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.interpretation import log_warnings
from k8s_scheduler.app.options import (
    DEFAULT_RECORD_MAX_BYTES,
    ConfigurationFlags,
    EvaluationMode,
    RunOptions,
)
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.flags import ConfigMapReference, GoDuration, Share
from k8s_scheduler.cli.leader_flags import leader_election_options, take_leader_election
from k8s_scheduler.cli.refused_flags import KubeSchedulerCommand
from k8s_scheduler.cli.serving_flags import (
    check_serving,
    end_at_once,
    memory_options,
    serving_options,
    take_process,
)

if TYPE_CHECKING:
    from k8s_scheduler.app.configuration.initial import Start

_FILE = click.Path(path_type=Path)
_SMALLEST_RECORD_BYTES = 1024 * 1024
# The loop is seen to turn once in this time; less would end a process with which nothing is wrong.
_SHORTEST_HANG_SECONDS = 1


@click.command("run", cls=KubeSchedulerCommand)
@click.option("--config", "config_file", help="Configuration file (KubeSchedulerConfiguration).")
@click.option(
    "--config-map",
    type=ConfigMapReference(with_key=True),
    help="ConfigMap with the configuration, read and watched through the API server.",
)
@click.option(
    "--last-good-config-map",
    "last_good",
    type=ConfigMapReference(with_key=False),
    help="ConfigMap in which the last good configuration is kept, to start with if need be.",
)
@click.option(
    "--kubeconfig",
    help="Kubeconfig file; without one, in-cluster credentials. $KUBECONFIG is not looked at.",
)
@leader_election_options
@serving_options
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
    type=click.Choice([each.value for each in EvaluationMode]),
    default=EvaluationMode.INCREMENTAL.value,
    callback=lambda _context, _option, value: EvaluationMode(value),
    show_default=True,
    help="Judge again only what changed, or every pod from scratch.",
)
@click.option(
    "--verify-cache",
    "verified_share",
    metavar="RATE",
    type=Share(),
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
    type=GoDuration(may_be_negative=False, least_or_never_seconds=_SHORTEST_HANG_SECONDS),
    default="60s",
    show_default=True,
    help="A process whose event loop stands still for so long writes its stacks and ends; 0 never.",
)
@memory_options
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
    signal.signal(signal.SIGTERM, end_at_once)
    # What these ask for is done at a start anyway; their default would end us.
    for number in (signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, _take_no_notice)
    _check(parameters)
    flags = ConfigurationFlags(
        config_file=_path(parameters.pop("config_file")),
        config_map=_placed(parameters.pop("config_map"), "--config-map"),
        last_good=_placed(parameters.pop("last_good"), "--last-good-config-map"),
        pod_name=os.environ.get("POD_NAME", ""),
        pod_namespace=os.environ.get("POD_NAMESPACE", ""),
        kubeconfig=parameters.pop("kubeconfig") or None,
        kube_api_qps=parameters.pop("kube_api_qps"),
        kube_api_burst=parameters.pop("kube_api_burst"),
        leader_election=take_leader_election(parameters),
    )
    if flags.config_map and flags.last_good and flags.config_map.is_in_same_map(flags.last_good):
        raise click.UsageError("--config-map and --last-good-config-map name the same ConfigMap")
    process = take_process(parameters)
    start = _start(flags)
    log_warnings(start.configuration, flags)
    options = RunOptions(
        configuration=start.configuration,
        configuration_flags=flags,
        configuration_text=start.text,
        configuration_refused=start.refused,
        **process,
        **parameters,
    )
    from k8s_scheduler.app.lifecycle import run as run_daemon  # noqa: PLC0415  --help stays quick

    sys.exit(run_daemon(options))


def _start(flags: ConfigurationFlags) -> "Start":
    from k8s_scheduler.app.configuration.initial import StartError, load_start  # noqa: PLC0415  see above
    from k8s_scheduler.kube.errors import CredentialsError, KubeError  # noqa: PLC0415

    try:
        return load_start(flags)
    except (ConfigurationError, StartError) as error:
        code, problem = ExitCode.USAGE, str(error)
    except CredentialsError as error:
        code, problem = ExitCode.NO_CREDENTIALS, str(error)
    except KubeError as error:
        code, problem = ExitCode.FAILURE, f"the configuration can't be read: {error}"
    click.echo(problem, err=True)
    sys.exit(code)


def _take_no_notice(_number: int, _frame: FrameType | None) -> None:
    """Go on with the start."""


def _check(parameters: dict[str, Any]) -> None:
    """Refuse flags that make sense only together, and put the defaults of the others in."""
    if parameters["config_file"] and parameters["config_map"]:
        raise click.UsageError("--config and --config-map exclude each other")
    check_serving(parameters)
    if parameters["verified_share"] and parameters["evaluation"] is EvaluationMode.PLAIN:
        raise click.UsageError(
            "--verify-cache checks what --evaluation=incremental keeps; plain keeps nothing"
        )
    if parameters["record_max_bytes"] is None:
        parameters["record_max_bytes"] = DEFAULT_RECORD_MAX_BYTES
    elif parameters["record_file"] is None:
        raise click.UsageError("--record-max-bytes needs --record")


def _placed(name: ConfigMapName | None, flag: str) -> ConfigMapName | None:
    if name is None or name.namespace:
        return name
    own = os.environ.get("POD_NAMESPACE", "")
    if not own:
        raise click.UsageError(f'{flag}: "{name}" has no namespace, and POD_NAMESPACE is not set')
    return name.within(own)


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
