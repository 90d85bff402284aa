"""Where the credentials for the API server are looked for.

With `--kubeconfig FILE` only that file counts. Without it: the pod's own service account, as
kube-scheduler does. Only a caller that writes nothing to the cluster may go on to look where
kubectl looks ($KUBECONFIG, then ~/.kube/config): a scheduler started on a laptop without a word
about where would otherwise bind pods, and take the Lease, in whatever cluster kubectl was last
pointed at. A service account that cannot be read counts as not there (pods may be made without
one); a kubeconfig that is broken is an error, since silently going on might end at another
cluster.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from k8s_scheduler.kube.auth.credentials import RotatingCredentials
from k8s_scheduler.kube.auth.in_cluster import SERVICE_ACCOUNT, InClusterSource
from k8s_scheduler.kube.auth.kubeconfig import KubeconfigSource
from k8s_scheduler.kube.auth.login import LoginSource
from k8s_scheduler.kube.errors import CredentialsError

# How often the daemon calls `refresh`.
CHECK_SECONDS: Final = 10.0

_ADVICE: Final = "or run in a cluster as a pod with a service account"


class Credentials(Protocol):
    """What a transport needs to authenticate.

    A 403 is an answer about rights and never a reason to refresh.
    """

    @property
    def server(self) -> str:
        """The API server's address, without a slash at its end."""
        ...

    @property
    def tls_server_name(self) -> str:
        """The name the server's certificate is checked against, if not the address's."""
        ...

    @property
    def proxy_url(self) -> str: ...

    @property
    def generation(self) -> int:
        """Grows when connections must be made anew."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Return the headers that authenticate a request; another object when they change."""
        ...

    def ssl_context(self) -> ssl.SSLContext | None: ...

    async def refresh(self, *, rejected: bool = False) -> None:
        """Read again what may have changed; after a 401 everything. Never raises.

        It may take long. A caller that is cancelled does not end it for others.
        """
        ...


async def load_credentials(
    kubeconfig: str | None = None,
    *,
    ambient: bool = False,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Credentials:
    """Find credentials and read them; raises CredentialsError that says what was tried.

    `ambient` lets $KUBECONFIG and ~/.kube/config count.
    """
    environ = os.environ if environ is None else environ
    source = await asyncio.to_thread(_find, kubeconfig, environ, service_account, ambient=ambient)
    return await RotatingCredentials.open(source)


def _find(
    kubeconfig: str | None, environ: Mapping[str, str], service_account: Path, *, ambient: bool
) -> LoginSource:
    if kubeconfig:
        return KubeconfigSource([_expanded(kubeconfig)])
    tried: list[str] = []
    try:
        in_cluster = InClusterSource(environ, service_account)
        in_cluster.read(renew=False)
    except CredentialsError as error:
        tried.append(f"in-cluster: {error}")
    else:
        return in_cluster
    files = _kubeconfig_files(environ)
    existing = [file for file in files if file.exists()]
    if not ambient:
        unused = f" ({existing[0]} is not used unless it is named)" if existing else ""
        advice = f"give --kubeconfig FILE or clientConnection.kubeconfig{unused}, {_ADVICE}"
        raise CredentialsError(f"no API server to talk to; tried {'; '.join(tried)}; {advice}")
    if existing:
        return KubeconfigSource(existing)
    looked_at = ", ".join(f"{file} does not exist" for file in files)
    setting = "is set, but" if environ.get("KUBECONFIG") else "is not set and"
    tried.append(f"kubeconfig: KUBECONFIG {setting} {looked_at}")
    advice = f"give --kubeconfig FILE, set KUBECONFIG, {_ADVICE}"
    raise CredentialsError(f"no API server to talk to; tried {'; '.join(tried)}; {advice}")


def _expanded(name: str) -> Path:
    """Return the path with `~` filled in; unchanged where there is no such home."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _kubeconfig_files(environ: Mapping[str, str]) -> list[Path]:
    listed = environ.get("KUBECONFIG", "")
    if listed:
        return [_expanded(name) for name in listed.split(os.pathsep) if name]
    return [_expanded(environ.get("HOME", "~")) / ".kube" / "config"]
