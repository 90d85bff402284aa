"""Metrics are documented, and the documentation is of metrics that exist."""

from prometheus_client import generate_latest

from k8s_scheduler import __version__
from k8s_scheduler.console.slis import HealthSlis
from k8s_scheduler.obs.buckets import exponential
from k8s_scheduler.obs.metrics import FOLLOWED_RELEASE, Metrics, metric_names
from tests.metric_pages import documented, left_out, served


def all_metrics():
    """Yield (name on the wire, metric) of everything that is declared."""
    for registry in (Metrics().registry, HealthSlis().registry):
        for collector in registry._collector_to_names:
            (family,) = collector.collect()
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            yield family.name + suffix, collector


def test_the_page_names_every_metric_and_no_other():
    existing = {*metric_names(Metrics().registry), *metric_names(HealthSlis().registry)}
    assert set(documented()) == existing


def test_the_page_shows_types_labels_and_buckets_as_they_are():
    page = documented()
    for name, metric in all_metrics():
        kind = {"info": "gauge"}.get(metric._type, metric._type)
        assert page[name].kind == kind, name
        if metric._type != "info":
            assert page[name].labels == set(metric._labelnames), name
        assert page[name].buckets == tuple(metric._kwargs.get("buckets") or ()), name


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
