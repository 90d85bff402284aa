"""One open watch on the fake API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from tests.fakes.objects import Location, matches
from tests.fakes.transport import FakeStream, Json, encode, status_object

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# About what one read of a busy socket gives.
_SOCKET_BYTES = 65536


class Change(msgspec.Struct, frozen=True, gc=False):
    """One entry of history: what an object is now and what it was before."""

    kind: str
    location: Location
    version: int
    content: Json
    before: Json | None


class Server(Protocol):
    """What a watch needs of the server it belongs to."""

    version: int
    stalled: bool
    chunker: Callable[[bytes], Iterable[bytes]]
    bookmark_interval_seconds: float | None
    ends_late_by_seconds: float
    watches: "list[FakeWatch]"


def line(event: Json) -> bytes:
    """Return an event as it stands on the wire."""
    return encode(event) + b"\n"


def gone_event(message: str = "too old resource version") -> Json:
    """Return the ERROR event that says 410."""
    return {"type": "ERROR", "object": status_object(410, "Expired", message)}


class FakeWatch(FakeStream):
    """Tells changes in order; sends bookmarks when asked or when their time has come."""

    def __init__(self, server: Server, location: Location, query: Mapping[str, str]) -> None:
        super().__init__()
        self._server = server
        self._location = location
        self._field_selector = query.get("fieldSelector", "")
        self._bookmarks = query.get("allowWatchBookmarks") == "true"
        self._timeout_seconds = float(query.get("timeoutSeconds", "0")) or None

    def tell(self, change: Change) -> None:
        """Send a change if this watch is concerned, as the kind of change it is for it."""
        if change.location.list_path != self._location.list_path:
            return
        if self._location.namespace not in {"", change.location.namespace}:
            return
        was = change.before is not None and matches(change.before, self._field_selector)
        is_now = change.kind != "DELETED" and matches(change.content, self._field_selector)
        if was or is_now:
            kind = "DELETED" if not is_now else "MODIFIED" if was else "ADDED"
            self.feed(line({"type": kind, "object": change.content}))

    def bookmark(self, version: int, *, initial_events_end: bool = False) -> None:
        """Send a bookmark, if the client asked for bookmarks."""
        if not self._bookmarks:
            return
        metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        # The server sends an object of the watched kind with nothing else filled in.
        content = {"metadata": metadata, "spec": {"containers": None}, "status": {}}
        self.feed(line({"type": "BOOKMARK", "object": content}))

    def close(self) -> None:
        super().close()
        if self in self._server.watches:
            self._server.watches.remove(self)

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        deadline = None
        if self._timeout_seconds is not None:
            deadline = loop.time() + self._timeout_seconds + self._server.ends_late_by_seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    items = await self._batch()
            except TimeoutError:
                return
            for item in items:
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                for piece in self._server.chunker(item):
                    yield piece

    async def _batch(self) -> "list[bytes | Exception | None]":
        """Wait for something to say; neighbouring bytes are joined, as a socket would."""
        while True:
            try:
                async with asyncio.timeout(self._server.bookmark_interval_seconds):
                    first = await self._items.get()
            except TimeoutError:
                if not self._server.stalled:
                    self.bookmark(self._server.version)
                continue
            if self._server.stalled and isinstance(first, bytes):
                await asyncio.Event().wait()
            return [first] if not isinstance(first, bytes) else self._joined(first)

    def _joined(self, first: bytes) -> "list[bytes | Exception | None]":
        parts, length = [first], len(first)
        while length < _SOCKET_BYTES and not self._items.empty():
            item = self._items.get_nowait()
            if not isinstance(item, bytes):
                return [b"".join(parts), item]
            parts.append(item)
            length += len(item)
        return [b"".join(parts)]
