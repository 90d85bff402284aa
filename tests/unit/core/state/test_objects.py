"""Objects of other kinds: order, news, and what is no news."""

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.workloads import Service
from k8s_scheduler.core.state.news.changes import ChangeLog, ObjectChange, object_event_label
from k8s_scheduler.core.state.news.facts import FactLog
from k8s_scheduler.core.state.objects import ObjectStore


@pytest.fixture
def log():
    return ChangeLog()


@pytest.fixture
def store(log):
    return ObjectStore(log, FactLog())


def service(name, namespace="a", *, version="1", **selector):
    metadata = {"name": name, "namespace": namespace, "resourceVersion": version}
    return msgspec.convert({"metadata": metadata, "spec": {"selector": selector}}, Service)


def put(store, name, namespace="a", **parts):
    found = service(name, namespace, **parts)
    store.put(Kind.SERVICE, namespace, name, found)
    return found


def names(found):
    return [(o.metadata.namespace, o.metadata.name) for o in found]


def test_lists_are_by_name_whatever_the_history(store):
    for name in ("c", "a", "b"):
        put(store, name)
    assert names(store.list(Kind.SERVICE, "a")) == [("a", "a"), ("a", "b"), ("a", "c")]
    store.remove(Kind.SERVICE, "a", "b")
    put(store, "aa")
    put(store, "b", "z")
    put(store, "z", "0")
    assert names(store.list(Kind.SERVICE, "a")) == [("a", "a"), ("a", "aa"), ("a", "c")]
    assert [name for _, name in names(store.list_all(Kind.SERVICE))] == ["z", "a", "aa", "c", "b"]
    assert store.list(Kind.SERVICE, "nowhere") == ()
    assert store.list_all(Kind.STATEFUL_SET) == ()


def test_a_new_version_takes_the_place_of_the_old(store):
    put(store, "a")
    put(store, "b")
    newer = put(store, "a", app="x")
    assert store.get(Kind.SERVICE, "a", "a") is newer
    assert store.list(Kind.SERVICE, "a")[0] is newer
    assert store.get(Kind.SERVICE, "b", "a") is None


def test_a_list_that_was_given_out_stays_as_it_is(store):
    old = put(store, "a")
    put(store, "b")
    before = store.list(Kind.SERVICE, "a")
    newer = put(store, "a", version="2", app="x")
    assert before[0] is old
    assert store.list(Kind.SERVICE, "a")[0] is newer


def test_lists_show_what_is_assumed_and_given_back(store):
    known = put(store, "a")
    put(store, "b")
    store.list(Kind.SERVICE, "a")
    assumed = service("a", version="1", app="x")
    store.assume(Kind.SERVICE, assumed)
    assert store.list(Kind.SERVICE, "a")[0] is assumed
    store.revert(Kind.SERVICE, "a", "a")
    assert store.list(Kind.SERVICE, "a")[0] is known


def test_a_namespace_that_was_empty_for_a_while(store):
    put(store, "a")
    store.list(Kind.SERVICE, "a")
    store.remove(Kind.SERVICE, "a", "a")
    assert store.list(Kind.SERVICE, "a") == ()
    found = put(store, "a")
    assert store.list(Kind.SERVICE, "a") == (found,)


def test_listeners_are_told_of_what_decisions_see_changed(store):
    told = []
    store.listen(lambda *key: told.append(key))
    known = put(store, "a")
    store.assume(Kind.SERVICE, known)
    # An echo of what is assumed to be otherwise is no news.
    put(store, "a")
    store.revert(Kind.SERVICE, "a", "a")
    store.revert(Kind.SERVICE, "a", "a")
    store.remove(Kind.SERVICE, "a", "a")
    store.remove(Kind.SERVICE, "a", "a")
    assert told == [(Kind.SERVICE, "a", "a")] * 4


def test_what_is_news(store, log):
    put(store, "a")
    assert log.drain().objects == {Kind.SERVICE: ObjectChange.ADD}
    put(store, "a", version="2", app="x")
    assert log.drain().objects == {Kind.SERVICE: ObjectChange.UPDATE}
    store.remove(Kind.SERVICE, "a", "a")
    assert log.drain().objects == {Kind.SERVICE: ObjectChange.DELETE}
    store.remove(Kind.SERVICE, "a", "a")
    store.remove(Kind.SERVICE, "nowhere", "a")
    assert not log.drain()


def test_news_of_a_kind_add_up(store, log):
    put(store, "a")
    put(store, "a", app="x")
    store.remove(Kind.SERVICE, "a", "a")
    both = ObjectChange.ADD | ObjectChange.UPDATE | ObjectChange.DELETE
    assert log.drain().objects == {Kind.SERVICE: both}


def test_a_namespace_that_was_emptied_is_sorted_again(store):
    put(store, "b")
    store.remove(Kind.SERVICE, "a", "b")
    put(store, "c")
    put(store, "a")
    assert names(store.list(Kind.SERVICE, "a")) == [("a", "a"), ("a", "c")]


def test_entries_go_by_kind_namespace_and_name(store):
    put(store, "b", "z")
    put(store, "b")
    put(store, "a")
    assert [entry[:3] for entry in store.entries()] == [
        (Kind.SERVICE, "a", "a"),
        (Kind.SERVICE, "a", "b"),
        (Kind.SERVICE, "z", "b"),
    ]


@pytest.mark.parametrize(
    ("kind", "change", "label"),
    [
        (Kind.SERVICE, ObjectChange.ADD, "ServiceAdd"),
        (Kind.STORAGE_CLASS, ObjectChange.UPDATE, "storage.k8s.io/StorageClassUpdate"),
        (Kind.STORAGE_CLASS, ObjectChange.UPDATE | ObjectChange.DELETE, None),
    ],
)
def test_labels_of_events(kind, change, label):
    first = label or "storage.k8s.io/StorageClassUpdate"
    assert object_event_label(kind, change) == first
