"""The login of a pod: its service account's token and the cluster's CA.

The kubelet replaces the token file about every hour; requests must follow. A missing file is an
error that names it, since pods may be made without a token on purpose.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from k8s_scheduler.kube.auth.login import Login, bearer, read_file
from k8s_scheduler.kube.auth.tls import TlsMaterial
from k8s_scheduler.kube.errors import CredentialsError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"


class InClusterSource:
    """Reads the service account that the kubelet mounts."""

    def __init__(self, environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> None:
        missing = [name for name in (HOST, PORT) if not environ.get(name)]
        if missing:
            raise CredentialsError(f"not in a cluster: {' and '.join(missing)} not set")
        host = environ[HOST]
        self._server = f"https://{f'[{host}]' if ':' in host else host}:{environ[PORT]}"
        self._token = folder / "token"
        self._ca = folder / "ca.crt"

    def describe(self) -> str:
        return f"service account in {self._token.parent}"

    def files(self) -> tuple[Path, ...]:
        return self._token, self._ca

    def read(self, *, renew: bool) -> Login:  # noqa: ARG002 - nothing is cached here
        token = read_file(self._token, "the service account's token")
        if not token.strip():
            raise CredentialsError(f"the service account's token {self._token} is empty")
        authorities = read_file(self._ca, "the cluster's CA")
        return Login(self._server, TlsMaterial(ca=authorities), bearer(token))
