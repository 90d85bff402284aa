"""A login to the API server, as it is at one moment, and the protocol of its sources."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from k8s_scheduler.kube.auth.tls import TlsMaterial
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.lib.bounded_files import TooLongError, read_bounded

# More than any kubeconfig or bundle of certificates has.
_MOST_BYTES: Final = 16 * 1024 * 1024
_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Login:
    """Everything a request needs; `tls` is None for plain HTTP."""

    server: str
    tls: TlsMaterial | None
    authorization: str | None = field(default=None, repr=False)
    tls_server_name: str = ""
    proxy_url: str = ""
    # Seconds since the epoch; None for what does not say when it ends.
    expires_at: float | None = None


class LoginSource(Protocol):
    """Reads logins. Blocks, so it is asked in a thread, by one caller at a time."""

    def describe(self) -> str: ...

    def files(self) -> tuple[Path, ...]:
        """Return the files whose change makes a new login."""
        ...

    def read(self, *, renew: bool) -> Login:
        """Read the login; with `renew` also what is cached until it expires.

        Raises CredentialsError.
        """
        ...


def read_file(path: Path, what: str) -> bytes:
    """Return a file's content, or say in a CredentialsError what is missing."""
    try:
        return read_bounded(path, _MOST_BYTES)
    except OSError as error:
        raise CredentialsError(f"cannot read {what} {path}: {error.strerror}") from error
    except TooLongError as error:
        raise CredentialsError(f"cannot read {what} {path}: it {error}") from error
    except ValueError as error:
        # The path has a NUL in it, or half of a character.
        raise CredentialsError(
            f"cannot read {what} {str(path)!r}: no file has this name"
        ) from error


def bearer(token: bytes | str) -> str:
    """Return the header value for a token; files that hold one often end with a newline."""
    text = token if isinstance(token, str) else token.decode(errors="replace")
    if not _TOKEN.fullmatch(text.strip()):
        raise CredentialsError(
            "the token holds characters that no header may hold (a line break, a space or the "
            "like); it was probably cut or pasted wrongly"
        )
    return f"Bearer {text.strip()}"
