"""Offers by class are what is there now, and little is worked out when one of many changes."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import Labels, ObjectMeta
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.selectors.types import LabelSelector
from k8s_scheduler.api.storage.objects import CsiStorageCapacity
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.volumes.class_index import NONE
from k8s_scheduler.core.state.volumes.offers import CapacityDemand

KIND = Kind.CSI_STORAGE_CAPACITY
HOST = "kubernetes.io/hostname"


def capacity(name, of, *, space="s", size="1", host=None):
    topology = LabelSelector(match_labels=Labels({HOST: host} if host else {}))
    return CsiStorageCapacity(
        metadata=ObjectMeta(name=name, namespace=space),
        storage_class_name=of,
        capacity=size,
        node_topology=topology,
    )


class Stage:
    """A cache with capacities in it."""

    def __init__(self):
        self.cache = Cache()

    def put(self, *found):
        for each in found:
            self.cache.objects.put(KIND, each.metadata.namespace, each.metadata.name, each)

    def remove(self, name, space="s"):
        self.cache.objects.remove(KIND, space, name)

    def put_nodes(self, count):
        for number in range(count):
            name = f"node-{number}"
            metadata = ObjectMeta(name=name, labels=Labels({HOST: name}))
            self.cache.put_node(Node(metadata=metadata))

    def names(self, of):
        index = self.cache.offers.of(KIND, of)
        if index is None:
            return None
        return sorted(
            (offer.thing.metadata.name, offer.thing.capacity)
            for offer in index._offers
            if offer is not None
        )

    def best(self, of, *, size=1):
        """Return the name of the best capacity of each node that is pinned to its host."""
        index = self.cache.offers.of(KIND, of)
        labels = self.cache.nodes.labels
        ((_, (table,)),) = index.choices(CapacityDemand(size), 1, labels).tables
        rows = self.cache.nodes.present_rows()
        return [
            None if slot == NONE else index.offer(slot).thing.metadata.name
            for slot in table[labels.column(HOST)[rows]].tolist()
        ]


@pytest.fixture
def stage():
    return Stage()


def test_what_is_there_by_class(stage):
    stage.put(capacity("a", "x"), capacity("b", "x"), capacity("c", "y"))
    assert stage.names("x") == [("a", "1"), ("b", "1")]
    assert stage.names("y") == [("c", "1")]
    assert stage.names("z") is None


def test_what_comes_changes_and_goes(stage):
    stage.put(capacity("a", "x"), capacity("b", "x"))
    stage.names("x")
    stage.put(capacity("d", "x"))
    assert stage.names("x") == [("a", "1"), ("b", "1"), ("d", "1")]
    stage.put(capacity("b", "x", size="2"))
    assert stage.names("x") == [("a", "1"), ("b", "2"), ("d", "1")]
    for name in "abd":
        stage.remove(name)
    assert stage.names("x") is None
    stage.put(capacity("b", "x"))
    assert stage.names("x") == [("b", "1")]


def test_what_moves_to_another_class(stage):
    stage.put(capacity("a", "x"), capacity("b", "x"))
    stage.names("x")
    stage.put(capacity("a", "y"))
    assert (stage.names("x"), stage.names("y")) == ([("b", "1")], [("a", "1")])


def test_equal_names_in_two_namespaces_are_two_offers(stage):
    stage.put(capacity("a", "x"), capacity("a", "x", space="t", size="2"))
    assert stage.names("x") == [("a", "1"), ("a", "2")]


def test_the_best_of_each_value(stage):
    stage.put_nodes(3)
    stage.put(
        capacity("b", "x", host="node-0"),
        capacity("a", "x", host="node-0", size="1"),
        capacity("c", "x", host="node-2", size="5"),
    )
    assert stage.best("x") == ["a", None, "c"]
    assert stage.best("x", size=3) == [None, None, "c"]
    stage.remove("a")
    assert stage.best("x") == ["b", None, "c"]


def test_a_value_of_a_node_that_comes_later(stage):
    stage.put_nodes(1)
    stage.put(capacity("a", "x", host="node-1"))
    assert stage.best("x") == [None]
    stage.put_nodes(2)
    assert stage.best("x") == [None, "a"]


@pytest.mark.parametrize("count", [100, 300])
def test_one_change_is_worth_one_entry(stage, count):
    """However many offers a class has."""
    stage.put_nodes(count)
    stage.put(*(capacity(f"c-{n}", "x", host=f"node-{n}") for n in range(count)))
    stage.best("x")
    index = stage.cache.offers.of(KIND, "x")
    before = index.entries_made
    assert before == count
    for number in range(10):
        stage.put(capacity(f"c-{number}", "x", host=f"node-{number}", size="2"))
        stage.best("x")
    assert index.entries_made - before == 10
