"""Where `config current` asks, how it trusts the answer, and which token it shows.

Everything here comes from the command line, so every mistake ends in a CurrentError of one line:
what is wrong, and what would be right. The token is checked before it is sent, because libraries
quote the header that they refuse; and no text of ours holds it.

Inside the scheduler's own pod no token has to be named: the one that the kubelet mounts there is
shown, but only to this machine's own address. A user who can run a command in the pod has that
token anyway.
"""

import ipaddress
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from k8s_scheduler.kube.auth.in_cluster import SERVICE_ACCOUNT
from k8s_scheduler.kube.auth.login import bearer, read_file
from k8s_scheduler.kube.auth.tls import verify_as_go_does
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.obs.redaction import redact

POD_TOKEN: Final = SERVICE_ACCOUNT / "token"
_EXPECTED: Final = "https://HOST[:PORT] is expected"
_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_LONGEST_LABEL: Final = 63


class CurrentError(Exception):
    """Nothing was learned; the text says why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a scheduler is asked, and how it is trusted.

    On this machine's own address a certificate that it has made for itself is fine: no
    other server can be there. Anywhere else it is verified, unless told otherwise.
    """

    server: str
    certificate_authority: Path | None = None
    insecure: bool = False
    token_file: Path | None = None

    @property
    def shown(self) -> str:
        """The server as it may stand in a message: in one line, and without a password."""
        return redact(self.server.encode("unicode_escape").decode("ascii"))

    def place(self) -> tuple[str, int]:
        try:
            parts = urlsplit(self.server)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise CurrentError(f"{self.shown}: {error}; {_EXPECTED}") from error
        # Line breaks and tabs are dropped by urlsplit: what is asked would not be what was given.
        is_whole = self.server.isprintable() and not _has_more(parts) and port != 0
        if parts.scheme != "https" or not _is_host(host) or not is_whole:
            raise CurrentError(f"{self.shown}: {_EXPECTED}")
        return host, 443 if port is None else port

    def tls(self, host: str) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.certificate_authority)
        except (OSError, ValueError) as error:
            text = f"{self.certificate_authority}: no certificates in there; PEM is expected"
            raise CurrentError(text) from error
        verify_as_go_does(context)
        if self.insecure or (self.certificate_authority is None and _is_here(host)):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def token_source(self, host: str) -> Path | None:
        """Return the file of the token that is shown to a host; None: none is."""
        if self.token_file is not None:
            return self.token_file
        return POD_TOKEN if _is_here(host) and _is_there(POD_TOKEN) else None


def authorization(token_file: Path) -> str:
    """Return the header for the token in a file; CurrentError without a word of what is in it."""
    try:
        token = read_file(token_file, "the token")
        if not token.strip():
            raise CurrentError(f"{token_file}: is empty; a token is expected")
        return bearer(token)
    except CredentialsError as error:
        # What was being decoded may hang on to the error; it must not be printed with it.
        raise CurrentError(f"{token_file}: cannot be read as a token: {error}") from None


def _is_host(host: str) -> bool:
    """Whether this is an address or a name: nothing that a resolver or a header would choke on."""
    try:
        # The zone of an IPv6 address may be anything.
        ipaddress.ip_address(host)
        return _NAME.fullmatch(host.partition("%")[2] or "any") is not None
    except ValueError:
        labels = host.removesuffix(".").split(".")
        return _NAME.fullmatch(host) is not None and all(
            0 < len(label) <= _LONGEST_LABEL for label in labels
        )


def _has_more(parts: SplitResult) -> bool:
    """Whether there is something beyond host and port, which would not be heeded."""
    return "@" in parts.netloc or bool(parts.path.strip("/") or parts.query or parts.fragment)


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
