"""The flags about what a process serves and to which clients, its log and its memory."""

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from k8s_scheduler.app.options import DEFAULT_SECURE_PORT, AccessOptions
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.process.memory import default_limit_bytes
from k8s_scheduler.cli.flags import ByteSize, GoDuration, IpAddress, Verbosity
from k8s_scheduler.console.open_paths import HEALTH_PATHS, OpenPaths
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
        _access_options,
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


def _tls(parameters: dict[str, Any]) -> TlsSettings:
    version = parameters.pop("tls_min_version")
    suites = [name.strip() for name in parameters.pop("tls_cipher_suites").split(",")]
    try:
        return TlsSettings.of(version, [name for name in suites if name])
    except ValueError as error:
        raise click.UsageError(f"--tls-min-version, --tls-cipher-suites: {error}") from error


def take_process(parameters: dict[str, Any]) -> dict[str, Any]:
    """Take what is told to every process that runs on, and log as told from now on."""
    limit_bytes: int | None = parameters.pop("memory_limit_bytes")
    taken = {
        "access": _access(parameters),
        "tls": _tls(parameters),
        "memory_limit_bytes": default_limit_bytes() if limit_bytes is None else limit_bytes,
    }
    logs.configure(parameters["logging_format"], parameters["verbosity"])
    _log_unserved(click.get_current_context())
    return taken


def end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """Handle SIGTERM while nothing is under way; in a container no default would end us."""
    sys.exit(ExitCode.OK)


def _log_unserved(context: click.Context) -> None:
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


class PathList(click.ParamType[tuple[str, ...]]):
    """Paths with commas between them; a `*` only at the end of one."""

    name = "paths"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        paths = tuple(path.strip() for path in value.split(",") if path.strip())
        try:
            OpenPaths(paths)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return paths


def _access_options(function: _Decorated) -> _Decorated:
    options = (
        click.option(
            "--authentication-kubeconfig",
            show_default="the daemon's own login",
            help="Kubeconfig for asking whose a token is (TokenReview).",
        ),
        click.option(
            "--authorization-kubeconfig",
            show_default="the daemon's own login",
            help="Kubeconfig for asking what a client may see (SubjectAccessReview).",
        ),
        click.option(
            "--client-ca-file",
            type=click.Path(path_type=Path),
            help="Authorities whose client certificates identify clients.",
        ),
        click.option(
            "--authorization-always-allow-paths",
            type=PathList(),
            default=",".join(HEALTH_PATHS),
            show_default=True,
            help="Paths for everybody; one that ends in * stands for all that begin so.",
        ),
        _ttl("--authentication-token-webhook-cache-ttl", "How long it is known whose a token is."),
        _ttl("--authorization-webhook-cache-authorized-ttl", "How long a yes is good for."),
        _ttl("--authorization-webhook-cache-unauthorized-ttl", "How long a no is good for."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _ttl(name: str, explanation: str) -> Callable[[_Decorated], _Decorated]:
    return click.option(
        name,
        type=GoDuration(may_be_negative=False),
        default="10s",
        show_default=True,
        help=explanation,
    )


def _access(parameters: dict[str, Any]) -> AccessOptions:
    return AccessOptions(
        authentication_kubeconfig=parameters.pop("authentication_kubeconfig") or None,
        authorization_kubeconfig=parameters.pop("authorization_kubeconfig") or None,
        client_ca_file=parameters.pop("client_ca_file"),
        always_allow_paths=parameters.pop("authorization_always_allow_paths"),
        token_ttl_seconds=parameters.pop("authentication_token_webhook_cache_ttl"),
        authorized_ttl_seconds=parameters.pop("authorization_webhook_cache_authorized_ttl"),
        unauthorized_ttl_seconds=parameters.pop("authorization_webhook_cache_unauthorized_ttl"),
    )
