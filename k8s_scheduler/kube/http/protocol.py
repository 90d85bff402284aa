"""What the rest of `kube` needs of an HTTP client, and nothing more.

`transport.py` implements it; `tests/fakes` implements it in memory. An HTTP answer
is returned whatever its status; no answer is an exception (`NotSent` or `OutcomeUnknown`).
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from k8s_scheduler.kube.errors import ApiError, api_error

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class Response(msgspec.Struct, frozen=True):
    """A whole answer."""

    status: int
    body: bytes = b""
    # At least those that a caller reads.
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def error(self) -> ApiError:
        return api_error(self.status, self.body, retry_after=self.headers.get("Retry-After"))


class Stream(Protocol):
    """An answer that is read while it arrives: a watch."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes: ...


class Transport(Protocol):
    """Requests to one API server, already authenticated."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
        may_send: Callable[[], bool] | None = None,
    ) -> Response:
        """Send one request and read its whole answer.

        Raises NotSent or OutcomeUnknown when there is no answer. `may_send` is called directly
        before the first byte leaves, since a connection can take long to come, and a process can
        be stopped while it waits for one: if it returns False, nothing is sent (NotSent).
        """
        ...

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Stream]:
        """Open a GET that is read in chunks; no total deadline, the reader watches for stalls."""
        ...
