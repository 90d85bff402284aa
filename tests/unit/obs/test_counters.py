"""Counters look as the client library's do, and count."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Counter as LibraryCounter

from k8s_scheduler.obs.counters import Counter


def test_the_page_is_the_librarys():
    """Whoever scrapes sees no difference."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    for kind, registry in ((Counter, ours), (LibraryCounter, theirs)):
        counter = kind("a_things", "Things.", ["kind", "size"], registry=registry)
        counter.labels("x", "1").inc()
        counter.labels(size="2", kind='y"\n').inc(2.5)
        kind("b_things", "More things.", registry=registry).inc(3)
    page = [
        line for line in generate_latest(theirs).decode().splitlines() if "_created" not in line
    ]
    assert generate_latest(ours).decode().splitlines() == page


def test_one_without_labels_is_there_before_it_counts():
    registry = CollectorRegistry()
    Counter("a_things", "Things.", registry=registry)
    assert registry.get_sample_value("a_things_total") == 0.0


def test_same_labels_are_the_same_child():
    counter = Counter("a_things", "Things.", ["kind"], registry=CollectorRegistry())
    assert counter.labels("x") is counter.labels(kind="x")


def test_never_goes_down():
    counter = Counter("a_things", "Things.", registry=CollectorRegistry())
    with pytest.raises(ValueError, match="never goes down"):
        counter.inc(-1)


@pytest.mark.parametrize("named", [{}, {"size": "1"}, {"kind": "x", "size": "1"}])
def test_other_labels_are_refused(named):
    counter = Counter("a_things", "Things.", ["kind"], registry=CollectorRegistry())
    with pytest.raises(ValueError, match="a_things has the labels"):
        counter.labels(**named)


def test_a_name_is_taken_once():
    registry = CollectorRegistry()
    Counter("a_things", "Things.", registry=registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Counter("a_things", "Things.", registry=registry)
