"""A watch on the one Lease, beside looks and renewals.

    nothing seen yet ──a look──► watch from the version last seen ──► events
                                        ▲                               │ cut, silent, refused,
                                        └───── a retry period ──────────┘ garbage, 410

A look comes every half second. A renewal between the last look and an outage would be seen only
after the outage, and the whole lease duration counted from then. The watch shows it as soon as it
is written. Correctness does not depend on the watch: what it shows is treated like the answer to a
look, and a candidate reads the lease before it takes it. Without the right to watch, or with a
stream that has died silently, changes are seen as late as by looks alone.

A holder renews several times per lease duration. So if a stream shows nothing for a whole duration,
the stream or the holder is dead; in both cases a new stream is opened.

A holder keeps watching: if its Lease is deleted, the watch shows it at once (`vanished`).
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from k8s_scheduler.api.meta import ObjectMeta, Wire
from k8s_scheduler.kube.errors import Forbidden, Gone, KubeError
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.lease.lease import JITTER_FACTOR, LeaseConfig, LeaseSpec, Record
from k8s_scheduler.kube.lease.observed_lease import ObservedLease
from k8s_scheduler.kube.resources import Resource, is_newer
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.watch.decoding import DELETED, ObjectDecoder, WatchEvent
from k8s_scheduler.kube.watch.queries import watch_query
from k8s_scheduler.kube.watch.stall_guard import StallGuard
from k8s_scheduler.kube.watch.streams import STALLED, LineSplitter, StreamError
from k8s_scheduler.kube.watch.watching import open_watch

# The server ends a watch after a time between these.
_SHORTEST_WATCH_SECONDS: Final = 300.0
_LONGEST_WATCH_SECONDS: Final = 600.0
# Begins with the lease as the server's cache has it, however old: where history is gone.
_FROM_ANYWHERE: Final = "0"


class LeaseObject(Wire, frozen=True, gc=False):
    """A lease as a watch shows it."""

    metadata: ObjectMeta
    spec: LeaseSpec | None = None


class LeaseWatch:
    """Use it as an async context manager for as long as a candidate waits or holds."""

    def __init__(
        self,
        transport: Transport,
        config: LeaseConfig,
        *,
        observed: ObservedLease,
        vanished: Callable[[], None],
        complain: Callable[[str, KubeError], None],
        timing: Timing,
    ) -> None:
        self._transport = transport
        self._config = config
        self._observed = observed
        self._vanished = vanished
        self._complain = complain
        self._sleep = timing.sleep
        self._uniform = timing.uniform
        self._resource = Resource(
            group="coordination.k8s.io",
            version="v1",
            plural="leases",
            kind="Lease",
            namespaced=True,
            type=LeaseObject,
            # By this the server knows that one lease is meant, which the role allows by its name.
            field_selector=f"metadata.name={config.name}",
            namespace=config.namespace,
        )
        self._decoder = ObjectDecoder(self._resource)
        self._stall_guard = StallGuard(config.lease_duration_seconds)
        self._history_is_gone = False
        self._is_forbidden = False
        self._worth_a_try = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._worth_a_try = asyncio.Event()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait(self, seconds: float) -> None:
        """Wait so long, or until the lease is shown released or gone; the watch goes on after."""
        if self._task is None and self._observed.version:
            self._task = asyncio.create_task(self._run())
        if self._task is not None and self._task.done():
            self._task.result()  # a mistake of our own, which is not to be hidden
        # A standby looks twice a second for as long as it lives, so this wait must be cheap: the
        # end of the time and the watch set the same event, and there is one waiter.
        pause = asyncio.ensure_future(self._sleep(seconds))
        pause.add_done_callback(self._is_time)
        try:
            await self._worth_a_try.wait()
        finally:
            pause.remove_done_callback(self._is_time)
            if not pause.done():
                pause.cancel()
                await asyncio.gather(pause, return_exceptions=True)
        self._worth_a_try.clear()
        if not pause.cancelled():
            pause.result()  # as above

    def _is_time(self, _pause: "asyncio.Future[None]") -> None:
        self._worth_a_try.set()

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        retry_seconds = self._config.retry_period_seconds
        while True:
            began = clock()
            try:
                await self._watch_once()
                if clock() - began >= retry_seconds:
                    continue  # it ended as agreed
            except Gone:
                self._history_is_gone = True
            except KubeError as error:
                self._tell(error)
            await self._sleep(retry_seconds * (1.0 + JITTER_FACTOR * self._uniform()))

    def _tell(self, error: KubeError) -> None:
        """Log a problem; a missing right only once, since it stays missing until it is granted."""
        told = self._is_forbidden
        self._is_forbidden = isinstance(error, Forbidden)
        stalled = isinstance(error, StreamError) and error.reason == STALLED
        if not stalled and not (told and self._is_forbidden):
            self._complain("watch", error)

    async def _watch_once(self) -> None:
        spread_seconds = _LONGEST_WATCH_SECONDS - _SHORTEST_WATCH_SECONDS
        query = watch_query(
            self._resource,
            _FROM_ANYWHERE if self._history_is_gone else self._observed.version,
            timeout_seconds=_SHORTEST_WATCH_SECONDS + spread_seconds * self._uniform(),
        )
        async with (
            self._stall_guard.guard(),
            open_watch(self._transport, self._resource.list_path, query) as stream,
        ):
            self._history_is_gone = self._is_forbidden = False
            splitter = LineSplitter()
            chunks = stream.chunks()
            while (chunk := await self._stall_guard.next_chunk(chunks)) is not None:
                for line in splitter.feed(chunk):
                    self._take(line)

    def _take(self, line: bytes) -> None:
        decoded = self._decoder.event(line)
        if isinstance(decoded, KubeError):
            raise decoded
        # A bookmark says nothing about the lease, and what can't be read is left to the looks.
        if not isinstance(decoded, WatchEvent):
            return
        metadata = decoded.object.metadata
        if metadata.name != self._config.name:
            return
        if decoded.type == DELETED:
            # Its record was shown before, or is lost: a delete is no renewal. One of a version that
            # was seen is of a lease before this one.
            if is_newer(metadata.resource_version, self._observed.version):
                self._vanished()
            self._worth_a_try.set()
            return
        record = Record(metadata.resource_version, decoded.object.spec or LeaseSpec())
        if self._observed.show(record) and not record.holder:
            self._worth_a_try.set()
