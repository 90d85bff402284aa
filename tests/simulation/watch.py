"""One open watch of one client: late by that client's delay, cut when somebody cuts it.

What counts as shown is what the client has read to the end of its line. Bytes that were on the way
when the connection broke were not.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from k8s_scheduler.kube.errors import OutcomeUnknown
from tests.fakes.objects import Location
from tests.fakes.transport import Json, status_object
from tests.fakes.watch import INITIAL_EVENTS_END, Change
from tests.simulation.loop import VirtualLoop

if TYPE_CHECKING:
    from tests.simulation.client import Client
    from tests.simulation.server import ModelServer

LIST = "LIST"
LISTED = "LISTED"
BOOKMARK_SECONDS = 20.0
_END = b""
encode = msgspec.json.Encoder().encode


class ModelWatch:
    """An answer that is read while it arrives."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(
        self, server: "ModelServer", client: "Client", location: Location, query: Mapping[str, str]
    ) -> None:
        self._server = server
        self._client = client
        self._loop: VirtualLoop = server.loop
        self.location = location
        self._selector = query.get("fieldSelector", "")
        # The server leaves out what is not newer than what was asked for.
        self._asked = int(query.get("resourceVersion") or 0)
        # Bytes with the time they arrive at, and what they show.
        self._on_the_way: deque[tuple[float, bytes, tuple[str, Json, int]]] = deque()
        self._last_due = 0.0
        self._rest = b""
        self._rest_shows: list[tuple[str, Json, int]] = []
        self._arrival: asyncio.Future[None] | None = None
        self._ended: Exception | bytes | None = None
        self._stalled = False
        self._timers = [
            self._loop.at(self._loop.now + float(query["timeoutSeconds"]), self.end),
            self._loop.at(self._loop.now + BOOKMARK_SECONDS, self._bookmark_is_due),
        ]

    # The server's side.

    def tell(self, change: Change) -> None:
        """Send a change if this watch is concerned, as the kind of change it is for it."""
        if self._location_differs(change.location) or change.version <= self._asked:
            return
        kind = self._server.kind_for(self._selector, change)
        if kind:
            data = self._server.event_bytes(kind, change)
            self._send(data, kind, change.content, change.version)

    def send_list(self, items: "list[tuple[bytes, Json]]", version: int) -> None:
        """Send what there is, as a streaming list does."""
        self._send(b"", LIST, {}, 0)
        self.send_state(items)
        self.bookmark(version, what=LISTED)

    def send_state(self, items: "list[tuple[bytes, Json]]") -> None:
        """Send what there is, as a watch from no version in particular begins."""
        for encoded, content in items:
            data = b'{"type":"ADDED","object":' + encoded + b"}\n"
            self._send(data, "ADDED", content, int(content["metadata"]["resourceVersion"]))

    def send_error(self, code: int, reason: str, message: str) -> None:
        """Send an ERROR event and end."""
        event = {"type": "ERROR", "object": status_object(code, reason, message)}
        self._send(encode(event) + b"\n", "ERROR", {}, 0)
        self.end()

    def bookmark(self, version: int, *, what: str = "BOOKMARK") -> None:
        """Say how far this watch has come."""
        metadata: Json = {"resourceVersion": str(version)}
        if what == LISTED:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        content = {"metadata": metadata, "spec": {"containers": None}, "status": {}}
        self._send(encode({"type": "BOOKMARK", "object": content}) + b"\n", what, {}, version)

    def end(self) -> None:
        """End the answer as agreed, after what is on the way."""
        self._send(_END, "END", {}, 0)

    def cut(self) -> None:
        """Break the connection now; what is on the way is lost."""
        self._ended = OutcomeUnknown("connection reset by peer")
        self._on_the_way.clear()
        self._rest, self._rest_shows = b"", []
        self._arrived()

    def stall(self) -> None:
        """Say nothing more, and do not end either: a half-open connection."""
        self._stalled = True

    def _bookmark_is_due(self) -> None:
        if self._server.version >= self._asked:
            self.bookmark(self._server.version)
        self._timers[1] = self._loop.at(self._loop.now + BOOKMARK_SECONDS, self._bookmark_is_due)

    def _location_differs(self, other: Location) -> bool:
        mine = self.location
        elsewhere = mine.namespace not in ("", other.namespace)
        return elsewhere or mine.list_path != other.list_path

    def _send(self, data: bytes, what: str, content: Json, version: int) -> None:
        if self._stalled or self._ended is not None:
            return
        due = max(self._last_due, self._loop.now + self._client.watch_delay())
        self._last_due = due
        self._on_the_way.append((due, data, (what, content, version)))
        if len(self._on_the_way) == 1 and self._arrival is not None:
            self._loop.at(due, self._arrived)

    def _arrived(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    # The client's side.

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._next()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def read(self) -> bytes:
        return b""

    def close(self) -> None:
        """Take note that the client has let go."""
        for timer in self._timers:
            timer.cancel()
        self._on_the_way.clear()
        if self._ended is None:
            self._ended = _END

    async def _next(self) -> bytes | None:
        if self._rest:
            data, self._rest = self._rest, b""
            self._show(self._rest_shows)
            self._rest_shows = []
            return data
        while not self._has_arrived():
            if isinstance(self._ended, Exception):
                raise self._ended
            if self._ended is not None:
                return None
            self._arrival = self._loop.create_future()
            if self._on_the_way:
                self._loop.at(self._on_the_way[0][0], self._arrived)
            await self._arrival
        return self._take()

    def _has_arrived(self) -> bool:
        return bool(self._on_the_way) and self._on_the_way[0][0] <= self._loop.now

    def _take(self) -> bytes | None:
        """Join what has arrived, and sometimes cut it where no line ends."""
        parts, shows = [], []
        while self._has_arrived():
            _, data, show = self._on_the_way.popleft()
            if show[0] == "END":
                self._ended = _END
                break
            parts.append(data)
            shows.append(show)
        whole = b"".join(parts)
        if not whole:
            self._show(shows)
            return None if self._ended is not None else b""
        if self._client.splits_chunk() and len(parts[-1]) > 1:
            at = len(whole) - len(parts[-1]) // 2
            self._rest, self._rest_shows = whole[at:], [shows.pop()]
            whole = whole[:at]
        self._show(shows)
        return whole

    def _show(self, shows: list[tuple[str, Json, int]]) -> None:
        path = self.location.list_path
        for what, content, version in shows:
            self._server.history.shown(
                self._loop.now,
                self._client.name,
                path,
                what=what,
                content=content,
                version=version,
            )
