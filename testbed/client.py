"""A small synchronous JSON client for tests, demo and benchmark.

It keeps connections alive in a pool, so that threads each find one, and retries nothing: a test
must see what happened. The one thing it does for its caller is not to send on a connection that
the server has closed in the meantime, as it does when it restarts.
"""

import http.client
import json
import select
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from testbed.errors import ApiError
from testbed.kubeconfig import Access, read_token_kubeconfig

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_PAGE_SIZE = 1000

Object = dict[str, Any]


class Client:
    """Requests to one server, by any number of threads."""

    def __init__(
        self, server: str, *, ca_pem: str = "", token: str = "", timeout_seconds: float = 30.0
    ) -> None:
        address = urlsplit(server)
        if address.hostname is None or address.port is None:
            raise ValueError(f"{server!r} names no host and port")
        self._host, self._port = address.hostname, address.port
        self._tls = (
            ssl.create_default_context(cadata=ca_pem or None) if address.scheme == "https" else None
        )
        self._headers = {"Accept": JSON} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._timeout_seconds = timeout_seconds
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    @classmethod
    def for_access(cls, access: Access) -> Self:
        """Return a client for what a kubeconfig holds."""
        return cls(access.server, ca_pem=access.ca_pem, token=access.token)

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """Return a client for a kubeconfig of the bed."""
        return cls.for_access(read_token_kubeconfig(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections; the client stays usable."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def get(self, path: str, **query: str) -> Object:
        """Read one object."""
        return self._json("GET", path, query=query)

    def list(self, path: str, **query: str) -> list[Object]:
        """Read all items of a collection, page by page (`labelSelector=...` and the like)."""
        items: list[Object] = []
        page: dict[str, str] = {"limit": str(_PAGE_SIZE)}
        while True:
            answer = self._json("GET", path, query=query | page)
            items += answer.get("items") or []
            token = answer.get("metadata", {}).get("continue")
            if not token:
                return items
            page["continue"] = token

    def create(self, path: str, body: Object) -> Object:
        """Create an object in a collection (or post to a subresource)."""
        return self._json("POST", path, body=body)

    def patch(self, path: str, body: Object, *, content_type: str = MERGE_PATCH) -> Object:
        """Change an object."""
        return self._json("PATCH", path, body=body, content_type=content_type)

    def delete(self, path: str, *, grace_period_seconds: int | None = None) -> Object:
        """Delete an object, or all objects of a collection."""
        query = {}
        if grace_period_seconds is not None:
            query["gracePeriodSeconds"] = str(grace_period_seconds)
        return self._json("DELETE", path, query=query)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> tuple[int, bytes]:
        """Send one request; return status and body, whatever the status. OSError if no answer."""
        target = f"{path}?{urlencode(query)}" if query else path
        headers = self._headers | ({"Content-Type": content_type} if body is not None else {})
        with self._connection() as connection:
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = JSON,
    ) -> Object:
        encoded = None if body is None else json.dumps(body).encode()
        status, answer = self.request(
            method, path, query=query, body=encoded, content_type=content_type
        )
        if not 200 <= status < 300:
            raise _error(status, answer)
        decoded: Object = json.loads(answer)
        return decoded

    @contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        """Lend a connection; it returns to the pool only after a whole answer."""
        connection = self._reusable() or self._connect()
        try:
            yield connection
        except BaseException as error:
            connection.close()
            if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
                raise ConnectionError(f"no proper answer: {error!r}") from error
            raise
        with self._lock:
            self._idle.append(connection)

    def _reusable(self) -> http.client.HTTPConnection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            # Nothing is due on an idle connection, so anything readable is its end.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout_seconds, context=self._tls
        )


def _error(status: int, body: bytes) -> ApiError:
    """Build the exception from the `Status` object in the answer, where there is one."""
    try:
        answer = json.loads(body)
        return ApiError(answer["message"], status=status, reason=answer.get("reason", ""))
    except (ValueError, KeyError, TypeError):
        return ApiError(body[:500].decode(errors="replace").strip(), status=status)
