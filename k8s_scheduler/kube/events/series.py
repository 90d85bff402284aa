"""Identical events gathered into series, so that a pod that fails for hours costs few writes.

        first                 repeat: PATCH at once        repeats: PATCH at growing intervals
    ────────────► SINGLE ───────────────────────► SERIES ◄──────────┐
                    │                                │  └────────────┘
                    └──────── 6 minutes without a repeat, or the least recent of too many
                                                     ▼
                                                 forgotten; the next one is a new event

Nothing here waits or sends. A series is *owed* a write while the server knows fewer occurrences
than we do; `due_at` says when that write may be made. A series that is forgotten while a write is
owed is still written: the recorder holds it until then.
"""

import msgspec

from k8s_scheduler.kube.events.event import EventNote, Observed, SeriesKey
from k8s_scheduler.lib.byte_lru import ByteLru

IDLE_SECONDS = 360.0
# Below the idle time, so that the last count is written before a series is forgotten.
LONGEST_INTERVAL_SECONDS = 300.0
FIRST_INTERVAL_SECONDS = 5.0
# Of a series, besides its note and names; a character of a note takes up to four bytes.
_SERIES_BYTES = 1400


class Series(msgspec.Struct, eq=False):
    """One event and its repeats."""

    key: SeriesKey
    note: EventNote
    name: str
    first_wall_ns: int
    last_wall_ns: int
    last_at: float
    count: int = 1
    # How many occurrences the server knows of; 0 until the event exists there.
    written: int = 0
    due_at: float = 0.0
    # Waiting for a worker, or with one: it is written once at a time.
    claimed: bool = False
    # It is about this process itself, and does not need the lease to be true.
    is_own: bool = False
    _interval_seconds: float = FIRST_INTERVAL_SECONDS

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        note = self.note
        # Names are in the references, in the key and in the name of the event.
        return _SERIES_BYTES + 4 * len(note.note) + 4 * len(note.regarding.name)

    @property
    def observed(self) -> Observed:
        """What a write would say now."""
        return Observed(self.count, self.last_wall_ns)

    def repeat(self, now: float, wall_ns: int) -> None:
        self.count += 1
        self.last_at = now
        self.last_wall_ns = wall_ns

    def acknowledge(self, count: int, now: float) -> None:
        """Take note that the server knows `count` occurrences, and set when to write again."""
        self.written = count
        if count < 2:
            # The second occurrence tells readers that it goes on, so it is not kept waiting.
            self.due_at = now
        else:
            self.postpone(now)

    def postpone(self, now: float) -> None:
        """Let the next write wait, each time for longer."""
        self.due_at = now + self._interval_seconds
        self._interval_seconds = min(2 * self._interval_seconds, LONGEST_INTERVAL_SECONDS)


class SeriesCache:
    """The series heard of last, least recent first."""

    def __init__(self, limit: int, max_bytes: int = 32 * 1024 * 1024) -> None:
        self._series: ByteLru[SeriesKey, Series] = ByteLru(max_bytes, most=limit)

    def __len__(self) -> int:
        return len(self._series)

    def __contains__(self, series: Series) -> bool:
        return self._series.peek(series.key) is series

    @property
    def nbytes(self) -> int:
        return self._series.nbytes

    @property
    def dropped(self) -> int:
        """How many had to go to make room for others."""
        return self._series.dropped

    def recall(self, key: SeriesKey, now: float) -> Series | None:
        """Return the living series of this key and make it the most recent."""
        series = self._series.peek(key)
        if series is None or now - series.last_at >= IDLE_SECONDS:
            return None
        return self._series.get(key)

    def add(self, series: Series) -> None:
        self._series.put(series.key, series, series.nbytes)

    def forget(self, series: Series) -> None:
        """Drop a series, unless a newer one has taken its key."""
        if series in self:
            self._series.pop(series.key)

    def forget_idle(self, now: float) -> None:
        """Drop every series that has had no repeat for six minutes."""
        while len(self._series):
            oldest = next(iter(self._series))
            series = self._series.peek(oldest)
            if series is None or now - series.last_at < IDLE_SECONDS:
                return
            self._series.pop(oldest)
