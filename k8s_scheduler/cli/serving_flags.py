"""The flags about what a process serves and logs, and how much memory it may take."""

import logging
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from k8s_scheduler.app.options import DEFAULT_SECURE_PORT
from k8s_scheduler.app.process.memory import default_limit_bytes
from k8s_scheduler.cli.access_flags import access_options
from k8s_scheduler.cli.flags import ByteSize, IpAddress, Verbosity
from k8s_scheduler.console.tls_settings import DEFAULT_VERSION, VERSIONS, TlsSettings
from k8s_scheduler.obs import logging as logs

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

logger = logging.getLogger(__name__)

_FILE = click.Path(path_type=Path)
# What is about the port alone.
_OF_THE_PORT: Final = (
    "bind_address",
    "tls_cert_file",
    "tls_private_key_file",
    "tls_min_version",
    "tls_cipher_suites",
    "authentication_kubeconfig",
    "authorization_kubeconfig",
    "client_ca_file",
    "authorization_always_allow_paths",
    "authentication_token_webhook_cache_ttl",
    "authorization_webhook_cache_authorized_ttl",
    "authorization_webhook_cache_unauthorized_ttl",
)


def serving_options(function: _Decorated) -> _Decorated:
    options: tuple[Callable[[_Decorated], _Decorated], ...] = (
        click.option(
            "--bind-address",
            type=IpAddress(),
            default="0.0.0.0",  # noqa: S104  kube-scheduler's default
            show_default=True,
            help="Address on which health and metrics are served.",
        ),
        click.option(
            "--secure-port",
            type=click.IntRange(0, 65535),
            default=DEFAULT_SECURE_PORT,
            show_default=True,
            help="Port on which health and metrics are served over HTTPS; 0 serves nothing.",
        ),
        click.option(
            "--tls-cert-file", type=_FILE, help="Serving certificate; else a self-signed one."
        ),
        click.option("--tls-private-key-file", type=_FILE, help="Key of the serving certificate."),
        click.option(
            "--tls-min-version",
            metavar="VERSION",
            default=DEFAULT_VERSION,
            show_default=True,
            help=f"Lowest TLS version that is offered: {' or '.join(VERSIONS)}.",
        ),
        click.option(
            "--tls-cipher-suites",
            metavar="NAMES",
            default="",
            show_default="a narrow choice of TLS 1.2 suites",
            help="Cipher suites of TLS 1.2, by Go's names with commas between them.",
        ),
        access_options,
        click.option(
            "-v",
            "--v",
            "verbosity",
            type=Verbosity(),
            default=0,
            show_default=True,
            help="Log verbosity.",
        ),
        click.option(
            "--logging-format",
            type=click.Choice(logs.FORMATS),
            default="text",
            show_default=True,
            help="Form of log lines.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def check_serving(parameters: Mapping[str, Any]) -> None:
    """Raise click.UsageError where the flags don't go together."""
    if bool(parameters["tls_cert_file"]) != bool(parameters["tls_private_key_file"]):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")


def take_tls(parameters: dict[str, Any]) -> TlsSettings:
    version = parameters.pop("tls_min_version")
    suites = [name.strip() for name in parameters.pop("tls_cipher_suites").split(",")]
    try:
        return TlsSettings.of(version, [name for name in suites if name])
    except ValueError as error:
        raise click.UsageError(f"--tls-min-version, --tls-cipher-suites: {error}") from error


def log_unserved(context: click.Context) -> None:
    """Log which flags have no effect because nothing is served."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in _OF_THE_PORT
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given and context.params["secure_port"] == 0:
        reason = f"{', '.join(given)}: nothing is served with --secure-port 0"
        logger.warning("Configuration has no effect", extra={"fields": {"reason": reason}})


def memory_options(function: _Decorated) -> _Decorated:
    return click.option(
        "--memory-limit",
        "memory_limit_bytes",
        type=ByteSize(),
        default=None,
        show_default="80% of the cgroup's limit",
        help="Memory below which caches shrink, such as 3Gi; 0 for no limit.",
    )(function)


def take_memory_limit(parameters: MutableMapping[str, Any]) -> int:
    given: int | None = parameters.pop("memory_limit_bytes")
    return default_limit_bytes() if given is None else given
