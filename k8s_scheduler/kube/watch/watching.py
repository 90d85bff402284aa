"""Reading one watch, which may begin as a streaming list.

    initial events ──annotated bookmark──► changes ──► end (as agreed) | StreamError | ApiError

Until the annotated bookmark the events are a list and go into a `Relist`; after it, and in a
plain watch from the start, they are changes. Chunks are worked off in slices: a burst of
thousands of events lets the loop run in between.

`heard_at` is the moment up to which a watch vouches for the server: that of the last bytes, or of
the end that was agreed on. Where a connection breaks, or ends at another time than agreed, the end
itself says nothing: it may come late, after the server behind it has gone and another has taken its
place.

Versions of changes and bookmarks only grow. One that is lower than what the watch has shown before
is of another history (`set_back.py`): it is not applied, the watch ends, and a list is due.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Generic

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.kube.http.protocol import Response, Stream, Transport
from k8s_scheduler.kube.resources import T
from k8s_scheduler.kube.watch.decoding import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    Bookmark,
    Undecodable,
    WatchEvent,
)
from k8s_scheduler.kube.watch.reflector_parts import CHECK_EVERY, ReflectorParts
from k8s_scheduler.kube.watch.relist import Relist
from k8s_scheduler.kube.watch.set_back import Source
from k8s_scheduler.kube.watch.stall_guard import StallGuard
from k8s_scheduler.kube.watch.streams import INCOMPLETE, SHORT, LineSplitter, StreamError
from k8s_scheduler.lib.slices import Slice
from k8s_scheduler.obs.metrics import KubeMetrics

# So much earlier than agreed, by our clock, a watch may end as agreed: the server's time began
# before its answer came.
_EARLY_SECONDS: Final = 1.0


@asynccontextmanager
async def open_watch(
    transport: Transport, path: str, query: Mapping[str, str]
) -> AsyncIterator[Stream]:
    async with transport.stream(path, query=query) as stream:
        if stream.status != 200:
            raise Response(stream.status, await stream.read(), stream.headers).error()
        yield stream


class Watcher(Generic[T]):
    """Reads one watch after another."""

    def __init__(
        self, parts: ReflectorParts[T], metrics: KubeMetrics, *, on_open: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._on_open = on_open
        self._stall_guard = StallGuard(parts.pace.stall_seconds)
        plural = parts.resource.label
        self._events = {
            kind: metrics.reflector_events.labels(plural, kind)
            for kind in (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR)
        }
        # While set, the open watch is still a streaming list.
        self._relist: Relist[T] | None = None
        self._ticket = 0
        # See the module's docstring; None before the first watch.
        self.heard_at: float | None = None

    @property
    def is_listing(self) -> bool:
        """Whether the watch is, or failed as, a streaming list."""
        return self._relist is not None

    def interrupt(self) -> None:
        """End an open watch for the sake of a fresh list; a list under way is left alone."""
        if self._relist is None:
            self._stall_guard.interrupt()

    async def stream_list(self, query: Mapping[str, str]) -> None:
        """List by a watch, then go on watching; returns when that ends as agreed."""
        self._ticket = self._parts.progress.begin_list()
        self._relist = Relist(self._parts.store)
        await self._run(query)

    async def watch(self, query: Mapping[str, str]) -> None:
        self._relist = None
        await self._run(query)

    async def _run(self, query: Mapping[str, str]) -> None:
        parts = self._parts
        async with (
            self._stall_guard.guard(),
            open_watch(parts.transport, parts.resource.list_path, query) as stream,
        ):
            self._on_open()
            await self._read(stream, agreed_seconds=float(query["timeoutSeconds"]))

    async def _read(self, stream: Stream, *, agreed_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        opened = self.heard_at = loop.time()
        splitter = LineSplitter()
        work = self._parts.start_slice()
        chunks = stream.chunks()
        while (chunk := await self._stall_guard.next_chunk(chunks)) is not None:
            self.heard_at = loop.time()
            work.restart()
            for index, line in enumerate(splitter.feed(chunk)):
                if not await self._take(line, work):
                    return
                if index % CHECK_EVERY == 0 and work.full():
                    await work.breathe()
            work.finish()
            if self._relist is None and self._parts.progress.list_due:
                return
        if self._relist is not None:
            raise StreamError(INCOMPLETE, "the streaming list ended before it was complete")
        ended = loop.time()
        if ended >= opened + agreed_seconds - _EARLY_SECONDS:
            self.heard_at = min(ended, opened + agreed_seconds)
        if ended - opened < self._parts.pace.short_watch_seconds:
            raise StreamError(SHORT, "the watch ended as soon as it was opened")

    async def _take(self, line: bytes, work: Slice) -> bool:
        """Apply an event; return False if it shows that the storage was set back."""
        decoded = self._parts.decoder.event(line)
        if isinstance(decoded, WatchEvent):
            self._events[decoded.type].inc()
            if self._goes_back(decoded.object.metadata.resource_version):
                return False
            self._apply(decoded)
        elif isinstance(decoded, Bookmark):
            self._events[BOOKMARK].inc()
            if self._goes_back(decoded.resource_version):
                return False
            await self._reach(decoded, work)
        elif isinstance(decoded, Undecodable):
            self._events[decoded.type].inc()
            self._parts.undecodable.report(decoded)
            if self._goes_back(decoded.resource_version):
                return False
            self._apply_undecodable(decoded)
        else:
            self._events[ERROR].inc()
            raise decoded
        return True

    def _goes_back(self, version: str) -> bool:
        """Return whether a version is lower than one that was shown before; then it is reported.

        What a streaming list shows first comes in no order of versions.
        """
        if self._relist is not None or not self._parts.progress.goes_back(version):
            return False
        self._parts.report_set_back(Source.WATCH, seen=version)
        return True

    def _apply(self, event: WatchEvent[T]) -> None:
        metadata = event.object.metadata
        target = self._parts.store if self._relist is None else self._relist
        if event.type == DELETED:
            # Whatever its uid: events come in order, so nothing is left under this key.
            target.remove(key_of(metadata))
        else:
            target.put(event.object)
        self._advance(metadata.resource_version)

    def _apply_undecodable(self, found: Undecodable) -> None:
        target = self._parts.store if self._relist is None else self._relist
        if found.type == DELETED:
            target.remove(found.key)
        else:
            target.keep(found.key, uid=found.uid)
        self._advance(found.resource_version)

    async def _reach(self, bookmark: Bookmark, work: Slice) -> None:
        if self._relist is None:
            self._advance(bookmark.resource_version)
        elif bookmark.initial_events_end:
            if not bookmark.resource_version:
                raise StreamError(INCOMPLETE, "the streaming list has no resourceVersion")
            relist, version = self._relist, bookmark.resource_version
            await relist.finish(work)
            self._relist = None
            self._parts.complete_list(self._ticket, version, went_back=relist.went_back)

    def _advance(self, resource_version: str) -> None:
        if self._relist is None and resource_version:
            self._parts.progress.resource_version = resource_version
