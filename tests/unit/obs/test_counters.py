"""Our counters and gauges look on the page as those of the client library."""

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from k8s_scheduler.obs.counters import Counter, Gauge

TEXT = "How many there are, in \\ and\nlines."


def page(registry):
    # The daemon turns these off, for the client library and for the whole process.
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


def pair(name, kind, labels=()):
    """Return two registries, each with the same metric of another make."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    other = getattr(prometheus_client, kind.__name__)
    one = kind(name, TEXT, labels, registry=ours)
    return (ours, one), (theirs, other(name, TEXT, labels, registry=theirs))


steps = st.lists(
    st.tuples(
        st.sampled_from(["a", 'b"']),
        st.sampled_from(["x", "y"]),
        st.floats(0, 1e6) | st.integers(0),
    )
)


@pytest.mark.parametrize("name", ["seen", "seen_total"])
@given(found=steps)
def test_the_page_of_a_counter_is_the_same(name, found):
    (ours, one), (theirs, other) = pair(name, Counter, ["first", "second"])
    for first, second, amount in found:
        one.labels(first, second).inc(amount)
        other.labels(first, second).inc(amount)
    assert page(ours) == page(theirs)


@given(found=steps)
def test_the_page_of_a_gauge_is_the_same(found):
    (ours, one), (theirs, other) = pair("level", Gauge, ["first", "second"])
    for metric in (one, other):
        for first, second, amount in found:
            child = metric.labels(second=second, first=first)
            child.set(amount)
            child.inc()
            child.dec(3)
    assert page(ours) == page(theirs)


def test_without_labels_they_are_there_from_the_start():
    (ours, one), (theirs, other) = pair("level", Gauge)
    assert page(ours) == page(theirs)
    for metric in (one, other):
        metric.set(True)
        metric.inc(4)
        metric.dec()
    assert page(ours) == page(theirs)
    (ours, one), (theirs, other) = pair("seen", Counter)
    assert page(ours) == page(theirs)
    for metric in (one, other):
        metric.inc()
    assert page(ours) == page(theirs)


def test_a_function_is_asked_whenever_the_page_is_read():
    (ours, one), (theirs, other) = pair("level", Gauge)
    waiting = []
    for metric in (one, other):
        metric.set_function(lambda: len(waiting))
    for _ in range(2):
        waiting.append(1)
        assert page(ours) == page(theirs)


def test_a_counter_never_goes_down():
    (_, one), _ = pair("seen", Counter)
    with pytest.raises(ValueError, match="never go down"):
        one.inc(-1)


def test_the_same_labels_are_the_same_child():
    (_, one), _ = pair("seen", Counter, ["first", "second"])
    assert one.labels("a", "b") is one.labels(second="b", first="a")
    assert one.labels("a", "b") is not one.labels("b", "a")


@pytest.mark.parametrize(
    ("values", "by_name"),
    [((), {}), (("a", "b"), {}), (("a",), {"first": "a"}), ((), {"other": "a"})],
)
def test_labels_are_all_or_it_is_an_error(values, by_name):
    (_, one), _ = pair("seen", Counter, ["first"])
    with pytest.raises(ValueError, match="seen has the labels"):
        one.labels(*values, **by_name)


def test_a_name_is_registered_once():
    (ours, _), _ = pair("seen", Counter)
    with pytest.raises(ValueError, match="Duplicated"):
        Gauge("seen", TEXT, registry=ours)
