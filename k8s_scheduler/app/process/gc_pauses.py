"""The garbage collector, kept from stopping everything for long.

What a scheduler holds (nodes, pods, what is kept of them) is large, lives for long and is hardly
ever garbage, yet every full collection walks all of it while nothing else runs. So what is there
when the caches are full is taken out of its sight, and what has grown since is taken out as well
as soon as walking it shows. Every pause is measured.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from k8s_scheduler.obs.histograms import Histogram

# A quarter of what a slice of the event loop may take.
_LONG_SECONDS: Final = 0.005
_FULL: Final = 2


def keep_what_is_here() -> None:
    """Take everything that is in memory out of the collector's sight, but no garbage."""
    gc.collect()
    gc.freeze()


@contextmanager
def watched_collector(
    pauses: Histogram,
    *,
    clock: Callable[[], float] = time.perf_counter,
    freeze: Callable[[], None] = gc.freeze,
) -> Iterator[None]:
    """Measure every pause while the body runs, and keep full collections short."""
    began = 0.0
    seconds = [pauses.labels(str(generation)) for generation in range(_FULL + 1)]

    def seen(phase: str, info: Mapping[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = clock()
            return
        pause, generation = clock() - began, info["generation"]
        seconds[generation].observe(pause)
        if generation == _FULL and pause > _LONG_SECONDS:
            # What a full collection leaves is no garbage: it can be kept as it is.
            freeze()

    gc.callbacks.append(seen)
    try:
        yield
    finally:
        gc.callbacks.remove(seen)
