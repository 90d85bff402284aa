"""The flags about who may see what is served; kube-scheduler's names and defaults."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from k8s_scheduler.app.options import AccessOptions
from k8s_scheduler.cli.flags import GoDuration
from k8s_scheduler.console.open_paths import HEALTH_PATHS, OpenPaths

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


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


def access_options(function: _Decorated) -> _Decorated:
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


def take_access(parameters: dict[str, Any]) -> AccessOptions:
    return AccessOptions(
        authentication_kubeconfig=parameters.pop("authentication_kubeconfig") or None,
        authorization_kubeconfig=parameters.pop("authorization_kubeconfig") or None,
        client_ca_file=parameters.pop("client_ca_file"),
        always_allow_paths=parameters.pop("authorization_always_allow_paths"),
        token_ttl_seconds=parameters.pop("authentication_token_webhook_cache_ttl"),
        authorized_ttl_seconds=parameters.pop("authorization_webhook_cache_authorized_ttl"),
        unauthorized_ttl_seconds=parameters.pop("authorization_webhook_cache_unauthorized_ttl"),
    )
