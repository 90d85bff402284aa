"""kube-scheduler's flags that have no effect here, each refused by name with what to do instead.

Somebody who moves a manifest over must learn about each such flag, and about all of them at
once; ignoring one would be running something else than was asked for. The names are v1.37.1's.
"""

from collections.abc import Mapping
from typing import Final

import click

_OPEN = (
    "health and metrics are served without authentication; limit who can reach them with a "
    "NetworkPolicy or --bind-address"
)
_TLS = "the server uses Python's TLS defaults: version 1.2 and later, strong ciphers"
_HTTP2 = "the server speaks HTTP/1.1"
_SHARING = "a port that is in use is an error"
_METRICS = "all metrics are always shown; drop labels or metrics when scraping"
_GATES = "there are no feature gates; a release behaves in one way"
_LOGS = "logs go to stderr unbuffered, one line each"
_GO = "there is no Go runtime to profile"

REFUSED_FLAGS: Final[Mapping[str, str]] = {
    "--write-config-to": "use `k8s-scheduler config defaults`, or `config check` with a file",
    "--master": "give --kubeconfig a file that names the API server's address",
    "--cert-dir": "give --tls-cert-file and --tls-private-key-file, or none for a self-signed one",
    "--tls-cipher-suites": _TLS,
    "--tls-curve-preferences": _TLS,
    "--tls-min-version": _TLS,
    "--tls-sni-cert-key": "one certificate is served; give --tls-cert-file",
    "--http2-max-streams-per-connection": _HTTP2,
    "--disable-http2-serving": f"{_HTTP2} anyway",
    "--permit-port-sharing": _SHARING,
    "--permit-address-sharing": _SHARING,
    "--authentication-kubeconfig": _OPEN,
    "--authentication-token-webhook-cache-ttl": _OPEN,
    "--authentication-skip-lookup": _OPEN,
    "--authentication-tolerate-lookup-failure": _OPEN,
    "--client-ca-file": _OPEN,
    "--requestheader-username-headers": _OPEN,
    "--requestheader-uid-headers": _OPEN,
    "--requestheader-group-headers": _OPEN,
    "--requestheader-extra-headers-prefix": _OPEN,
    "--requestheader-client-ca-file": _OPEN,
    "--requestheader-allowed-names": _OPEN,
    "--authorization-kubeconfig": _OPEN,
    "--authorization-webhook-cache-authorized-ttl": _OPEN,
    "--authorization-webhook-cache-unauthorized-ttl": _OPEN,
    "--authorization-always-allow-paths": _OPEN,
    "--profiling": _GO,
    "--contention-profiling": _GO,
    "--kube-api-content-type": "this scheduler speaks JSON to the API server",
    "--feature-gates": _GATES,
    "--emulated-version": _GATES,
    "--min-compatibility-version": _GATES,
    "--emulation-forward-compatible": _GATES,
    "--show-hidden-metrics-for-version": _METRICS,
    "--disabled-metrics": _METRICS,
    "--allow-metric-labels": _METRICS,
    "--allow-metric-labels-manifest": _METRICS,
    "--log-flush-frequency": _LOGS,
    "--log-text-split-stream": _LOGS,
    "--log-text-info-buffer-size": _LOGS,
    "--log-json-split-stream": _LOGS,
    "--log-json-info-buffer-size": _LOGS,
    "--vmodule": "verbosity is one level for the whole process: -v",
}


class KubeSchedulerCommand(click.Command):
    """A command that knows kube-scheduler's other flags, in order to refuse them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; where click finds an unknown option, say more if kube-scheduler knows it."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            refused = [name for name in REFUSED_FLAGS if _is_given(name, given)]
            if error.option_name not in refused:
                raise
            raise click.UsageError("\n".join(map(_refusal, refused)), ctx) from error


def _is_given(name: str, args: list[str]) -> bool:
    return any(arg == name or arg.startswith(f"{name}=") for arg in args)


def _refusal(name: str) -> str:
    return (
        f"{name} is a kube-scheduler flag that k8s-scheduler does not support: "
        f"{REFUSED_FLAGS[name]}"
    )
