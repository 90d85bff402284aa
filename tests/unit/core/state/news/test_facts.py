"""The table of columns: what follows from an entry."""

import pytest

from k8s_scheduler.core.framework.dependencies import Row, events_that_help
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.news.changes import Change
from k8s_scheduler.core.state.news.facts import (
    ALL_OF_A_NODE,
    ALLOCATABLE,
    COLUMNS,
    FEATURES,
    IMAGES,
    LABELS,
    LIVELY,
    NODE,
    OBJECTS,
    TAINTS,
    UNSCHEDULABLE,
    entry_of,
    fact_of,
    node_change,
)
from tests.builders import make_node

BEFORE = make_node("n").offers(cpu="4").label(zone="a").obj()


def test_every_fact_of_a_row_is_shown_by_a_column():
    shown = 0
    for entry in COLUMNS:
        shown |= entry.fact
    assert shown == ALL_OF_A_NODE
    assert not shown & OBJECTS


def test_a_column_has_its_own_entry_or_that_of_its_family():
    assert entry_of("label/zone").name == "label/"
    assert entry_of("pods/labels").name == "pods/labels"
    assert fact_of("has_label/example.com/zone") == LABELS


@pytest.mark.parametrize("column", ["unknown", "unknown/zone", "label", "pods/unknown"])
def test_a_column_that_has_no_entry_is_an_error(column):
    with pytest.raises(KeyError):
        entry_of(column)


def test_a_plugin_that_declares_a_column_without_events_is_refused():
    with pytest.raises(KeyError):
        events_that_help([Row("has_label/zone")])


@pytest.mark.parametrize(
    ("after", "facts", "change"),
    [
        (make_node("n").offers(cpu="8").label(zone="a"), ALLOCATABLE, Change.NODE_ALLOCATABLE),
        (make_node("n").offers(cpu="4").label(zone="b"), LABELS, Change.NODE_LABEL),
        (
            make_node("n").offers(cpu="4").label(zone="a").cordoned(),
            UNSCHEDULABLE,
            Change.NODE_TAINT,
        ),
        (make_node("n").offers(cpu="4000m").label(zone="a"), 0, Change(0)),
        (
            make_node("n").offers(cpu="8").label(zone="b"),
            ALLOCATABLE | LABELS,
            Change.NODE_ALLOCATABLE | Change.NODE_LABEL,
        ),
        (make_node("other").offers(cpu="4"), ALL_OF_A_NODE, Change.NODE_ADD),
    ],
    ids=["offers", "labels", "cordon", "written otherwise", "two", "new"],
)
def test_both_logs_hear_of_the_same_update(after, facts, change):
    cache = Cache()
    cache.put_node(BEFORE)
    cache.changes.drain()
    cursor = cache.facts.position
    cache.put_node(after.obj())
    row = cache.nodes.row_of(after.obj().metadata.name)
    assert cache.facts.since(cursor) == (([row], [facts]) if facts else ([], []))
    assert cache.changes.drain().rows == ({row: change} if change else {})


def test_images_are_no_event():
    assert node_change(IMAGES) == Change(0)


def test_taints_and_features_are_events_of_nodes():
    assert node_change(TAINTS) == Change.NODE_TAINT
    assert node_change(FEATURES) == Change.NODE_DECLARED_FEATURE


def test_what_pods_change_is_apart_from_what_nodes_change():
    assert not LIVELY & (ALLOCATABLE | UNSCHEDULABLE | TAINTS | FEATURES | LABELS | IMAGES | NODE)
