"""The events recorder: tells the API server what happened to pods, when there is time for it.

    record ──► series (`series`) ─────► ready, bounded ──► workers ──► POST, PATCH
                  ▲    ▲      │ not due yet                    │
                  │    │      ▼                                │
                  │    └─ agenda ── tick: due ──► ready        │
                  └─────────── owed again after a write ◄──────┘

Events are the least of all writes. `record` never waits, never raises and costs a dictionary
lookup; what cannot be written is dropped and counted by reason. The workers are few, so that
events never take the connections that binds need.

A process that does not lead records no events about pods: its state is out of date, and it would
report its own missing right to write as a failure of the pod. Events that were recorded before are
written after the lease was given back, and dropped after it was lost (`may_tell`). Events of a
process about itself, as about a configuration that it refuses, need no lease.

A series that is owed a write is in exactly one place (ready, agenda, or with a worker: `claimed`),
also after the cache has forgotten it. So its writes never overtake each other, and repeats that
come meanwhile are gathered into the next one. A POST without an answer is repeated under the same
name: if the first did arrive, the server says so (409) and that is fine.
"""

import asyncio
import heapq
import itertools
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import replace
from enum import StrEnum

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.events.event import (
    EventNote,
    event_name,
    object_key,
    series_key,
    shortened,
)
from k8s_scheduler.kube.events.series import Series, SeriesCache
from k8s_scheduler.kube.events.writer import EventWriter, Written
from k8s_scheduler.kube.http.caller import Caller, always
from k8s_scheduler.kube.waiting import wait_within
from k8s_scheduler.kube.workers import EVENT_WORKERS
from k8s_scheduler.lib.token_bucket import TokenBucket
from k8s_scheduler.lib.worker_pool import WorkerPool
from k8s_scheduler.obs.metrics import KubeMetrics


class ObjectLimits:
    """One bucket per object, of one event at least, for the objects heard of last.

    An object that is forgotten starts with a full bucket again; the bound on memory is worth it.
    """

    def __init__(
        self, *, burst: int = 25, refill_seconds: float = 300.0, objects: int = 4096
    ) -> None:
        self._burst = float(burst)
        self._rate_per_second = 1.0 / refill_seconds
        self._objects = objects
        # Of most objects there is one event: its time stands for a bucket of which one was taken.
        self._buckets: OrderedDict[Hashable, TokenBucket | float] = OrderedDict()

    def allows(self, key: Hashable, now: float) -> bool:
        """Return whether one more event about this object may be written, and count it."""
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = now
            if len(self._buckets) > self._objects:
                self._buckets.popitem(last=False)
            return True
        self._buckets.move_to_end(key)
        if not isinstance(bucket, TokenBucket):
            first_at = bucket
            bucket = self._buckets[key] = TokenBucket(self._rate_per_second, self._burst, first_at)
            bucket.take(first_at)
        return bucket.take(now)


log = logging.getLogger(__name__)

# Room for the events of a large burst of binds and of as many pods that fit nowhere, about a
# kilobyte each. The server takes some hundred a second, and bindings go first.
QUEUE_LIMIT = 50_000
QUEUE_BYTES = 96 * 1024 * 1024
# A `Scheduled` event per bind passes through here as well: it must not push out, within seconds,
# the series of pods that keep failing.
SERIES_LIMIT = 16384
TICK_SECONDS = 1.0
CALL_TIMEOUT_SECONDS = 10.0


class Drop(StrEnum):
    """Why an event was not written."""

    SPAM = "spam"
    QUEUE_FULL = "queue_full"
    NO_ANSWER = "no_answer"
    REFUSED = "refused"
    FORBIDDEN = "forbidden"
    STOPPED = "stopped"
    NOT_LEADING = "not_leading"


_DROPS = {
    Written.NO_ANSWER: Drop.NO_ANSWER,
    Written.REFUSED: Drop.REFUSED,
    Written.FORBIDDEN: Drop.FORBIDDEN,
    Written.NOT_LEADING: Drop.NOT_LEADING,
}


