"""Many seeds, in one process or several.

A module of its own: processes that are started anew can't find functions of `__main__`.
"""

import contextlib
import gc
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.planted import planted
from tests.simulation.run import Result, shared, simulate

_SEEDS_PER_BATCH = 20
# What a run leaves behind is young; some of it dies only when the next run takes its place.
_WHOLE_COLLECTION_EVERY = 10
_YOUNG, _ALL = 0, 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Some seeds, and how to run them."""

    seeds: range
    verbose: bool = False
    plant: str = ""


def run_seeds(whole: Batch, *, jobs: int) -> Iterator[tuple[Result, float]]:
    """Yield results and CPU seconds in the order of seeds, however many processes make them."""
    seeds = whole.seeds
    batches = [
        Batch(seeds[i : i + _SEEDS_PER_BATCH], whole.verbose, whole.plant)
        for i in range(0, len(seeds), _SEEDS_PER_BATCH)
    ]
    if jobs == 1:
        for batch in batches:
            yield from run_batch(batch)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for results in pool.imap(run_whole_batch, batches):
            yield from results


def run_whole_batch(batch: Batch) -> list[tuple[Result, float]]:
    """Run a batch to its end, as a process of a pool does."""
    return list(run_batch(batch))


def run_batch(batch: Batch) -> Iterator[tuple[Result, float]]:
    """Run seeds one after the other."""
    shared()
    if not gc.get_freeze_count():
        # What is here now stays: only what a run leaves behind is worth looking at. Once: what the
        # last run left would stay as well.
        gc.collect()
        gc.freeze()
    collecting = gc.isenabled()
    gc.disable()
    try:
        with planted(batch.plant) if batch.plant else contextlib.nullcontext():
            for count, seed in enumerate(batch.seeds, 1):
                began = time.process_time()
                result = simulate(seed, traced=batch.verbose)
                gc.collect(_YOUNG if count % _WHOLE_COLLECTION_EVERY else _ALL)
                yield result, time.process_time() - began
    finally:
        if collecting:
            gc.enable()
