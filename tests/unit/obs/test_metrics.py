"""Metrics are documented, and the documentation is of metrics that exist."""

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from k8s_scheduler import __version__
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.console.pod_resources import resource_page
from k8s_scheduler.console.slis import HealthSlis
from k8s_scheduler.lib.slices import silent_meter
from k8s_scheduler.obs.counters import Counter, Gauge
from k8s_scheduler.obs.histograms import Histogram
from k8s_scheduler.obs.metric_set import exponential
from k8s_scheduler.obs.metrics import FOLLOWED_RELEASE, Metrics, metric_names
from k8s_scheduler.obs.shadow_metrics import ShadowMetrics
from tests.builders import make_pod
from tests.metric_pages import documented, left_out, served


def shadow_registry():
    """Return what only the shadow shows."""
    registry = CollectorRegistry()
    ShadowMetrics(registry)
    return registry


def all_metrics():
    """Yield (name on the wire, type, metric) of everything that is declared."""
    for registry in (Metrics().registry, HealthSlis().registry, shadow_registry()):
        for collector in registry._collector_to_names:
            (family,) = collector.collect()
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            yield family.name + suffix, family.type, collector


def labels_and_buckets(metric):
    if isinstance(metric, Histogram):
        return set(metric.label_names), metric.buckets
    if isinstance(metric, Counter | Gauge):
        return set(metric.label_names), ()
    return set(metric._labelnames), tuple(metric._kwargs.get("buckets") or ())


async def resources_of_pods():
    """Return the metrics about pods' resources, by name on the wire."""
    raw = make_pod("p").request(cpu="1").raw
    raw["spec"]["resources"] = {"limits": {"cpu": "2"}}
    pods = [msgspec.convert(raw, Pod)]
    page = b"".join([piece async for piece in resource_page(pods, silent_meter())])
    return served(page.decode())


async def test_the_page_names_every_metric_and_no_other():
    registries = (Metrics().registry, HealthSlis().registry, shadow_registry())
    existing = {name for registry in registries for name in metric_names(registry)}
    assert set(documented()) == existing | set(await resources_of_pods())


def test_the_page_shows_types_labels_and_buckets_as_they_are():
    page = documented()
    for name, kind, metric in all_metrics():
        labels, buckets = labels_and_buckets(metric)
        assert page[name].kind == {"info": "gauge"}.get(kind, kind), name
        if kind != "info":
            assert page[name].labels == labels, name
        assert page[name].buckets == buckets, name


async def test_the_page_shows_the_metrics_about_pods_resources_as_they_are():
    about_pods = await resources_of_pods()
    assert len(about_pods) == 2
    for name, family in about_pods.items():
        shown = documented()[name]
        assert (shown.kind, shown.labels) == (family.kind, family.labels), name


def test_what_is_left_out_does_not_exist_and_has_a_reason():
    for name, (level, why) in left_out().items():
        assert name not in documented()
        assert level in {"stable", "beta", "alpha", "all", "-"}, name
        assert why, name


def test_exponential_buckets():
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)
    # As a Go program multiplies them, digit for digit.
    assert exponential(0.00001, 1.5, 4)[3] == 0.00001 * 1.5 * 1.5 * 1.5


def test_two_registries_do_not_meet():
    one, two = Metrics(), Metrics()
    one.scheduler.schedule_attempts.labels("scheduled", "p").inc()
    labels = {"result": "scheduled", "profile": "p"}
    name = "scheduler_schedule_attempts_total"
    assert one.registry.get_sample_value(name, labels) == 1
    assert two.registry.get_sample_value(name, labels) is None


def test_the_release_and_the_one_it_follows():
    labels = {"version": __version__, "decides_like": FOLLOWED_RELEASE}
    assert Metrics().registry.get_sample_value("k8s_scheduler_build_info", labels) == 1


def test_a_page_is_read_as_it_is_served():
    metrics = Metrics()
    metrics.scheduler.permit_wait_duration_seconds.labels("Success").observe(1)
    page = served(generate_latest(metrics.registry).decode())
    assert page["scheduler_permit_wait_duration_seconds"].buckets == exponential(0.001, 2, 15)
    assert page["scheduler_permit_wait_duration_seconds"].labels == {"result"}
    assert page["scheduler_schedule_attempts_total"].kind == "counter"
    assert page["scheduler_schedule_attempts_total"].labels is None
