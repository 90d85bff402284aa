"""Certificates of the proxy: the bed's own, and others to change over to."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from testbed.layout import Layout, write_private
from testbed.pki import LOOPBACK_NAMES, Authority, issue_server, make_authority


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server shows, and the authority that a client has to trust for it."""

    certificate: Path
    key: Path
    ca: Path

    @property
    def ca_pem(self) -> str:
        """The authority's certificate as text, for a kubeconfig."""
        return self.ca.read_text(encoding="ascii")


def bed_identity(layout: Layout) -> Identity:
    """Return what the bed's own servers on loopback show."""
    return Identity(layout.pki / "serving.crt", layout.pki / "serving.key", layout.ca)


def new_identity(folder: Path, *, now: datetime | None = None) -> Identity:
    """Make a new authority and a certificate signed by it, as files in a folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = now or datetime.now(tz=UTC)
    authority = make_authority("k8s-scheduler-proxy-ca", now=now)
    certificate, key = issue_server(authority, "proxy", names=LOOPBACK_NAMES, now=now)
    _write(folder / "ca.crt", _pem(authority))
    _write(folder / "proxy.crt", certificate.public_bytes(serialization.Encoding.PEM))
    write_private(folder / "proxy.key", _private_pem(key))
    return Identity(folder / "proxy.crt", folder / "proxy.key", folder / "ca.crt")


def server_context(identity: Identity, *, client_ca: Path) -> ssl.SSLContext:
    """Return how clients are met: a certificate of theirs is checked, none is fine too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    context.load_verify_locations(client_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def upstream_context(layout: Layout, *, speaks_for_others: bool) -> ssl.SSLContext:
    """Return how the API server is met; one who speaks for others shows the front proxy's."""
    context = ssl.create_default_context(cafile=layout.ca)
    if speaks_for_others:
        context.load_cert_chain(layout.pki / "front-proxy.crt", layout.pki / "front-proxy.key")
    return context


def subject_of(peer: dict[str, object] | None) -> tuple[str, tuple[str, ...]]:
    """Return user and groups of a client's certificate; empty if it showed none."""
    names: list[tuple[str, str]] = []
    subject = (peer or {}).get("subject", ())
    if isinstance(subject, Sequence):
        for attributes in subject:
            names += [(str(key), str(text)) for key, text in attributes]
    user = next((text for key, text in names if key == "commonName"), "")
    return user, tuple(text for key, text in names if key == "organizationName")


def _pem(authority: Authority) -> bytes:
    return authority.certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
