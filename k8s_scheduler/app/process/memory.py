"""Keeps the process below its memory limit: caches shrink before anything else has to give.

    room ──── more than 90 % of the limit ────▶ short: the budget of kept evaluations is halved,
      ▲                                                free memory is given back to the system
      └──── less than 75 % for a minute ────── the budget is doubled, up to what it was

    once a minute, with or without a limit: if a tenth of the memory is free, it is given back

glibc keeps freed memory for later: all but the end of its heap stays with the process until
`malloc_trim` is called, which returns every page that holds nothing. With other C libraries, and
glibc before 2.33, nothing is known and nothing is done. Python's own allocator keeps small objects
in pieces of 1 MiB, and one object keeps all of a piece; with `PYTHONMALLOC=malloc` small objects
are glibc's, which returns single pages.

What is kept only saves work, so decisions are the same with any budget. The core is told by a
message like everything else: a recording has it.
"""

import asyncio
import ctypes
import gc
import logging
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.obs.scheduler_metrics import SchedulerMetrics


class _Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


_LIBRARY: Final = ctypes.CDLL(None)
_TRIM: Final = getattr(_LIBRARY, "malloc_trim", None)
_INFO: Final = getattr(_LIBRARY, "mallinfo2", None)
if _INFO is not None:
    _INFO.restype = _Mallinfo2


def used_bytes() -> int | None:
    """Return how much the allocator has given out; None where that can't be known."""
    if _INFO is None:
        return None
    info = _INFO()
    return int(info.uordblks + info.hblkhd)


def trim() -> None:
    """Return every free page to the system; milliseconds, in which nothing can be allocated."""
    if _TRIM is not None:
        _TRIM(0)


logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
# Shares of the limit; and as many looks go by before the next step in either direction.
_SHORT: Final = 0.9
_ROOMY: Final = 0.75
_BETWEEN_SHRINKING: Final = 5
_BETWEEN_GROWING: Final = 60
LEAST_BUDGET_BYTES: Final = 4 * 1024 * 1024
# Giving memory back stops everything for as long as it takes, a quarter of a millisecond for each
# MiB: so seldom, and only if there is so much to give.
_BETWEEN_TRIMS: Final = 60
_WORTH_SHARE: Final = 0.1
_WORTH_BYTES: Final = 8 * 1024 * 1024
# Of the cgroup's limit: the interpreter, buffers and a burst of watch events need the rest.
_SHARE_OF_CGROUP: Final = 0.8
# A limit above this is none: version 1 of cgroups says so with a number.
_NO_LIMIT: Final = 1 << 60


class CacheSize(NamedTuple):
    """What a cache takes, and how many entries had to go since the start."""

    nbytes: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Caches:
    """What may shrink: how much they may take at most, how they are told, how large they are."""

    most_bytes: int
    set_budget: Callable[[int], None]
    sizes: Callable[[], Mapping[str, CacheSize]]


class ProcessMemory:
    """The memory of this process."""

    def resident(self) -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    def used(self) -> int | None:
        return used_bytes()

    def give_back(self) -> None:
        """Have the allocator return what is free; it keeps it for later otherwise."""
        gc.collect(1)
        trim()


class MemoryWatch:
    """Looks at the memory of the process once a second."""

    def __init__(
        self,
        limit_bytes: int,
        caches: Caches,
        *,
        metrics: SchedulerMetrics,
        memory: ProcessMemory | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Keep below `limit_bytes`; 0 is no limit."""
        self._limit_bytes = limit_bytes
        self._caches = caches
        self._budget_bytes = caches.most_bytes
        self._metrics = metrics
        self._memory = memory or ProcessMemory()
        self._sleep = sleep
        self._looks_since = _BETWEEN_GROWING
        self._looks_since_trim = 0
        # What is resident and neither given out by the allocator nor given back when asked for:
        # code, stacks, the rest of pages that are in use.
        self._fixed_bytes = 0
        self._shown: dict[str, int] = {}
        metrics.memory_limit_bytes.set(limit_bytes)
        metrics.cache_budget_bytes.set(caches.most_bytes)

    async def run(self) -> None:
        while True:
            self.look()
            await self._sleep(LOOK_SECONDS)

    def look(self) -> None:
        self._show()
        self._looks_since_trim += 1
        if self._looks_since_trim >= _BETWEEN_TRIMS:
            self._trim()
        if not self._limit_bytes:
            return
        self._looks_since += 1
        used = self._memory.resident()
        is_short = used > _SHORT * self._limit_bytes
        if is_short and self._looks_since >= _BETWEEN_SHRINKING:
            self._shrink(used)
        elif (
            used < _ROOMY * self._limit_bytes
            and self._budget_bytes < self._caches.most_bytes
            and self._looks_since >= _BETWEEN_GROWING
        ):
            self._take(min(2 * self._budget_bytes, self._caches.most_bytes))

    def _trim(self) -> None:
        self._looks_since_trim = 0
        used = self._memory.used()
        if used is None:
            return
        before = self._memory.resident()
        # The first time it is not known what is fixed: that is found out by trying.
        if before - used - self._fixed_bytes < max(_WORTH_BYTES, _WORTH_SHARE * before):
            return
        self._memory.give_back()
        after = self._memory.resident()
        self._fixed_bytes = max(0, after - used)
        fields = {"before_bytes": before, "after_bytes": after}
        logger.info("Free memory was given back to the system", extra={"fields": fields})

    def _shrink(self, used: int) -> None:
        budget = max(self._budget_bytes // 2, min(LEAST_BUDGET_BYTES, self._caches.most_bytes))
        fields = {"used_bytes": used, "limit_bytes": self._limit_bytes, "cache_bytes": budget}
        if budget < self._budget_bytes:
            logger.warning("Memory is short, caches shrink", extra={"fields": fields})
            self._metrics.memory_shrinks.inc()
            self._take(budget)
        elif self._looks_since >= _BETWEEN_GROWING:
            logger.warning(
                "Memory is short, and caches are as small as they can be: raise the limit",
                extra={"fields": fields},
            )
            self._looks_since = 0
        else:
            return
        self._memory.give_back()

    def _take(self, budget: int) -> None:
        self._looks_since = 0
        self._budget_bytes = budget
        self._metrics.cache_budget_bytes.set(budget)
        self._caches.set_budget(budget)

    def _show(self) -> None:
        for name, size in self._caches.sizes().items():
            self._metrics.cache_bytes.labels(name).set(size.nbytes)
            more = size.dropped - self._shown.get(name, 0)
            self._metrics.cache_dropped.labels(name).inc(max(0, more))
            self._shown[name] = size.dropped


def default_limit_bytes(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return 80 % of the smallest limit that the cgroup has, 0 if it has none."""
    found = [
        limit
        for path in (root / "memory.max", root / "memory" / "memory.limit_in_bytes")
        if (limit := _read_limit(path)) is not None
    ]
    return int(_SHARE_OF_CGROUP * min(found)) if found else 0


def _read_limit(path: Path) -> int | None:
    try:
        limit = int(path.read_text())
    except (OSError, ValueError):
        # There is no such file, or it says "max".
        return None
    return limit if 0 < limit < _NO_LIMIT else None
