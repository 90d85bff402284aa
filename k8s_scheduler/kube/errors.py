"""Everything that can go wrong with the API server, as one tree.

    KubeError
    ├── CredentialsError       no usable kubeconfig, token or certificate
    ├── TransportError         no HTTP answer
    │   ├── NotSent            the request never left: refused, unresolved, TLS failed
    │   ├── OutcomeUnknown     it may have been executed: timeout, reset after the first byte
    │   └── StreamError        a watch that answered and was of no use (streams.py)
    └── ApiError               an HTTP answer that is not a success
        ├── Unauthorized 401   ├── Forbidden 403   ├── NotFound 404
        ├── Conflict 409       ├── Gone 410        ├── Invalid 422
        ├── TooManyRequests 429
        └── ServerError 5xx    the outcome of a write is unknown here too

The split between NotSent and OutcomeUnknown is what binding rests on: after the first nothing
happened, after the second the pod must be read before anything is given back. The tree is our
own so that the HTTP library stays replaceable.
"""

from typing import ClassVar, Final

import msgspec

# What a decoder raises; for JSON that is nested too deeply it is Python's own error.
UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


class KubeError(Exception):
    """Base of the tree."""


class CredentialsError(KubeError):
    """No way to authenticate; the message says what was tried."""


class TransportError(KubeError):
    """No HTTP answer."""


class NotSent(TransportError):
    """The request never reached the server, so it was not executed."""


class OutcomeUnknown(TransportError):
    """The request may have been executed."""


class ApiError(KubeError):
    """The server answered, and not with a success."""

    status_codes: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}" if self.reason else self.message


class Unauthorized(ApiError):
    """The credentials were not accepted."""

    status_codes = (401,)


class Forbidden(ApiError):
    """RBAC says no; never a reason to log in again."""

    status_codes = (403,)


class NotFound(ApiError):
    """No such object, or no such API."""

    status_codes = (404,)


class Conflict(ApiError):
    """Another write came first."""

    status_codes = (409,)


class Gone(ApiError):
    """The requested piece of history is compacted: list again."""

    status_codes = (410,)


class Invalid(ApiError):
    """The server refused the object's content."""

    status_codes = (422,)


class TooManyRequests(ApiError):
    """Throttled: not executed, come back later. On an eviction: a disruption budget says no."""

    status_codes = (429,)


class ServerError(ApiError):
    """The server failed; a write may or may not have been executed."""

    status_codes = (500, 501, 502, 503, 504)


class _Status(msgspec.Struct, rename="camel"):
    message: str = ""
    reason: str = ""


_BY_STATUS = {
    code: kind
    for kind in (
        Unauthorized,
        Forbidden,
        NotFound,
        Conflict,
        Gone,
        Invalid,
        TooManyRequests,
        ServerError,
    )
    for code in kind.status_codes
}
_decode_status = msgspec.json.Decoder(_Status).decode


def api_error(status: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """Build the exception for an answer, from the `Status` in its body where there is one."""
    try:
        decoded = _decode_status(body)
    except UNREADABLE:
        decoded = _Status(message=body[:200].decode(errors="replace").strip())
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    try:
        retry_after_seconds = float(retry_after) if retry_after else None
    except ValueError:
        retry_after_seconds = None
    return kind(
        decoded.message or f"HTTP {status}",
        status=status,
        reason=decoded.reason,
        retry_after_seconds=retry_after_seconds,
    )
