"""The serving certificate: given as files and read again when they change, or made at start.

Invariants: a pair that does not fit together never replaces one that does. A new pair gets a
context of its own, with which new connections are then taken (`connections.py`): a context that had
the old pair would keep it beside the new one if their keys are of different kinds, and show either.
It is not done by a callback for server names, with which any client could fill the log:
Python writes a traceback for each name that is not ASCII. A self-signed key exists in memory only:
it passes through an anonymous file, or, where the system has none, through a temporary file that is
gone before a client connects. So a read-only root file system is fine.

    files:  serving old pair ──change seen──► new pair tried aside ──fits──► serving new pair
                  ▲                                   │
                  └──────────── does not fit: logged, tried again at the next look
"""

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final, NoReturn, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from k8s_scheduler.console.tls_settings import DEFAULT_TLS, TlsSettings
from k8s_scheduler.kube.auth.tls import verify_as_go_does

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 10.0
# Longer than any process lives: no client can check this certificate.
_VALIDITY: Final = timedelta(days=3650)
_SKEW: Final = timedelta(hours=1)

_KEY_USAGE: Final = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)

_Signature: TypeAlias = tuple[tuple[int, int, int], ...]


class CertificateError(Exception):
    """No usable serving certificate; the message names the file."""


def trust_clients(context: ssl.SSLContext, authorities: Path) -> None:
    """Let clients show certificates of these authorities; a client that has none may come without.

    A certificate of any other authority ends the handshake.
    """
    try:
        context.load_verify_locations(cafile=authorities)
    except OSError as error:
        problem = "holds no PEM certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise CertificateError(f"--client-ca-file {authorities}: {problem}") from error
    verify_as_go_does(context)
    context.verify_mode = ssl.CERT_OPTIONAL


class CertificateFiles:
    """A pair of files, and the context that serves what they hold now: another one when renewed."""

    def __init__(
        self,
        cert_file: Path,
        key_file: Path,
        *,
        client_ca_file: Path | None = None,
        settings: TlsSettings = DEFAULT_TLS,
    ) -> None:
        self._settings = settings
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_ca_file = client_ca_file
        self._signature = self._look()
        self.context = self._load()

    async def keep_current(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        while True:
            await sleep(_LOOK_SECONDS)
            await asyncio.to_thread(self.refresh)

    def refresh(self) -> bool:
        try:
            signature = self._look()
            if signature == self._signature:
                return False
            self.context = self._load()
        except CertificateError as error:
            fields = {"error": str(error)}
            logger.warning("Serving certificate not renewed", extra={"fields": fields})
            return False
        self._signature = signature
        fields = {"file": str(self._cert_file)}
        logger.info("Serving certificate renewed", extra={"fields": fields})
        return True

    def _look(self) -> _Signature:
        files = (self._cert_file, self._key_file, self._client_ca_file)
        try:
            found = [path.stat() for path in files if path is not None]
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)

    def _load(self) -> ssl.SSLContext:
        context = self._settings.server_context()
        try:
            context.load_cert_chain(self._cert_file, self._key_file, password=self._refuse_password)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"{self._cert_file} and {self._key_file} are no certificate with its key: {error}"
            ) from error
        if self._client_ca_file is not None:
            trust_clients(context, self._client_ca_file)
        return context

    def _refuse_password(self) -> NoReturn:
        # Without this OpenSSL would ask on the terminal and wait for ever.
        raise CertificateError(f"{self._key_file}: is encrypted; give a key without a password")


class SelfSigned:
    """A certificate of our own making, for probes and scrapers that do not check it."""

    def __init__(
        self, *, bind_address: str = "127.0.0.1", settings: TlsSettings = DEFAULT_TLS
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        self.certificate_pem = _self_sign(key, bind_address)
        self.context = settings.server_context()
        key_pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        with _as_file(self.certificate_pem + key_pem) as path:
            self.context.load_cert_chain(path)

    async def keep_current(self) -> None:
        """Do nothing: it outlives the process."""


def _hostname() -> str:
    name = socket.gethostname()
    return name if name and name.isascii() else "localhost"


def _self_sign(key: ec.EllipticCurvePrivateKey, bind_address: str) -> bytes:
    hostname = _hostname()
    address = ipaddress.ip_address(bind_address)
    addresses = {ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")}
    if not address.is_unspecified:
        addresses.add(address)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in sorted({"localhost", hostname})]
    names += [x509.IPAddress(each) for each in sorted(addresses, key=str)]
    # A common name holds 64 characters; host names may be longer.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hostname[:64])])
    now = datetime.now(tz=UTC)
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # A certificate that signs itself is its own authority; strict clients want it to say so.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_KEY_USAGE, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(key_id, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id), critical=False
        )
    )
    certificate = builder.sign(key, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM)


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give the content a path for a moment: the TLS library reads files only."""
    with _anonymous_file() or _temporary_file() as file:
        file.write(content)
        file.flush()
        yield file.name if isinstance(file.name, str) else f"/proc/self/fd/{file.name}"


def _anonymous_file() -> IO[bytes] | None:
    """Return a file that exists in memory only, or None where the system has no such thing."""
    try:
        file = os.fdopen(os.memfd_create("serving-certificate"), "wb")
    except (AttributeError, OSError):
        return None
    if Path(f"/proc/self/fd/{file.fileno()}").exists():
        return file
    file.close()
    return None


def _temporary_file() -> IO[bytes]:
    try:
        return tempfile.NamedTemporaryFile(prefix="k8s-scheduler-")
    except OSError as error:
        raise CertificateError(
            f"no temporary file for a self-signed certificate: {error}; mount a writable "
            "directory at /tmp, or give --tls-cert-file and --tls-private-key-file"
        ) from error
