"""Logins that a kubeconfig leaves to others: exec plugins and identity providers.

The `kubernetes` package runs both. It is imported here and only when a kubeconfig needs it: it
costs 43 MiB and a quarter of a second. Its loader logs a failing plugin and goes on without
credentials, so plugins are run through its `ExecProvider` instead, which raises.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from k8s_scheduler.kube.auth.kubeconfig_files import Kubeconfig
from k8s_scheduler.kube.errors import CredentialsError


@dataclass(frozen=True, slots=True)
class PluginLogin:
    """What a plugin gave: a token, a certificate, or both."""

    token: str = field(default="", repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    expires_at: float | None = None


def run_exec_plugin(config: Kubeconfig, exec_entry: Mapping[str, Any]) -> PluginLogin:
    """Run the user's exec plugin and return what it printed."""
    loader = import_module("kubernetes.config.kube_config")
    command = exec_entry.get("command", "")
    folder = str(config.user.file.parent.absolute())
    cluster = loader.ConfigNode("cluster", dict(config.raw_cluster))
    entry = loader.ConfigNode("exec", dict(exec_entry))
    try:
        return _login_of(loader.ExecProvider(entry, folder, cluster).run())
    except Exception as error:
        # The package raises whatever comes up: its own errors, OSError, KeyError, TypeError.
        hint = exec_entry.get("installHint") or ""
        raise CredentialsError(
            f"kubeconfig {config.user.file}: exec plugin {command!r} failed: "
            f"{_text(error)}{f'. {hint.strip()}' if hint else ''}"
        ) from error


def ask_auth_provider(config: Kubeconfig, provider: Mapping[str, Any]) -> PluginLogin:
    """Return the token of an identity provider (OIDC); an expired one is renewed first.

    A renewed token is written back to the kubeconfig, as kubectl does: the old refresh token may
    not be good for a second use.
    """
    loader = import_module("kubernetes.config.kube_config")
    name = provider.get("name", "")
    loaded = loader.Configuration()
    try:
        loader.load_kube_config(
            config_file=os.pathsep.join(str(file) for file in config.files),
            context=config.context,
            client_configuration=loaded,
        )
    except Exception as error:
        # Anything may come up here, from the network to a malformed token.
        raise CredentialsError(
            f"kubeconfig {config.user.file}: auth-provider {name!r} failed: {_text(error)}"
        ) from error
    token = loaded.api_key.get("BearerToken", "")
    if not token:
        raise CredentialsError(
            f"kubeconfig {config.user.file}: auth-provider {name!r} gave no token; only oidc "
            "and gcp are known, other providers have become exec plugins"
        )
    return PluginLogin(token=token.removeprefix("Bearer "))


def _login_of(status: Mapping[str, Any]) -> PluginLogin:
    token = status.get("token") or ""
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    if not token and not (certificate and key):
        raise ValueError("it gave neither a token nor a client certificate with its key")
    expires_at = None
    if stamp := status.get("expirationTimestamp"):
        moment = datetime.fromisoformat(stamp)
        expires_at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return PluginLogin(
        token=token,
        certificate=certificate.encode() if certificate else None,
        key=key.encode() if key else None,
        expires_at=expires_at,
    )


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
