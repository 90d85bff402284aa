"""The login that a kubeconfig describes.

The kubeconfig itself is read once: a `kubectl config use-context` must not move a running
scheduler to another cluster. The files it names (CA, certificate, key, token) are read again
when they change, and a plugin is asked again when what it gave expires or is rejected.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from k8s_scheduler.kube.auth.kubeconfig_files import (
    ClusterEntry,
    Found,
    UserEntry,
    load_kubeconfig,
)
from k8s_scheduler.kube.auth.kubeconfig_plugins import (
    PluginLogin,
    ask_auth_provider,
    run_exec_plugin,
)
from k8s_scheduler.kube.auth.login import Login, bearer, read_file
from k8s_scheduler.kube.auth.tls import TlsMaterial
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.lib.base64_text import decode_base64
from k8s_scheduler.obs.redaction import redact

_PROXY_SCHEMES: Final = ("http://", "https://")


class KubeconfigSource:
    """Reads logins as one context of a kubeconfig says."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._config = load_kubeconfig(files)
        self._from_exec: PluginLogin | None = None
        self._check()

    def describe(self) -> str:
        files = ", ".join(str(file) for file in self._config.files)
        return f"kubeconfig {files}, context {self._config.context!r}"

    def files(self) -> tuple[Path, ...]:
        cluster, user = self._config.cluster, self._config.user
        named: list[Path] = []
        if cluster.entry.certificate_authority and not cluster.entry.certificate_authority_data:
            named.append(cluster.path(cluster.entry.certificate_authority))
        if user.entry.client_certificate and not user.entry.client_certificate_data:
            named.append(user.path(user.entry.client_certificate))
        if user.entry.client_key and not user.entry.client_key_data:
            named.append(user.path(user.entry.client_key))
        if user.entry.token_file:
            named.append(user.path(user.entry.token_file))
        return tuple(named)

    def read(self, *, renew: bool) -> Login:
        cluster, user = self._config.cluster, self._config.user
        plugin = self._ask_plugin(renew=renew)
        certificate = _pem(user, "client-certificate") or plugin.certificate
        key = _pem(user, "client-key") or plugin.key
        if (certificate is None) != (key is None):
            raise CredentialsError(
                f"kubeconfig {user.file}: client-certificate and client-key belong together, "
                "only one of them is given"
            )
        tls = None
        if cluster.entry.server.startswith("https://"):
            tls = TlsMaterial(
                ca=_pem(cluster, "certificate-authority"),
                certificate=certificate,
                key=key,
                verify=not cluster.entry.insecure_skip_tls_verify,
            )
        return Login(
            server=cluster.entry.server.rstrip("/"),
            tls=tls,
            authorization=_authorization(user, plugin),
            tls_server_name=cluster.entry.tls_server_name or "",
            proxy_url=cluster.entry.proxy_url or "",
            expires_at=plugin.expires_at,
        )

    def _check(self) -> None:
        cluster = self._config.cluster
        if not _is_address(cluster.entry.server):
            raise CredentialsError(
                f"kubeconfig {cluster.file}: the server {redact(cluster.entry.server)!r} is not an "
                "https:// or http:// address, such as https://10.0.0.1:6443"
            )
        if "@" in urlsplit(cluster.entry.server).netloc:
            raise CredentialsError(
                f"kubeconfig {cluster.file}: the server's address holds a user name or password; "
                "they belong to the user's entry, as username and password"
            )
        has_ca = cluster.entry.certificate_authority or cluster.entry.certificate_authority_data
        if cluster.entry.insecure_skip_tls_verify and has_ca:
            # As client-go: a kubeconfig that names an authority expects the server to be verified.
            raise CredentialsError(
                f"kubeconfig {cluster.file}: insecure-skip-tls-verify and certificate-authority "
                "exclude each other; remove one of them"
            )
        proxy_url = cluster.entry.proxy_url
        if proxy_url and not proxy_url.startswith(_PROXY_SCHEMES):
            raise CredentialsError(
                f"kubeconfig {cluster.file}: proxy-url {redact(proxy_url)!r} is not supported, "
                "only http:// and https:// proxies are"
            )

    def _ask_plugin(self, *, renew: bool) -> PluginLogin:
        user = self._config.user.entry
        if user.auth_provider is not None:
            # Asked each time: the package renews the token itself when its end is near.
            return ask_auth_provider(self._config, user.auth_provider)
        if user.exec is None or user.token_file or user.token:
            return PluginLogin()
        if renew or self._from_exec is None:
            self._from_exec = run_exec_plugin(self._config, user.exec)
        return self._from_exec


def _is_address(server: str) -> bool:
    if not server.startswith(("https://", "http://")):
        return False
    try:
        address = urlsplit(server)
        # The port is read only when it is asked for.
        return bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _authorization(user: Found[UserEntry], plugin: PluginLogin) -> str | None:
    entry = user.entry
    if plugin.token:
        return bearer(plugin.token)
    if entry.token_file:
        return bearer(read_file(user.path(entry.token_file), "the token"))
    if entry.token:
        return bearer(entry.token)
    if entry.username:
        return _basic(user, f"{entry.username}:{entry.password or ''}")
    return None


def _basic(user: Found[UserEntry], pair: str) -> str:
    try:
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    except UnicodeEncodeError:
        # Without the error: it holds the password.
        raise CredentialsError(
            f"kubeconfig {user.file}: username or password holds half of a character, an escape "
            "from \\ud800 to \\udfff that stands alone"
        ) from None


def _pem(found: Found[ClusterEntry] | Found[UserEntry], name: str) -> bytes | None:
    """Return PEM text that stands in the kubeconfig itself, else in a file it names."""
    field = name.replace("-", "_")
    data: str | None = getattr(found.entry, f"{field}_data")
    file: str | None = getattr(found.entry, field)
    if data:
        try:
            return decode_base64(data)
        except ValueError as error:
            raise CredentialsError(
                f"kubeconfig {found.file}: {name}-data is not base64: {error}"
            ) from error
    return read_file(found.path(file), name) if file else None
