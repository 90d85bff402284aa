"""What the core counts: points, who was asked, bindings under way, ends."""

import itertools

import pytest

from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.framework import points as watch
from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueuePlace
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_pod


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def meter(metrics):
    ticks = itertools.count()
    return Meter(metrics.scheduler, ("p",), perf=lambda: float(next(ticks)))


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(name, labels)


def test_a_point_is_observed_with_its_status_and_returns_the_time(metrics, meter):
    points = meter.watches["p"]
    started = points.now()
    assert points.ended(watch.FILTER, watch.SUCCESS, started) == started + 1
    points.took(watch.FILTER, watch.SUCCESS, 2.5)
    labels = {"extension_point": "Filter", "status": "Success", "profile": "p"}
    name = "scheduler_framework_extension_point_duration_seconds"
    assert value(metrics, f"{name}_count", **labels) == 2
    assert value(metrics, f"{name}_sum", **labels) == 3.5


def test_who_was_asked_is_shown_with_the_next_measurement(metrics, meter):
    points = meter.watches["p"]
    points.asked(watch.FILTER, "NodeName", 5)
    points.asked(watch.FILTER, "NodeName", 3)
    points.asked(watch.PRE_FILTER, "NodeName")
    name = "scheduler_plugin_evaluation_total"
    labels = {"plugin": "NodeName", "profile": "p"}
    assert value(metrics, name, extension_point="Filter", **labels) is None
    meter.measure(Cache())
    meter.measure(Cache())
    assert value(metrics, name, extension_point="Filter", **labels) == 8
    assert value(metrics, name, extension_point="PreFilter", **labels) == 1


def test_bindings_under_way_are_those_of_the_moment(metrics, meter):
    under_way = ["a", "b"]
    meter.watch_bindings(under_way.__len__)
    assert value(metrics, "scheduler_goroutines", operation="binding") == 2
    under_way.clear()
    assert value(metrics, "scheduler_goroutines", operation="binding") == 0


def test_pods_are_counted_as_entities_too(metrics, meter):
    queued = QueuedPod(make_pod("a").obj(), timestamp=0.0)
    meter.moved(queued, source=None, target=QueuePlace.ACTIVE)
    meter.entered(QueuePlace.ACTIVE, "UnscheduledPodAdd")
    meter.measure(Cache())
    for name in ("scheduler_pending_pods", "scheduler_queued_entities"):
        entity = {"type": "pod"} if "entities" in name else {}
        assert value(metrics, name, queue="active", **entity) == 1
        assert value(metrics, name, queue="gated", **entity) == 0
    labels = {"queue": "active", "event": "UnscheduledPodAdd"}
    assert value(metrics, "scheduler_queue_incoming_pods_total", **labels) == 1
    name = "scheduler_queue_incoming_entities_total"
    assert value(metrics, name, type="pod", **labels) == 1


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (99, "15+")])
def test_many_attempts_are_one_label(metrics, meter, attempts, label):
    queued = QueuedPod(make_pod("a").obj(), timestamp=0.0, first_active=5.0, attempts=attempts)
    meter.bound(queued, now=7.0)
    name = "scheduler_pod_scheduling_sli_duration_seconds_sum"
    assert value(metrics, name, attempts=label) == 2.0


def test_ends_of_waits_and_preemptions(metrics, meter):
    meter.permit_waited(watch.UNSCHEDULABLE, 3.0)
    meter.preemption_ended(failed=False)
    meter.preemption_ended(failed=True)
    meter.bound_after_flush()
    name = "scheduler_permit_wait_duration_seconds_sum"
    assert value(metrics, name, result="Unschedulable") == 3.0
    name = "scheduler_preemption_goroutines_execution_total"
    assert [value(metrics, name, result=r) for r in ("success", "error")] == [1, 1]
    assert value(metrics, "scheduler_pod_scheduled_after_flush_total") == 1
