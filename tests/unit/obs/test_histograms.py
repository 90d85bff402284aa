"""Our histograms look on the page as those of the client library."""

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from k8s_scheduler.obs.histograms import Histogram

BUCKETS = (0.001, 0.1, 1.0, 15.5)
TEXT = "How long it takes, in \\ and\nlines."


def without_created(page):
    # The daemon turns these off, for the client library and for the whole process.
    return [line for line in page.decode().splitlines() if "_created" not in line]


def pages(labels):
    """Return two registries, each with the same histogram of another make."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    one = Histogram("h_seconds", TEXT, labels, buckets=BUCKETS, registry=ours)
    other = prometheus_client.Histogram("h_seconds", TEXT, labels, buckets=BUCKETS, registry=theirs)
    return (ours, one), (theirs, other)


values = st.one_of(st.sampled_from(BUCKETS), st.floats(0, 20), st.integers(0, 100))


@given(found=st.lists(st.tuples(st.sampled_from(["a", 'b"']), st.sampled_from(["x", "y"]), values)))
def test_the_page_is_the_same(found):
    (ours, one), (theirs, other) = pages(["first", "second"])
    for first, second, value in found:
        one.labels(first, second).observe(value)
        other.labels(first, second).observe(value)
    assert without_created(generate_latest(ours)) == without_created(generate_latest(theirs))


def test_without_labels_it_is_there_from_the_start():
    (ours, one), (theirs, other) = pages([])
    for value in (None, 0.1, 0.05, 100):
        if value is not None:
            one.observe(value)
            other.observe(value)
        page = without_created(generate_latest(ours))
        assert page == without_created(generate_latest(theirs))
        assert any(line.startswith("h_seconds_count") for line in page)


def test_the_same_labels_are_the_same_observations():
    (_, one), _ = pages(["first"])
    assert one.labels("a") is one.labels("a")
    assert one.labels("a") is not one.labels("b")


@pytest.mark.parametrize("labels", [(), ("a", "b")])
def test_labels_are_all_or_it_is_an_error(labels):
    _, one = pages(["first"])[0]
    with pytest.raises(ValueError, match="h_seconds has the labels"):
        one.labels(*labels)


def test_a_name_is_registered_once():
    (ours, _), _ = pages([])
    with pytest.raises(ValueError, match="Duplicated"):
        Histogram("h_seconds", TEXT, buckets=BUCKETS, registry=ours)
