"""The garbage collector is measured, and not let walk over what stays."""

import gc
import weakref

from prometheus_client import CollectorRegistry

from k8s_scheduler.app.process.gc_pauses import keep_what_is_here, watched_collector
from k8s_scheduler.obs.histograms import Histogram


class Times:
    """A clock that says when collections begin and end."""

    def __init__(self, *pauses):
        self.now = 0.0
        self.left = [0.0, *pauses]
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls % 2 == 0:
            self.now += self.left.pop(1) if len(self.left) > 1 else 0.0
        return self.now


def pauses_of(registry):
    return {
        sample.labels["generation"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name.endswith("_count")
    }


def collect(generations, pauses):
    """Return how often each generation was seen, and after how many of them it was frozen."""
    registry = CollectorRegistry()
    histogram = Histogram("p", "t", ["generation"], buckets=(1.0,), registry=registry)
    frozen = []
    was = gc.isenabled()
    gc.disable()
    try:
        with watched_collector(
            histogram, clock=Times(*pauses), freeze=lambda: frozen.append(sum_of(registry))
        ):
            for generation in generations:
                gc.collect(generation)
        gc.collect(0)
    finally:
        if was:
            gc.enable()
    return pauses_of(registry), frozen


def sum_of(registry):
    return int(sum(pauses_of(registry).values()))


def test_every_pause_is_measured_until_the_end():
    counts, _ = collect([0, 0, 1, 2], [0.0] * 4)
    assert counts == {"0": 2.0, "1": 1.0, "2": 1.0}


def test_what_a_long_full_collection_left_is_kept():
    _, frozen = collect([2, 1, 2, 2], [0.004, 0.5, 0.006, 0.001])
    assert frozen == [3]


def test_what_is_here_is_kept_and_garbage_is_not():
    class Ring:
        pass

    keep_what_is_here()
    before = gc.get_freeze_count()
    ring = Ring()
    ring.self = ring
    kept = [Ring() for _ in range(1000)]
    gone = weakref.ref(ring)
    del ring
    try:
        keep_what_is_here()
        assert gc.get_freeze_count() - before >= len(kept)
        assert gone() is None
    finally:
        gc.unfreeze()
