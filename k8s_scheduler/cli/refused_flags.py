"""kube-scheduler's flags that have no effect here, each refused by name with what to do instead.

A user who moves a manifest over must learn about each such flag, and about all of them at
once; ignoring one would be running something else than was asked for. The names are v1.37.1's.
"""

from collections.abc import Mapping
from typing import Final

import click

_LOOKUP = (
    "nothing is looked up in the cluster's extension-apiserver-authentication; give "
    "--client-ca-file to accept client certificates"
)
_PROXY = "an authenticating proxy in front is not supported; give the scraper a token of its own"
_CURVES = "the TLS library chooses the curve; --tls-min-version and --tls-cipher-suites can be set"
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
    "--tls-curve-preferences": _CURVES,
    "--tls-sni-cert-key": "one certificate is served; give --tls-cert-file",
    "--http2-max-streams-per-connection": _HTTP2,
    "--disable-http2-serving": f"{_HTTP2} anyway",
    "--permit-port-sharing": _SHARING,
    "--permit-address-sharing": _SHARING,
    "--authentication-skip-lookup": _LOOKUP,
    "--authentication-tolerate-lookup-failure": _LOOKUP,
    "--requestheader-username-headers": _PROXY,
    "--requestheader-uid-headers": _PROXY,
    "--requestheader-group-headers": _PROXY,
    "--requestheader-extra-headers-prefix": _PROXY,
    "--requestheader-client-ca-file": _PROXY,
    "--requestheader-allowed-names": _PROXY,
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
