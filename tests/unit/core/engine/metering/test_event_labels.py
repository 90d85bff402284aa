"""Changes of the cluster have kube-scheduler's names."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.engine.metering.event_labels import EVENTS
from k8s_scheduler.core.messages.incoming import NodeChanged, ObjectChanged, PodChanged, Tick
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness

WAITING = make_pod("p").request(cpu="1")
NODE = make_node("n").obj()


@pytest.fixture
def h():
    harness = FullHarness()
    harness.node(NODE)
    return harness


def label(h, message):
    event_of = EVENTS.get(type(message))
    return "" if event_of is None else event_of(message, inside(h.core).state.pods)


def pod_label(h, pod, uid="uid-p"):
    return label(h, PodChanged(h.now, PodUid(uid), pod))


def test_nodes(h):
    assert label(h, NodeChanged(h.now, NodeName("n"), NODE)) == "NodeUpdate"
    assert label(h, NodeChanged(h.now, NodeName("m"), make_node("m").obj())) == "NodeAdd"
    assert label(h, NodeChanged(h.now, NodeName("n"), None)) == "NodeDelete"


def test_a_node_that_is_only_known_from_its_pods_is_added(h):
    h.pod(make_pod("early").on("later").obj())
    later = make_node("later").obj()
    assert label(h, NodeChanged(h.now, NodeName("later"), later)) == "NodeAdd"


def test_the_way_of_a_pod(h):
    pod = WAITING.obj()
    assert pod_label(h, pod) == "UnscheduledPodAdd"
    h.pod(pod)
    assert pod_label(h, pod) == "UnscheduledPodUpdate"
    (bind,) = h.binds()
    assert pod_label(h, pod) == "UnscheduledPodUpdate"
    assert pod_label(h, None) == "UnscheduledPodDelete"
    bound = make_pod("p").request(cpu="1").on("n").obj()
    assert pod_label(h, bound) == "AssignedPodAdd"
    h.result(bind)
    h.pod(bound)
    assert pod_label(h, bound) == "AssignedPodUpdate"
    assert pod_label(h, None) == "AssignedPodDelete"


def test_other_objects(h):
    def changed(found):
        return label(h, ObjectChanged(h.now, Kind.STORAGE_CLASS, "", "fast", found))

    assert changed({}) == "storage.k8s.io/StorageClassAdd"
    h.object(Kind.STORAGE_CLASS, "fast", provisioner="p")
    assert changed({}) == "storage.k8s.io/StorageClassUpdate"
    assert changed(None) == "storage.k8s.io/StorageClassDelete"


def test_time_is_no_change_of_the_cluster(h):
    assert not label(h, Tick(h.now))
