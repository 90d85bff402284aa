"""Asks a running scheduler which configuration is in force: `config current`.

Everything that says where comes from the command line, so every mistake ends in a CurrentError of
one line: what is wrong, and what would be right. The token is checked before it is sent, because
libraries quote the header that they refuse; and no text of ours holds it.

Inside the scheduler's own pod no token has to be named: the one that the kubelet mounts there is
shown, but only to this machine's own address. A user who can run a command in the pod has that
token anyway.
"""

import http.client
import ipaddress
import json
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import yaml

from k8s_scheduler.api.config.extras import EXTRAS_API_VERSION
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


_PATH: Final = "/configz"
_TIMEOUT_SECONDS: Final = 10.0
_UPSTREAM: Final = "kubescheduler.config.k8s.io"
_OURS: Final = EXTRAS_API_VERSION.partition("/")[0]
_RIGHT: Final = f"`get` the nonResourceURL {_PATH}"


def fetch(address: Address) -> dict[str, Any]:
    """Return what the scheduler says; raises CurrentError."""
    host, port = address.place()
    token_file = address.token_source(host)
    headers = {} if token_file is None else {"Authorization": authorization(token_file)}
    context = address.tls(host)
    connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=context)
    try:
        connection.request("GET", _PATH, headers=headers)
        response = connection.getresponse()
        body = response.read()
    except ssl.SSLCertVerificationError as error:
        raise CurrentError(
            f"{address.shown}: its certificate is not trusted ({error.verify_message}); give its "
            "CA with --certificate-authority, or --insecure-skip-tls-verify"
        ) from error
    except OSError as error:
        raise CurrentError(f"{address.shown}: no answer: {error}") from error
    except http.client.HTTPException as error:
        # Not in its own words: they may quote an answer that holds our token.
        text = f"{address.shown}: no answer: it does not speak HTTP ({type(error).__name__})"
        raise CurrentError(text) from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        shown = token_file is not None
        hint = _hint(response.status, shown=shown, is_pods_own=address.token_file is None)
        raise CurrentError(f"{address.shown}: {response.status}: {hint}")
    return _read(body, address)


def _hint(status: int, *, shown: bool, is_pods_own: bool) -> str:
    if status == http.client.NOT_FOUND:
        return f"it has no {_PATH}: is it k8s-scheduler, and new enough?"
    if status == http.client.UNAUTHORIZED:
        return (
            "the token is not accepted: it is expired or of another cluster, or the API server "
            "could not be asked about it"
            if shown
            else "it wants a token: --token-file"
        )
    if status != http.client.FORBIDDEN:
        return http.client.responses.get(status, "an answer that is not expected here")
    if not shown:
        return f"no token was shown: --token-file, with one whose owner may {_RIGHT}"
    if is_pods_own:
        return (
            f"the pod's service account may not {_RIGHT}: apply rbac.yaml of this version, or give "
            "a token of your own with --token-file"
        )
    return (
        f"the token's owner may not read it: let it {_RIGHT}, as the ClusterRole "
        "k8s-scheduler-config-reader does"
    )


def _read(body: bytes, address: Address) -> dict[str, Any]:
    try:
        page = json.loads(body)
        if page[_UPSTREAM] is not None and page[_OURS]["hash"] is not None:
            return dict(page)
    except (ValueError, KeyError, TypeError) as error:
        raise CurrentError(f"{address.shown}: its answer is no configuration") from error
    raise CurrentError(f"{address.shown}: its answer is no configuration")


def describe(page: dict[str, Any]) -> str:
    ours = page[_OURS]
    lines = [
        f"# hash: {ours['hash']}",
        f"# in force since: {ours['since']}",
        f"# source: {ours['source'] or 'defaults'}",
    ]
    if ours["restartNeeded"]:
        lines.append(f"# needs a restart to take effect: {', '.join(ours['restartNeeded'])}")
    refused = ours.get("refused")
    if refused:
        still = "" if ours["lastReloadSuccessful"] else ", and nothing better was offered since"
        lines.append(f"# refused at {refused['time']}{still}: {refused['hash']}")
        lines += [f"#   {error}" for error in refused["errors"]]
    documents = [page[_UPSTREAM], ours["extras"]]
    return "\n".join(lines) + "\n" + yaml.safe_dump_all(documents, sort_keys=False, width=100)
