"""TLS material, and the contexts made of it.

The checks are client-go's: the CA bundle names trust anchors, whether or not they are
self-signed, and certificates older than today's strictest profile still verify. Key material
never touches a disk on its way into OpenSSL, which reads files only: on Linux the file is a
piece of anonymous memory.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from k8s_scheduler.kube.errors import CredentialsError


def verify_as_go_does(context: ssl.SSLContext) -> None:
    """Trust every certificate of a bundle as an anchor, and certificates of older profiles.

    Set on every context, because Python's defaults become stricter with each version.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """PEM texts; without `ca` the system's authorities are trusted."""

    ca: bytes | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Make a client context; raises CredentialsError for material OpenSSL does not take."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        verify_as_go_does(context)
        context.set_alpn_protocols(["http/1.1"])
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            self._trust(context, self.ca)
        if self.certificate is not None and self.key is not None:
            self._present(context, self.certificate, self.key)
        return context

    def _trust(self, context: ssl.SSLContext, authorities: bytes) -> None:
        try:
            # PEM is ASCII; remarks between certificates are in all languages.
            context.load_verify_locations(cadata=authorities.decode("ascii", "ignore"))
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"the CA bundle holds no PEM certificates: {error}") from error

    def _present(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        try:
            with _readable(certificate) as certificate_path, _readable(key) as key_path:
                context.load_cert_chain(certificate_path, key_path, password=_refuse_password)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(
                f"the client certificate and its key cannot be used: {error}"
            ) from error


def _refuse_password() -> NoReturn:
    # Without this OpenSSL would ask on the terminal and wait for ever.
    raise ValueError("the key is encrypted; give one without a password")


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """Give content a path for as long as the block lasts."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
