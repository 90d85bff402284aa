"""Asks a running scheduler which configuration is in force: `config current`."""

import http.client
import ipaddress
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from k8s_scheduler.api.extras import EXTRAS_API_VERSION

_PATH: Final = "/configz"
_TIMEOUT_SECONDS: Final = 10.0
_UPSTREAM: Final = "kubescheduler.config.k8s.io"
_OURS: Final = EXTRAS_API_VERSION.partition("/")[0]
_HINTS: Final = {
    401: "it wants a token: --token-file",
    403: "the token's owner may not read it: allow get on the nonResourceURL /configz",
    404: "it has no /configz: is it k8s-scheduler, and new enough?",
}


class CurrentError(Exception):
    """Nothing was learned; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a scheduler is asked, and how it is trusted.

    On this machine's own address a certificate that it has made for itself is fine: nobody else
    can be there. Anywhere else it is verified, unless told otherwise.
    """

    server: str
    certificate_authority: Path | None = None
    insecure: bool = False
    token_file: Path | None = None


def fetch(address: Address) -> dict[str, Any]:
    """Return what the scheduler says; raises CurrentError."""
    parts = urlsplit(address.server)
    try:
        port = parts.port or 443
    except ValueError as error:
        raise CurrentError(f"{address.server}: {error}") from error
    if parts.scheme != "https" or not parts.hostname or parts.path.strip("/"):
        raise CurrentError(f"{address.server}: https://HOST[:PORT] is expected")
    connection = http.client.HTTPSConnection(
        parts.hostname, port, timeout=_TIMEOUT_SECONDS, context=_context(address, parts.hostname)
    )
    try:
        connection.request("GET", _PATH, headers=_headers(address))
        response = connection.getresponse()
        body = response.read()
    except ssl.SSLCertVerificationError as error:
        raise CurrentError(
            f"{address.server}: its certificate is not trusted ({error.verify_message}); give its "
            "CA with --certificate-authority, or --insecure-skip-tls-verify"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise CurrentError(f"{address.server}: no answer: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        hint = _HINTS.get(response.status, response.reason)
        raise CurrentError(f"{address.server}: {response.status}: {hint}")
    return _read(body, address)


def _read(body: bytes, address: Address) -> dict[str, Any]:
    try:
        page = json.loads(body)
        if page[_UPSTREAM] is not None and page[_OURS]["hash"] is not None:
            return dict(page)
    except (ValueError, KeyError, TypeError) as error:
        raise CurrentError(f"{address.server}: its answer is no configuration") from error
    raise CurrentError(f"{address.server}: its answer is no configuration")


def describe(page: dict[str, Any]) -> str:
    """Return what a page says, for people: what is in force, and then the file it amounts to."""
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


def _headers(address: Address) -> dict[str, str]:
    if address.token_file is None:
        return {}
    try:
        token = address.token_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CurrentError(f"{address.token_file}: cannot be read as a token") from error
    return {"Authorization": f"Bearer {token}"}


def _context(address: Address, host: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.certificate_authority)
    except OSError as error:
        raise CurrentError(f"{address.certificate_authority}: no certificates in there") from error
    if address.insecure or (address.certificate_authority is None and _is_here(host)):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
