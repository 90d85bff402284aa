"""The floor and the ciphers of the secure port, in kube-scheduler's words.

`--tls-min-version` and `--tls-cipher-suites` take Go's names, so that a manifest of kube-scheduler
can be moved over and a policy that demands them is met. As in Go, the suites of TLS 1.3 may be
named but cannot be chosen: a server offers all of them.
"""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

DEFAULT_VERSION: Final = "VersionTLS12"
VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_TOO_OLD: Final = ("VersionTLS10", "VersionTLS11")

SUITES_1_3: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
# Go's name and OpenSSL's, of all that Go calls secure; the two short names are Go's older ones.
SUITES_1_2: Final[Mapping[str, str]] = {
    f"TLS_ECDHE_{key}_WITH_{go}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for go, openssl in {
        "AES_128_CBC_SHA": "AES128-SHA",
        "AES_256_CBC_SHA": "AES256-SHA",
        "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
        "CHACHA20_POLY1305": "CHACHA20-POLY1305",
        "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    }.items()
}


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """What a server offers at the least; no ciphers: Python's own choice, which is narrow."""

    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()

    @classmethod
    def of(cls, min_version: str, suites: Iterable[str]) -> "TlsSettings":
        """Read Go's names; ValueError says what is wrong and what would be right."""
        if min_version in _TOO_OLD:
            raise ValueError(f"{min_version} is not offered; the lowest is {DEFAULT_VERSION}")
        if min_version not in VERSIONS:
            raise ValueError(f"unknown version {min_version!r}; known are {', '.join(VERSIONS)}")
        named = tuple(suites)
        unknown = [name for name in named if name not in SUITES_1_2 and name not in SUITES_1_3]
        if unknown:
            known = ", ".join(sorted(SUITES_1_2.keys() | SUITES_1_3))
            raise ValueError(f"not offered: {', '.join(unknown)}; known are {known}")
        ciphers = dict.fromkeys(SUITES_1_2[name] for name in named if name in SUITES_1_2)
        version = VERSIONS[min_version]
        if named and not ciphers and version is ssl.TLSVersion.TLSv1_2:
            raise ValueError(
                "all of these are of TLS 1.3; name one of TLS 1.2 too, or give "
                "--tls-min-version VersionTLS13"
            )
        return cls(version, tuple(ciphers))

    def server_context(self) -> ssl.SSLContext:
        """Return a context to serve with that has no certificate yet."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = self.min_version
        if self.ciphers:
            context.set_ciphers(":".join(self.ciphers))
        return context


DEFAULT_TLS: Final = TlsSettings()
