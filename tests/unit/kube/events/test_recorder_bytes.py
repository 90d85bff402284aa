"""What waits to be written about pods is bounded in bytes, however long the texts are."""

import gc
import tracemalloc

from k8s_scheduler.kube.events import recorder as recorders
from k8s_scheduler.kube.events.series import SeriesCache
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.write.conditions import ConditionQueue
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.api import FakeApi
from tests.unit.kube.events.test_recorder import note
from tests.unit.kube.write_fakes import condition

KIB = 1024
MIB = 1024 * KIB


def allocated(work):
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0], kept
    finally:
        tracemalloc.stop()


class TestConditions:
    """The queue of conditions."""

    def test_long_messages_push_out_the_oldest(self):
        queue = ConditionQueue(50_000, max_bytes=MIB)
        dropped = [
            len(queue.put(condition(f"p{number}", f"{number} {'x' * 32 * KIB}")))
            for number in range(100)
        ]
        assert queue.nbytes <= MIB
        assert sum(dropped) == queue.dropped == 100 - len(queue) > 60

    def test_bytes_are_given_back_whichever_way_a_patch_leaves(self):
        queue = ConditionQueue(10)
        for name in "abcd":
            queue.put(condition(name, name * 1000))
        queue.put(condition("a", "short"))
        taken = queue.take()
        assert taken is not None
        assert taken.message == "short"
        queue.withdraw(condition("b").uid)
        assert queue.nbytes == sum(condition(name, name * 1000).nbytes for name in "cd")
        queue.end()
        assert queue.nbytes == 0

    def test_the_last_one_stays_however_long_it_is(self):
        queue = ConditionQueue(10, max_bytes=100)
        assert queue.put(condition("a", "x" * KIB)) == []
        assert [patch.name for patch in queue.put(condition("b", "x" * KIB))] == ["a"]
        assert len(queue) == 1


class TestEvents:
    """Series and what is to be written."""

    def test_a_note_is_kept_as_long_as_the_server_takes_it(self):
        booth = Recorder()

        def record():
            for number in range(50):
                booth.recorder.record(note(f"p{number}", text=f"{number} {'x' * 100 * KIB}"))

        taken, _ = allocated(record)
        assert taken < 50 * 8 * KIB
        assert booth.recorder.series.nbytes < 50 * 8 * KIB

    def test_series_are_counted_about_as_they_are(self):
        booth = Recorder()

        def record():
            for number in range(200):
                booth.recorder.record(note(f"pod-{number}", text=f"{number} {'x' * 500}"))

        taken, _ = allocated(record)
        assert 0.5 < booth.recorder.series.nbytes / taken < 2.5

    def test_too_many_bytes_push_out_the_least_recent(self):
        cache = SeriesCache(1000, max_bytes=10 * KIB)
        booth = Recorder()
        booth.recorder._series = cache
        for number in range(20):
            booth.recorder.record(note(f"p{number}", text="x" * 500))
        assert cache.nbytes <= 10 * KIB
        assert cache.dropped == 20 - len(cache) > 10

    def test_what_waits_to_be_written_is_bounded_in_bytes(self, monkeypatch):
        monkeypatch.setattr(recorders, "QUEUE_BYTES", 20 * KIB)
        booth = Recorder()
        for number in range(30):
            booth.recorder.record(note(f"p{number}", text="x" * 500))
        assert booth.recorder._ready_bytes <= 20 * KIB
        assert len(booth.recorder._ready) < 10
        assert booth.dropped() > 20


class Recorder:
    """A recorder that writes nothing."""

    def __init__(self):
        self.metrics = Metrics()
        self.recorder = recorders.EventRecorder(
            Caller(transport=FakeApi(), timeout_seconds=4.0),
            hostname="h",
            metrics=self.metrics.kube,
        )

    def dropped(self):
        name = "k8s_scheduler_events_dropped_total"
        return self.metrics.registry.get_sample_value(name, {"reason": "queue_full"})
