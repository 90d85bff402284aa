"""Timed plugins decide as plain ones do, and tell how long each call took and how it ended."""

import dataclasses
import itertools

import pytest

from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.metering.plugin_timing import (
    Stopwatch,
    is_sampled,
    timed,
)
from k8s_scheduler.core.framework.plugin import Rejection, Wait
from k8s_scheduler.core.framework.preemption import PreemptionPlugin
from k8s_scheduler.core.framework.seeds import seed_of
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness

NAME = "default-scheduler"


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def stopwatch(metrics):
    ticks = itertools.count()
    return Stopwatch(Meter(metrics.scheduler, (NAME,)), lambda: float(next(ticks)))


@pytest.fixture
def h():
    harness = FullHarness()
    for number in range(3):
        harness.node(
            make_node(f"n{number}").offers(cpu=str(2 + number), memory="8Gi", pods="9").obj()
        )
    return harness


def plain(h):
    return inside(h.core).profiles[NAME]


def observed(metrics):
    """Return (plugin, point, status) -> number of calls."""
    return {
        (s.labels["plugin"], s.labels["extension_point"], s.labels["status"]): s.value
        for family in metrics.registry.collect()
        if family.name == "scheduler_plugin_execution_duration_seconds"
        for s in family.samples
        if s.name.endswith("_count")
    }


def queued(pod):
    return QueuedPod(pod, timestamp=0.0, attempts=1)


def test_decisions_are_the_same_and_every_point_is_timed(metrics, stopwatch, h):
    pod = queued(make_pod("p").request(cpu="1").obj())
    expected = inside(h.core).cycle.decide(plain(h), pod)
    assert inside(h.core).cycle.decide(timed(plain(h), stopwatch), pod).row == expected.row
    calls = observed(metrics)
    assert calls["NodeResourcesFit", "PreFilter", "Success"] == 1
    assert calls["NodeResourcesFit", "Filter", "Success"] == 1
    assert calls["NodeResourcesFit", "Score", "Success"] == 1
    assert calls["InterPodAffinity", "PreFilter", "Skip"] == 1
    assert {point for _, point, _ in calls} >= {"PreFilter", "Filter", "PreScore", "Score"}


def test_a_no_of_all_nodes_is_unschedulable(metrics, stopwatch, h):
    inside(h.core).cycle.decide(
        timed(plain(h), stopwatch), queued(make_pod("p").request(cpu="9").obj())
    )
    assert observed(metrics)["NodeResourcesFit", "Filter", "Unschedulable"] == 1


def with_permit(h, stopwatch, plugin):
    profile = dataclasses.replace(plain(h), permits=(("Stub", plugin),))
    ((_, made),) = timed(profile, stopwatch).permits
    return made


class Permit:
    """Says what it is told to say."""

    other = "an attribute"

    def __init__(self, answer):
        self.answer = answer

    def permit(self, _state, _pod, _node):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "status"),
    [(None, "Success"), (Wait(1.0), "Wait"), (Rejection(()), "Unschedulable")],
)
def test_the_status_follows_from_the_answer(metrics, stopwatch, h, answer, status):
    assert with_permit(h, stopwatch, Permit(answer)).permit(None, None, "n") is answer
    assert observed(metrics) == {("Stub", "Permit", status): 1}


def test_a_plugin_that_raises_ends_in_error(metrics, stopwatch, h):
    with pytest.raises(ValueError, match="broken"):
        with_permit(h, stopwatch, Permit(ValueError("broken"))).permit(None, None, "n")
    assert observed(metrics) == {("Stub", "Permit", "Error"): 1}


def test_it_is_the_plugin_itself_in_all_else(stopwatch, h):
    made = with_permit(h, stopwatch, Permit(None))
    assert made.other == "an attribute"
    assert not hasattr(made, "reserve")
    (preemption,) = (s for s in plain(h).post_filters if s.name == "DefaultPreemption")
    (wrapped,) = (
        s for s in timed(plain(h), stopwatch).post_filters if s.name == "DefaultPreemption"
    )
    assert isinstance(preemption.plugin, PreemptionPlugin)
    assert isinstance(wrapped.plugin, PreemptionPlugin)


def test_a_tenth_of_the_attempts_is_sampled_and_always_the_same(h):
    pods = [make_pod("p").uid(f"uid-{number}").obj() for number in range(2000)]
    sampled = [pod for pod in pods if is_sampled(seed_of(pod, attempt=1))]
    assert 140 < len(sampled) < 260
    profiles = inside(h.core).profiles
    for pod in pods:
        is_plain = profiles.of(queued(pod)) is plain(h)
        assert is_plain == (pod not in sampled)
    # Another attempt at the same pod is another matter.
    again = [pod for pod in sampled if is_sampled(seed_of(pod, attempt=2))]
    assert len(again) < len(sampled) / 2
