"""Metrics are documented, and the documentation is of metrics that exist."""

import re
from pathlib import Path

from k8s_scheduler.obs.metrics import Metrics, exponential, metric_names

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_names_every_metric_and_no_other():
    documented = set(re.findall(r"^\| `([a-z0-9_]+)` \|", PAGE.read_text(), re.MULTILINE))
    assert documented == set(metric_names(Metrics().registry))


def test_exponential_buckets():
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)


def test_two_registries_do_not_meet():
    one, two = Metrics(), Metrics()
    one.scheduler.schedule_attempts.labels("scheduled", "p").inc()
    labels = {"result": "scheduled", "profile": "p"}
    name = "scheduler_schedule_attempts_total"
    assert one.registry.get_sample_value(name, labels) == 1
    assert two.registry.get_sample_value(name, labels) is None