class EventRecorder:
    """Records events; `run` writes them."""

    def __init__(
        self,
        caller: Caller,
        *,
        hostname: str,
        metrics: KubeMetrics,
        may_tell: Callable[[], bool] = always,
    ) -> None:
        """Take events while `caller.may_write`; write those that were taken while `may_tell`."""
        timing = caller.timing
        self._may_write = caller.may_write
        self._clock = timing.clock
        self._wall_clock_ns = timing.wall_clock_ns
        self._sleep = timing.sleep
        self._dropped = {
            reason: metrics.events_dropped.labels(reason=reason.value) for reason in Drop
        }
        self._writer = EventWriter(
            replace(caller, may_write=may_tell, timeout_seconds=CALL_TIMEOUT_SECONDS),
            hostname=hostname,
            log=BoundedLog(log, timing.clock),
        )
        self._limits = ObjectLimits()
        self._series = SeriesCache(SERIES_LIMIT)
        self._ready: deque[Series] = deque()
        self._ready_bytes = 0
        self._agenda: list[tuple[float, int, Series]] = []
        self._order = itertools.count()
        self._under_way = 0
        self._last_name_ns = 0
        self._accepting = True
        self._writers = WorkerPool(EVENT_WORKERS, self._next, self._work_off)
        self._idle = asyncio.Event()
        self._idle.set()

    def record(self, note: EventNote, *, is_own: bool = False) -> None:
        """Take an event; it is written later, gathered with its like, or dropped.

        Events of a process about itself (`is_own`), as after an operator's mistake, are rare, so
        they are not limited; and since they tell of no decision they need no lease.
        """
        if not self._accepting:
            self._dropped[Drop.STOPPED].inc()
            return
        if not is_own and not self._may_write():
            self._dropped[Drop.NOT_LEADING].inc()
            return
        now, wall_ns = self._clock(), self._wall_clock_ns()
        note = shortened(note)
        key = series_key(note)
        series = self._series.recall(key, now)
        if series is not None:
            series.repeat(now, wall_ns)
        # Repeats cost no new object on the server, so only first occurrences are counted as spam.
        elif is_own or self._limits.allows(object_key(key), now):
            # Names must differ even if the wall clock stands still or is set back.
            self._last_name_ns = max(wall_ns, self._last_name_ns + 1)
            name = event_name(note.regarding.name, self._last_name_ns)
            series = Series(key, note, name, wall_ns, wall_ns, now, is_own=is_own)
            self._series.add(series)
        else:
            self._dropped[Drop.SPAM].inc()
            return
        self._plan(series)

    @property
    def series(self) -> SeriesCache:
        return self._series

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ticks())
            group.create_task(self._writers.run())

    async def drain(self, timeout_seconds: float) -> int:
        """Take no more, write what is owed; return how many events were left unwritten."""
        self._accepting = False
        while self._agenda:
            self._make_ready(heapq.heappop(self._agenda)[2])
        await wait_within(self._idle, timeout_seconds, sleep=self._sleep)
        left = len(self._ready) + self._under_way
        self._dropped[Drop.STOPPED].inc(left)
        self._ready.clear()
        self._ready_bytes = 0
        return left

    def _plan(self, series: Series) -> None:
        """Have an owed series written when it is due."""
        if series.claimed or series.written >= series.count:
            return
        series.claimed = True
        if series.due_at <= self._clock() or not self._accepting:
            self._make_ready(series)
            return
        heapq.heappush(self._agenda, (series.due_at, next(self._order), series))
        if len(self._agenda) > SERIES_LIMIT:
            # Series that the cache has forgotten may be owed a count; memory has to end somewhere.
            self._drop(heapq.heappop(self._agenda)[2], Drop.QUEUE_FULL)

    def _make_ready(self, series: Series) -> None:
        if not self._ready:
            self._idle.clear()
        self._ready.append(series)
        self._ready_bytes += series.nbytes
        self._writers.notify()
        is_full = len(self._ready) > QUEUE_LIMIT or self._ready_bytes > QUEUE_BYTES
        if is_full and self._accepting and (oldest := self._next()) is not None:
            self._make_room(oldest)

    def _make_room(self, oldest: Series) -> None:
        if oldest.written and oldest in self._series:
            oldest.claimed = False
            # The event exists and its count is kept, so nothing is lost by writing it later.
            oldest.postpone(self._clock())
            self._plan(oldest)
        else:
            self._drop(oldest, Drop.QUEUE_FULL)

    def _drop(self, series: Series, reason: Drop) -> None:
        self._dropped[reason].inc()
        # Its next occurrence is to be a new event: this one does not exist, or cannot be changed.
        self._series.forget(series)

    async def _ticks(self) -> None:
        while True:
            await self._sleep(TICK_SECONDS)
            now = self._clock()
            while self._agenda and self._agenda[0][0] <= now:
                self._make_ready(heapq.heappop(self._agenda)[2])
            self._series.forget_idle(now)

    def _next(self) -> Series | None:
        if not self._ready:
            return None
        series = self._ready.popleft()
        self._ready_bytes -= series.nbytes
        return series

    async def _work_off(self, series: Series) -> None:
        self._under_way += 1
        try:
            written = await self._writer.write(series)
            series.claimed = False
            if written is not Written.DONE:
                self._drop(series, _DROPS[written])
            elif series.written < series.count:
                self._plan(series)
        finally:
            self._under_way -= 1
            if not self._ready and not self._under_way:
                self._idle.set()
